"""Estimates of a run's memory, updates and seconds, made before its weights are loaded.

`shapes` describes model, layout and workload. From these, `memory` and `schedule` compute bytes, updates and
seconds. `shapes_from_options` derives the shapes from the options and the model's configuration. `lengths`
measures the data. `dry_run` collects the warnings and writes the report of --dry_run.
"""

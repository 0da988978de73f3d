"""Estimates of a run's memory, updates and seconds, made before its weights are loaded.

`shapes` describes model, layout and workload. From these, `memory` and `schedule` compute bytes, updates and
seconds (standard library only). `shapes_from_options` derives the shapes from the options and the model's
configuration, and `token_lengths` measures the data. `dry_run` writes the report of --dry_run.
"""

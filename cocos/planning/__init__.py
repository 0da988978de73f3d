"""Estimates of what a run would do and need, before its weights are loaded.

`shapes` describes model, layout and workload; `memory` and `schedule` compute bytes, updates and seconds from
them (standard library only). `run_shapes` derives the shapes from options and a model's configuration, and
`token_lengths` those of the data. `dry_run` is the report behind --dry_run.
"""

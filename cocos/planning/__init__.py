"""Report of `--dry_run`: checks, first prompts, updates and memory of a run, before its weights are loaded.

`dry_run` plays the first problem and writes the report. `lengths` measures the data in tokens, and `memory`
estimates the bytes of the model and of an update on one GPU.
"""

"""Report of `--dry_run`: checks, first prompts, updates and memory of a run, before its weights are loaded.

`shapes` describes the model and its layout on the GPUs, `workload` one update, and `memory` estimates bytes
from both. `lengths` measures the data in tokens. `dry_run` plays the first problem and writes the report.
"""

"""Dry runs of several commands, one after another, in the processes that one launcher starts.

    deepspeed --num_gpus 8 tests/support/recipe_plans.py RUNS.json      # [["vLLM", "--config", ...], ...]

The first word of a run is the sampler: with `vLLM` that package counts as installed, with `transformers` not.
"""

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

from cocos.commands import train
from cocos.config import trl_configs

if __name__ == "__main__":
    local_rank, file = sys.argv[1:]  # as DeepSpeed's launcher passes them
    for sampler, *words in json.loads(Path(file).read_text()):
        installed = ModuleSpec("vllm", None) if sampler == "vLLM" else None
        trl_configs.find_spec = lambda name, installed=installed: installed
        sys.argv = ["train.py", local_rank, *words]
        train.main()

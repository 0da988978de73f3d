"""A run that is interrupted, however and however often, ends as if it had not been."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

from tests.conftest import ROOT

TOY = ROOT / "data/toy"
UPDATES = 6
RUN = (
    *("--config", "configs/toy/cocos.yaml", "--model_name_or_path", TOY / "base"),
    *("--max_steps", UPDATES, "--save_steps", 2, "--eval_steps", 2, "--beta", 0.01, "--lr_scheduler_type", "cosine"),
    *("--global_batch_size", 16, "--per_device_train_batch_size", 8, "--disable_tqdm", True),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """12 problems, 4 of them per update: three updates an epoch; and 6 to choose the best checkpoint by."""
    folder = tmp_path_factory.mktemp("data")
    for name, count in (("train", 12), ("dev", 6)):
        lines = (TOY / f"{name}.jsonl").read_text().splitlines()[:count]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return ("--train_data", folder / "train.jsonl", "--dev_data", folder / "dev.jsonl")


def start(*words, before=""):
    """train.py as a process of its own, with statements run before it if need be."""
    source = f"import runpy; {before}\nrunpy.run_path('train.py', run_name='__main__')"
    return subprocess.Popen(
        [sys.executable, "-c", source, *(str(word) for word in words)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out[-1000:] + err[-3000:]
    return err

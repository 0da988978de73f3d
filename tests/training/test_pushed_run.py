"""A run that is uploaded to the hub, and a run whose own reward function rewards nothing."""

import sys

import pytest

from tests.support.commands import command
from tests.support.hub_server import TOKEN, hub_server
from tests.support.paths import ROOT, TOY

pytestmark = pytest.mark.processes


def train(folder, *options, start=(), **environment):
    """Train the laboratory's model for one update; `start` are words before the interpreter."""
    words = (*start, sys.executable, ROOT / "train.py", "--config", ROOT / "configs/toy/cocos.yaml")
    words += ("--model_name_or_path", TOY / "base", "--train_data", TOY / "train.jsonl", "--dev_data", "")
    words += ("--limit", 8, "--global_batch_size", 8, "--per_device_train_batch_size", 8, "--max_steps", 1)
    words += ("--save_steps", 1, "--max_truncated_share", 1, "--output_dir", folder / "out", *options)
    return command(*words, cwd=folder, **environment)


def test_a_token_is_in_no_file_of_a_run_in_no_upload_and_in_no_line(tmp_path):
    with hub_server() as hub:
        options = ("--push_to_hub", "true", "--hub_model_id", "owner/name", "--hub_token", TOKEN)
        # In a new interpreter: the hub's client reads its environment when it is imported.
        hub_variables = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": None, "HF_TOKEN": None}
        done = train(tmp_path, *options, start=("env",), **hub_variables)
    assert done.returncode == 0, done.stderr
    assert {"model.safetensors", "README.md", "training_args.bin"} <= hub.files.keys()
    written = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any("checkpoint-1" in name for name in written)
    found = {**written, **hub.files, "stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    assert [name for name, content in found.items() if TOKEN.encode() in content] == []


def test_a_batch_in_which_every_reward_is_none_is_one_line_that_names_the_function(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def nothing(trajectory):\n    return [None for _ in trajectory.turns]\n"
    )
    done = train(tmp_path, "--reward", "mine:nothing")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "error: --reward mine:nothing: the function returned None for every turn of a batch" in done.stderr

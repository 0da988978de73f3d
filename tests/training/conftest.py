"""Data and one finished run, which the tests of stopped, killed, resumed and finished runs share."""

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.commands import alone, succeed
from tests.support.paths import TOY
from tests.support.training import long_run


class Finished(NamedTuple):
    """A finished run: its output folder, and what it has printed."""

    out: Path
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder that pytest-xdist's workers share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def data(shared_folder):
    """A folder with train.jsonl, dev.jsonl and test.jsonl: 12 problems, so that four an update are three updates an epoch."""
    folder = shared_folder / "problems"
    with alone(shared_folder):
        if not folder.exists():
            folder.mkdir()
            text = "".join((TOY / "boost.jsonl").read_text().splitlines(keepends=True)[:12])
            for name in ("train", "dev", "test"):
                (folder / f"{name}.jsonl").write_text(text)
    return folder


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """A file of Boost rows."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    texts = [json.loads(line)["text"] for line in (TOY / "boost.jsonl").read_text().splitlines()[:24]]
    row = {"completion": "def f(xs):\n    return sorted(xs)\n[DONE]"}
    path.write_text("".join(json.dumps({"prompt": f"{text}\n\n[BEGIN]\n"} | row) + "\n" for text in texts))
    return path


@pytest.fixture(scope="session")
def finished(data, shared_folder):
    """Six updates of train.py with three evaluations. Read it, or train on in a copy."""
    out, said = shared_folder / "finished", shared_folder / "finished.json"
    with alone(shared_folder):
        if not said.exists():
            logging = ("--report_to", "tensorboard", "--log_completions", "true")
            # A new interpreter without these variables, so that messages while libraries are imported are seen, too.
            fresh = ("env", "-u", "DS_ACCELERATOR", "-u", "WANDB_MODE", sys.executable, "train.py")
            words = (*long_run(data, out), *logging, "--num_completions_to_print", 2)
            done = succeed(*fresh, *words)
            said.write_text(json.dumps([done.stdout, done.stderr]))
    return Finished(out, *json.loads(said.read_text()))

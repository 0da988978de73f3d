"""What a prepared folder is to others: `datasets` loads it, its card describes it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from datasets import load_dataset

from cocos.problems import load_problems
from tests.support.paths import ROOT

DOUBLE = {
    "task_id": 1,
    "text": "Double a number.",
    "code": "def f(x): return 2 * x",
    "test_list": ["assert f(1) == 2", "assert f(2) == 4"],
}
ROWS = [
    DOUBLE | {"licence": "MIT", "files": {"a.txt": "1"}},
    DOUBLE | {"task_id": 2, "text": "Triple it.", "code": "def f(x):\n    return 3 * x"}
    | {"test_list": ["assert f(1) == 3"], "hidden_test_list": ["assert f(2) == 6"]},
    DOUBLE | {"task_id": 3, "text": "Break <script>it</script>.", "code": "def f(x): return 5 * x"},
]  # fmt: skip


@pytest.fixture
def folder(prepare, tmp_path):
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    words = ("jsonl", "--input", tmp_path / "mine.jsonl", "--licence", "CC BY 4.0", "--splits", 1, 0, 0)
    assert prepare(*words, "--drop", "failing", "--output_dir", tmp_path / "out") == 0
    return tmp_path / "out"


def test_datasets_loads_the_folder_as_it_is_although_rows_have_different_columns(folder, tmp_path):
    loaded = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 2}
    first, second = loaded["train"]
    assert first["files"] == {"a.txt": "1"} and first["hidden_test_list"] is None
    assert second["hidden_test_list"] == ["assert f(2) == 6"] and second["files"] is None
    loaded["train"].to_json(tmp_path / "again.jsonl")
    assert load_problems(tmp_path / "again.jsonl") == load_problems(folder / "train.jsonl")


def test_the_card_and_every_row_name_the_licence(folder):
    assert [problem.licence for problem in load_problems(folder / "train.jsonl")] == ["MIT", "CC BY 4.0"]
    _, header, text = (folder / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(header)["license"] == ["cc-by-4.0", "mit"]
    assert "| MIT | 1 |" in text and "| CC BY 4.0 | 1 |" in text


def test_the_card_shows_the_sizes_of_the_problems_and_what_was_dropped(folder):
    card = (folder / "README.md").read_text()
    assert "Rows read: 3; in these files: 2; dropped: 1 (listed in dropped.jsonl)." in card
    assert "| lines of the reference | 1 | 1, 1, 1 | 2 |" in card
    assert "- 1 failing: the reference does not pass the tests" in card


@contextmanager
def hub_that_answers(status: int) -> Iterator[str]:
    """Yield the address of a hub that answers every request with a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("status", "what"), [(404, "check the name"), (401, "set HF_TOKEN"), (500, "try later")]
)
def test_a_data_set_that_the_hub_does_not_give_is_one_line(tmp_path, status, what):
    with hub_that_answers(status) as url:
        variables = {"HF_ENDPOINT": url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
        script = str(ROOT / "scripts/prepare_data.py")
        done = subprocess.run(
            [sys.executable, script, "owner/name", "--output_dir", str(tmp_path / "out")],
            env=os.environ | variables, capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    [line] = done.stderr.splitlines()
    assert f"HTTP {status}" in line and what in line
    assert not (tmp_path / "out").exists()

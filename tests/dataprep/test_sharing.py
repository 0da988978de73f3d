"""What a prepared folder is to others: `datasets` loads it, its card and report describe it, and the hub receives it."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from datasets import load_dataset

from cocos.problems import load_problems
from tests.support.data import contents
from tests.support.hub_server import TOKEN, hub_server
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


def test_the_report_shows_counts_lengths_licences_and_dropped_rows_as_text(folder):
    page = (folder / "report.html").read_text()
    assert "3 rows read, 1 dropped, 2 problems." in page
    assert '<td>MIT</td><td class="number">1</td>' in page
    [sizes] = re.findall(r"<td>lines of the reference</td>(.*)</tr>", page)
    assert re.findall(r"\d+", sizes) == ["1", "1", "1", "1", "2"]
    assert "1 failing: the reference does not pass the tests" in page
    assert "train/3: test 1 of 2" in page
    assert "Break &lt;script&gt;it&lt;/script&gt;." in page and "<script" not in page


def push(hub, tmp_path, token: str | None = TOKEN) -> subprocess.CompletedProcess:
    variables = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
    environment = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"}
    environment |= variables | ({"HF_TOKEN": token} if token else {})
    data = tmp_path / "mine.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]))
    words = (
        "jsonl",
        "--input",
        data,
        "--output_dir",
        tmp_path / "out",
        "--splits",
        "1",
        "0",
        "0",
        "--checks",
    )
    script = str(ROOT / "scripts/prepare_data.py")
    return subprocess.run(
        [sys.executable, script, *map(str, words), "--push_to_hub", "owner/name"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.processes
def test_a_folder_is_uploaded_as_a_private_data_set(tmp_path):
    with hub_server() as hub:
        done = push(hub, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"uploaded to {hub.url}/datasets/owner/name\n")
    [created] = hub.repositories
    assert created["name"] == "name" and created["type"] == "dataset" and created["visibility"] == "private"
    assert hub.files == contents(tmp_path / "out")


@pytest.mark.processes
@pytest.mark.parametrize("token", [None, "hf_bad"])
def test_without_a_token_that_the_hub_accepts_nothing_is_prepared(tmp_path, token):
    with hub_server() as hub:
        done = push(hub, tmp_path, token)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "give a token with write access: set HF_TOKEN, or run hf auth login" in done.stderr
    assert not (tmp_path / "out").exists() and not hub.repositories


@pytest.mark.processes
def test_a_refused_upload_leaves_the_folder_and_names_the_command_that_uploads_it(tmp_path):
    with hub_server() as hub:
        hub.status = 403
        done = push(hub, tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"hf upload owner/name {tmp_path / 'out'} --repo-type dataset" in done.stderr
    assert (tmp_path / "out/train.jsonl").exists() and not hub.files


@pytest.mark.processes
@pytest.mark.parametrize(
    ("status", "what"), [(404, "check the name"), (401, "set HF_TOKEN"), (500, "try later")]
)
def test_a_data_set_that_the_hub_does_not_give_is_one_line(tmp_path, status, what):
    with hub_server() as hub:
        hub.status = status
        variables = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
        script = str(ROOT / "scripts/prepare_data.py")
        done = subprocess.run(
            [sys.executable, script, "owner/name", "--output_dir", str(tmp_path / "out")],
            env=os.environ | variables, capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    [line] = done.stderr.splitlines()
    assert f"HTTP {status}" in line and what in line
    assert not (tmp_path / "out").exists()

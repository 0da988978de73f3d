"""Repair problems made of other models' programs, and the problems that two files share."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def problems(tmp_path):
    rows = [{"task_id": n, "text": f"Write f{n}.", "test_list": [f"assert f{n}() == {n}"]} for n in (11, 12)]
    return write(tmp_path / "problems.jsonl", rows)


def test_every_wrong_program_is_a_problem_with_a_buggy_program(problems, tmp_path):
    programs = [
        {"task_id": 12, "model": "a", "program": "def f12(): return 0", "passes": False},
        {"task_id": 11, "model": "a", "program": "def f11(): return 11", "passes": True},
        {"task_id": 12, "model": "a", "program": "def f12(): return 1", "passes": False},
        {"task_id": 12, "model": "b", "program": "def f12(): pass", "passes": False},
    ]
    made = tmp_path / "new/set.jsonl"
    done = run("repair_set.py", problems, write(tmp_path / "programs.jsonl", programs), "--output", made)
    assert done.stdout == f"3 problems with a wrong program: {made}\n"
    rows = [json.loads(line) for line in made.read_text().splitlines()]
    assert [row["task_id"] for row in rows] == ["12/a", "12/a/2", "12/b"]
    assert [row["buggy_code"][-1] for row in rows] == ["0", "1", "s"]
    assert all(row["test_list"] == ["assert f12() == 12"] for row in rows)


def test_a_program_of_an_unknown_problem_and_a_row_without_its_fields_are_told(problems, tmp_path):
    unknown = write(
        tmp_path / "unknown.jsonl", [{"task_id": 9, "model": "a", "program": "", "passes": False}]
    )
    bare = write(tmp_path / "bare.jsonl", [{"task_id": 11}])
    for programs, said in ((unknown, "problem '9' is not in"), (bare, "expected a row with task_id, model")):
        done = run("repair_set.py", problems, programs, "--output", tmp_path / "set.jsonl")
        assert done.returncode and f"{programs}:1" in done.stderr and said in done.stderr
        assert not (tmp_path / "set.jsonl").exists() and "Traceback" not in done.stderr


def test_the_problems_of_all_files_are_printed_in_the_order_of_the_first(problems, tmp_path):
    samples = write(
        tmp_path / "samples.jsonl",
        [{"task_id": "12"}, {"task_id": "12"}, {"task_id": "11"}, {"task_id": "1"}],
    )
    assert run("common_problems.py", problems, samples).stdout == "11 12\n"
    assert run("common_problems.py", samples, problems).stdout == "12 11\n"

"""The files of a run: truncated, written by several ranks, with duplicate rows, and locked."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cocos.evaluation.sample_files import append_rows, merge_files, rank_path
from cocos.evaluation.sample_rows import has_infra_failure, row_key, trajectory_to_row
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.files.durable import FolderLock
from cocos.files.json_lines import DataError
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.trajectories import Trajectory, Turn
from tests.support.paths import ROOT

KEYS = [(str(n), sample) for n in range(4) for sample in range(2)]


def row(task_id, sample=0, answer="ü\u2028 \N{SNAKE}", infra_error=None):
    result = ExecutionResult(() if infra_error else (Verdict(Status.PASSED),), infra_error)
    turn = Turn((1,), Completion((1, 2), answer), answer, result)
    return trajectory_to_row(Trajectory(Problem(task_id, "Write f.", ("assert f()",)), sample, (turn,)))


def written(folder, rows, rank=0):
    path = rank_path(folder, rank)
    append_rows(path, rows)
    return path.read_bytes() if path.exists() else b""


@pytest.mark.processes
def test_a_file_cut_at_any_byte_loses_its_incomplete_last_row_and_nothing_else(tmp_path, capsys):
    rows = [row(task_id, sample) for task_id, sample in KEYS]
    data = written(tmp_path, rows)
    path = tmp_path / "samples.jsonl"
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        assert list(merge_files(tmp_path, KEYS).values()) == rows[:whole]
        assert path.read_bytes() == b"".join(data.splitlines(keepends=True)[:whole])
        is_torn = cut > 0 and data[cut - 1 : cut] != b"\n"
        assert ("the last row was incomplete" in capsys.readouterr().out) == is_torn
    written(tmp_path, rows[len(merge_files(tmp_path, KEYS)) :])
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", "\x00\x00", "", '{"task_id": "1"}'),
        '{"schema_version": 3, "task_id": "1", "sample": 0, "turns": [{}]}',
    ],
)
def test_a_bad_line_in_the_middle_is_an_error_that_names_file_and_line(tmp_path, line):
    written(tmp_path, [row("0"), row("1")])
    path = tmp_path / "samples.jsonl"
    first, second, _ = path.read_text().split("\n")
    path.write_text(f"{first}\n{line}\n{second}\n")
    with pytest.raises(DataError, match=r"samples\.jsonl:2: not a row of samples"):
        merge_files(tmp_path, KEYS)
    assert path.read_text() == f"{first}\n{line}\n{second}\n"


def test_a_row_of_another_run_is_refused(tmp_path):
    written(tmp_path, [row("0"), row("9", 1)])
    with pytest.raises(
        DataError, match=r"samples\.jsonl:2: sample 1 of problem '9' does not belong to this run"
    ):
        merge_files(tmp_path, KEYS)


def test_the_files_of_all_ranks_become_one_in_the_order_of_the_problems(tmp_path):
    rows = {key: row(*key) for key in KEYS}
    written(tmp_path, [rows["2", 0], rows["0", 1]])
    written(tmp_path, [rows["3", 1], rows["0", 0]], rank=1)
    written(tmp_path, [rows["1", 0]], rank=12)
    merged = merge_files(tmp_path, KEYS)
    assert list(merged) == [("0", 0), ("0", 1), ("1", 0), ("2", 0), ("3", 1)]
    assert [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().split("\n")[:-1]] == list(
        merged.values()
    )
    assert [path.name for path in tmp_path.glob("samples*")] == ["samples.jsonl"]


def test_a_scored_row_replaces_failed_rows_of_its_sample_and_otherwise_the_last_is_kept(tmp_path):
    failed, failed_again, scored = row("0", infra_error="a"), row("0", infra_error="b"), row("0")
    assert has_infra_failure(failed) and not has_infra_failure(scored)
    written(tmp_path, [failed, failed_again])
    assert merge_files(tmp_path, KEYS) == {("0", 0): failed_again}
    written(tmp_path, [scored])
    written(tmp_path, [failed], rank=1)
    assert merge_files(tmp_path, KEYS) == {row_key(scored): scored}
    assert (tmp_path / "samples.jsonl").read_text().count("\n") == 1


def test_text_that_utf_8_cannot_encode_is_read_back_unchanged(tmp_path):
    odd = row("0", answer="\ud800 and \\ud800")
    written(tmp_path, [odd])
    assert merge_files(tmp_path, KEYS) == {("0", 0): odd}


def test_a_folder_is_locked_until_the_process_dies(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from cocos.files.durable import FolderLock\n"
        f"lock = FolderLock(Path({str(tmp_path)!r})); lock.lock_exclusive(); print('exclusive', flush=True)\n"
        "lock.lock_shared(); print('shared', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "exclusive\n" and holder.stdout.readline() == "shared\n"
    mine, rank = FolderLock(tmp_path), FolderLock(tmp_path)
    with pytest.raises(DataError, match="another run is writing there"):
        mine.lock_exclusive()
    rank.lock_shared()  # another rank of the same run
    rank.close()
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    deadline = time.monotonic() + 10
    while True:
        try:
            mine.lock_exclusive()
            break
        except DataError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    mine.close()

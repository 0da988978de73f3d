"""Checks that execute a data set, and the check command."""

import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest

from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.checks.reference_checks import asserts, check_references, constant_programs
from cocos.executor import Executor, ExecutorError
from cocos.problems import DataError, Problem, save_problems
from tests.support.data import contents
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

GOOD = Problem("good", "Double.", ("assert f(1) == 2", "assert f(2) == 4"), "def f(x):\n    return 2 * x")


def found(executor: Executor, *problems: Problem, slow_s: float = 5.0) -> list[tuple[str, str]]:
    stream = (("train", problem) for problem in problems)
    return [
        (f.kind, f.task_id)
        for f in check_references(stream, executor, Journal(None), num_seeds=4, slow_s=slow_s)
    ]


def test_each_fault_of_a_reference_is_found_and_a_good_one_has_no_finding(executor):
    assert found(
        executor,
        GOOD,
        replace(GOOD, task_id="wrong", code="def f(x):\n    return x"),
        replace(GOOD, task_id="broken", code="def f(x:"),
        replace(GOOD, task_id="flaky", code="import random\ndef f(x):\n    return 2 * x if random.random() < .5 else 0"),
        replace(GOOD, task_id="silent", test_list=("f(1)",)),
        replace(GOOD, task_id="always", test_list=("assert f(1) == 2", "assert f(1) == 2")),
        replace(GOOD, task_id="no reference", code=""),
        replace(GOOD, task_id="inexact", test_list=(*GOOD.test_list, "assert f(2**60) == 2305843009213693952.0")),
    ) == [("failing", "wrong"), ("failing", "broken"), ("flaky", "flaky"), ("untested", "silent"), ("constant", "silent"),
          ("constant", "always"), ("inexact", "inexact")]  # fmt: skip
    slow = replace(GOOD, task_id="slow", code="import time\ndef f(x):\n    time.sleep(.3)\n    return 2 * x")
    assert found(executor, GOOD, slow, slow_s=0.5) == [("slow", "slow")]


def test_a_reference_must_pass_hidden_and_challenge_tests_and_runs_before_the_setup_code(executor):
    setup = replace(GOOD, test_list=("assert f(n) == 4",), test_setup_code="n = f(1)")
    assert found(executor, setup) == [("constant", "good")]
    for field in ("hidden_test_list", "challenge_test_list"):
        assert found(executor, replace(GOOD, **{field: ("assert f(3) == 7",)})) == [("failing", "good")]


def test_a_test_that_only_the_programs_own_process_can_judge_is_found_with_its_number_and_reason(executor):
    awaited = "import asyncio\nassert asyncio.run(g()) == 1"
    code = f"{GOOD.code}\nasync def g():\n    return 1"
    marked = replace(GOOD, task_id="marked", code=code, test_list=(*GOOD.test_list, awaited))
    unscored = replace(GOOD, code=code, challenge_test_list=(awaited,))
    stream = [("train", GOOD), ("train", unscored), ("train", marked)]
    [finding] = check_references(stream, executor, Journal(None), num_seeds=2, slow_s=5.0)
    assert (finding.kind, finding.task_id) == ("in_child", "marked")
    assert finding.detail.startswith("1 of 3 tests; test 3: ") and len(finding.detail) > 30


def test_an_entry_point_with_the_name_of_a_builtin_is_the_programs_function(executor):
    code, test = "def sum(xs):\n    return xs[0]", "x = [7, 2]\nassert sum(x) == 7"
    assert found(executor, replace(GOOD, code=code, test_list=(test,), entry_point="sum")) == []


@pytest.mark.parametrize(
    ("test", "is_checked"),
    [
        ("assert f(1) == 2", True),
        ("f(1)", False),
        ("def check(g):\n    assert g(1) == 2\ncheck(f)", True),
        ("def check(g):\n    assert g(1) == 2", False),
        ("def outer():\n    def inner():\n        assert f(1)\n    inner()\nouter()", True),
        ("def outer():\n    def inner():\n        assert f(1)\nouter()", False),
        ("@run\ndef check():\n    assert f(1)", True),
        ("if f(1) != 2:\n    raise ValueError", True),
        ("t = TestCase()\nt.assertEqual(f(1), 2)", True),
        ("class T(TestCase):\n    def test_f(self):\n        self.assertEqual(f(1), 2)", False),
        ("class T(TestCase):\n    def test_f(self):\n        self.assertEqual(f(1), 2)\nT().test_f()", True),
        ("class T(TestCase):\n    def test_f(self):\n        self.assertEqual(f(1), 2)\nunittest.main()", True),
        ("class T(TestCase):\n    def test_f(self):\n        assert f(1)\nunittest.main(exit=False)", False),
        ("class T(TestCase):\n    def test_f(self):\n        assert f(1)\nr = unittest.main(exit=False)\nassert r", True),
    ],
)  # fmt: skip
def test_only_assertions_that_run_count(test, is_checked):
    assert asserts(test) is is_checked


def test_only_constants_that_the_tests_allow_are_tried():
    values = lambda *tests: [value for value, _ in constant_programs(replace(GOOD, test_list=tests))]  # noqa: E731
    assert values("assert f(1) == 2", "assert f(2) == 4") == []
    assert values("assert f(1) == [1, 2]", "assert f(2) == [1,2]") == ["[1, 2]"]
    assert values("assert f(1)", "assert f(2) is True") == ["True"]
    assert values("assert f(1)", "assert not f(2)") == []
    assert "None" in values("assert len(f(1)) < 3")


def test_check_reports_its_findings_and_exits_with_status_1(prepare, tmp_path, capsys):
    save_problems([GOOD], tmp_path / "good.jsonl")
    assert prepare("check", tmp_path / "good.jsonl") == 0
    assert "nothing found" in capsys.readouterr().out
    save_problems([replace(GOOD, task_id="7", code="def f(x): return x")], tmp_path / "train.jsonl")
    assert prepare("check", tmp_path, "--against", tmp_path / "good.jsonl") == 1
    out = capsys.readouterr().out
    assert "failing: train/7: test 1 of 2: failed, AssertionError: expected 2, got 1" in out
    assert "contaminated: train/7: same text as good.jsonl/good" in out
    (tmp_path / "empty.jsonl").write_text("\n")
    assert prepare("check", tmp_path / "empty.jsonl") == 2
    assert prepare("check", tmp_path, tmp_path / "train.jsonl") == 2
    err = capsys.readouterr().err
    assert "empty.jsonl: contains no problems" in err and "train.jsonl: is given twice" in err
    assert prepare("check", tmp_path / "good.jsonl", "--against", "humanevil=x") == 2
    assert "unknown benchmark 'humanevil'; choose one of mbpp" in capsys.readouterr().err


@pytest.mark.processes
def test_preparing_imports_no_torch():
    script = "import sys, cocos.dataprep.data_set, cocos.dataprep.readers, cocos.commands.runner; print({'torch', 'transformers', 'trl'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "set()", run.stderr


@pytest.mark.parametrize("seed", [0, 1])
def test_a_failure_of_the_executor_is_an_error_not_a_finding(seed):
    executor = Executor(1, sandbox="rlimits")
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        list(check_references([("train", GOOD)], executor, Journal(None), 1, 1.0))


WRONG = replace(GOOD, task_id="wrong", code="def f(x):\n    return x")


def check_with(path, executor, problems, conditions=1, error=None) -> list[tuple[str, str]]:
    """Check problems with a journal, of which the block ends with an error."""
    results = []
    with pytest.raises(type(error)) if error else nullcontext(), Journal(path) as journal:
        journal.conditions = conditions
        stream = [("train", problem) for problem in problems]
        results = [(f.kind, f.task_id) for f in check_references(stream, executor, journal)]
        if error:
            raise error
    return results


def test_an_interrupted_check_continues_without_executing_a_reference_again(executor, tmp_path):
    path, closed = tmp_path / "journal", Executor(1, sandbox="rlimits")
    closed.close()
    assert check_with(path, executor, [GOOD, WRONG], error=KeyboardInterrupt()) == [("failing", "wrong")]
    for changed, conditions in ((replace(GOOD, test_list=("assert f(3) == 6",)), 1), (GOOD, 2)):
        with pytest.raises(RuntimeError, match="closed"):  # it would be executed
            check_with(path, closed, [changed], conditions)
    path.write_bytes(path.read_bytes() + b'["cut off')
    assert check_with(path, closed, [GOOD, WRONG]) == [("failing", "wrong")]
    assert not path.exists()  # the check is complete


def test_a_journal_outlives_a_failure_of_the_executor_but_not_a_mistake_in_the_data(executor, tmp_path):
    check_with(tmp_path / "a", executor, [GOOD], error=ExecutorError("broken"))
    check_with(tmp_path / "b", executor, [GOOD], error=DataError("no rows"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.processes
def test_a_preparation_that_was_interrupted_in_the_references_writes_what_one_in_one_piece_writes(
    prepare, tmp_path
):
    data = tmp_path / "mine.jsonl"
    problems = [replace(GOOD, task_id=str(n), text=f"Double, task {n}.") for n in range(400)]
    save_problems([*problems, WRONG], data)
    words = ("jsonl", "--input", data, "--checks", "references", "--sandbox", "rlimits", "--splits", 1, 0, 0)
    script = str(ROOT / "scripts/prepare_data.py")
    command = [sys.executable, script, *map(str, words), "--output_dir", str(tmp_path / "out")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / ".out-references.jsonl"
    wait_until(lambda: journal.exists() and journal.stat().st_size)
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=300)
    assert running.returncode == 130
    assert complaint.splitlines()[-1].endswith("out was not written; the same command continues the checks")
    assert journal.exists() and not (tmp_path / "out").exists()
    assert prepare(*words, "--output_dir", tmp_path / "out") == 0
    assert prepare(*words, "--output_dir", tmp_path / "once") == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "once") and not journal.exists()

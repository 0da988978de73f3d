"""The executor's contract: one adversarial property per test."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cocos.executor import ExecutionResult, Executor, ExecutorError, Limits, Program, Status
from cocos.problems import load_problems

DATASETS = Path(__file__).resolve().parents[2] / "shared" / "datasets"
GOOD = Program("def f(x):\n    return x + 1", ("assert f(1) == 2", "assert f(2) == 3"))


@pytest.fixture(scope="module")
def executor():
    with Executor(num_workers=2, limits=Limits(wall_s=10)) as executor:
        yield executor


def statuses(result: ExecutionResult) -> list[Status]:
    return [verdict.status for verdict in result.verdicts]


def dataset(name: str) -> Path:
    path = DATASETS / name
    if not path.exists():
        pytest.skip(f"{path} is not there: this test needs the benchmark data beside the repository")
    return path


def test_a_right_program_passes_every_test(executor):
    [result] = executor.run([GOOD])
    assert (
        result.all_passed
        and result.num_passed == 2
        and result.fraction == 1.0
        and not result.is_infra_failure
    )


def test_each_test_has_its_own_verdict(executor):
    [result] = executor.run(
        [Program("def f(x): return 1", ("assert f(0) == 0", "assert f(1) == 1", "assert f(1) == 1/0"))]
    )
    assert statuses(result) == [Status.FAILED, Status.PASSED, Status.ERROR]
    assert (
        result.verdicts[2].error_type == "ZeroDivisionError"
        and result.num_passed == 1
        and not result.all_passed
    )


def test_a_syntax_error_is_the_programs_own_error(executor):
    [result] = executor.run([Program("def f(x) return", ("assert True == f(1)",))])
    assert (
        result.error_type == "SyntaxError" and result.num_passed == 0 and statuses(result) == [Status.ERROR]
    )


def test_setup_runs_after_the_code_and_before_the_tests(executor):
    [result] = executor.run(
        [
            Program(
                "class Node: pass\ndef f(n): return type(n).__name__",
                ("assert f(n) == 'Node'",),
                "n = Node()",
            )
        ]
    )
    assert result.all_passed


def test_no_tests_is_an_error_and_never_a_pass():
    with pytest.raises(ValueError, match="one test or more"):
        Program("x = 1", ())


def test_a_loop_is_killed_at_the_wall_limit(executor):
    started = time.monotonic()
    program = Program(
        "def f():\n    while True: pass", ("assert f()", "assert 1 == 1"), limits=Limits(wall_s=1)
    )
    [result] = executor.run([program])
    assert statuses(result) == [Status.TIMEOUT, Status.NOT_RUN] and time.monotonic() - started < 8


def test_verdicts_before_a_timeout_are_kept(executor):
    tests = ("assert f(1) == 1", "assert f(0) == 0")
    program = Program("def f(x):\n    while not x: pass\n    return x", tests, limits=Limits(wall_s=1))
    assert statuses(executor.run([program])[0]) == [Status.PASSED, Status.TIMEOUT]


def test_a_program_that_ignores_every_signal_is_still_killed(executor):
    code = "import signal, time\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU): signal.signal(s, signal.SIG_IGN)"
    [result] = executor.run(
        [Program(code + "\ntime.sleep(60)", ("assert True is True",), limits=Limits(wall_s=1))]
    )
    assert statuses(result) == [Status.TIMEOUT]


def test_a_grandchild_in_its_own_session_dies_too():
    before = processes_inside()
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(300)\n    os._exit(0)"
    with Executor(num_workers=1) as executor:
        executor.run([Program(code, ("assert 1 == 1",))])
        executor.run([GOOD])
        assert len(processes_inside() - before) <= 2  # the zygote, and bubblewrap outside it


def test_memory_beyond_the_limit_is_a_verdict(executor):
    [result] = executor.run(
        [Program("def f(): return len(bytearray(10**10))", ("assert f() == 10**10", "assert 1 == 1"))]
    )
    assert statuses(result)[0] is Status.MEMORY


def test_endless_output_is_harmless(executor):
    program = Program(
        "import sys\nfor _ in range(2000): sys.stdout.write('x' * 100000)\ndef f(): return 1",
        ("assert f() == 1",),
    )
    assert executor.run([program])[0].all_passed


def test_stdin_is_at_its_end(executor):
    code = "try:\n    input()\nexcept EOFError:\n    got = 'eof'"
    assert executor.run([Program(code, ("assert got == 'eof'",))])[0].all_passed


def test_printing_or_exiting_earns_nothing(executor):
    for ending in (
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "raise SystemExit",
        "exit()",
        "if 0: \\",
        "'''",
    ):
        [result] = executor.run(
            [Program(f"def f(): return 0\nprint('[0, 0.1]')\n{ending}", ("assert f() == 1",))]
        )
        assert result.num_passed == 0 and not result.is_infra_failure, ending


def test_an_exception_with_an_odd_str_is_only_an_error(executor):
    code = "class E(Exception):\n    def __str__(self): raise E\ndef f(): raise E"
    assert statuses(executor.run([Program(code, ("assert f() == 1",))])[0]) == [Status.ERROR]


def test_one_program_leaves_nothing_for_the_next(executor):
    programs = [
        Program("import math, builtins\nmath.pi = 3\nbuiltins.len = lambda x: 0", ("assert 1 == 1",))
    ] * 2
    after = Program("import math\ndef f(): return len([1, 2]), math.pi > 3.1", ("assert f() == (2, True)",))
    assert executor.run([*programs, after, after])[-1].all_passed


def test_results_keep_order_and_identical_programs_run_once(executor):
    slow = Program("import time, random\ntime.sleep(0.3)\nx = random.random()", ("assert x == 2",))
    results = executor.run([slow, GOOD, slow, GOOD])
    assert [r.all_passed for r in results] == [False, True, False, True] and results[0] is results[2]


def test_it_works_from_any_thread(executor):
    results: list[ExecutionResult] = []
    threads = [threading.Thread(target=lambda: results.extend(executor.run([GOOD]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(result.all_passed for result in results)


def test_a_dead_worker_is_replaced_and_its_job_run_again():
    others = children_of_this_process()
    with Executor(num_workers=1) as executor:
        executor.run([GOOD])
        slow = executor.submit(Program("import time\ntime.sleep(1)\ndef f(): return 1", ("assert f() == 1",)))
        time.sleep(0.3)
        [worker] = children_of_this_process() - others
        os.kill(worker, 9)
        assert slow.result().all_passed


def test_two_dead_workers_are_an_infrastructure_failure_and_no_score():
    others = children_of_this_process()
    with Executor(num_workers=1) as executor:
        future = executor.submit(Program("import time\ntime.sleep(3)", ("assert 1 == 1",)))
        killed: set[int] = set()
        while len(killed) < 2:
            for worker in children_of_this_process() - killed - others:
                time.sleep(0.4)
                os.kill(worker, 9)
                killed.add(worker)
            time.sleep(0.05)
        result = future.result()
        assert (
            result.is_infra_failure
            and result.num_passed is None
            and result.fraction is None
            and not result.all_passed
        )
        assert executor.run([GOOD])[0].all_passed


def test_a_closed_executor_refuses_and_leaves_no_process():
    others = children_of_this_process()
    executor = Executor(num_workers=2)
    executor.run([GOOD])
    executor.close()
    executor.close()
    assert children_of_this_process() == others
    with pytest.raises(ExecutorError, match="closed"):
        executor.submit(GOOD)


@pytest.mark.parametrize(("name", "count"), [("mbpp.jsonl", 974), ("sanitized-mbpp.json", 427)])
def test_every_reference_solution_passes(executor, name, count):
    problems = load_problems(dataset(name))
    limits = Limits(wall_s=60, cpu_s=50)  # one MBPP program takes 5 s on an idle processor
    results = executor.run(
        [Program(p.code, p.test_list + p.challenge_test_list, p.setup, limits) for p in problems]
    )
    assert [p.task_id for p, result in zip(problems, results, strict=True) if not result.all_passed] == []
    assert len(results) == count


def test_the_command_line_reports_what_fails(tmp_path):
    good, bad = (
        '{"text": "t", "code": "def f(): return %d", "test_list": ["assert f() == 1"]}' % n for n in (1, 2)
    )
    file = tmp_path / "two.jsonl"
    file.write_text(f"{good}\n{bad}\n")
    run = subprocess.run(
        [sys.executable, "-m", "cocos.executor", "check", str(file)], capture_output=True, text=True
    )
    assert (
        run.returncode == 1
        and "1/2 references pass" in run.stdout
        and "2: failed AssertionError" in run.stdout
    )


def children_of_this_process() -> set[int]:
    """Processes whose parent is this one, from any of its threads."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found


def processes_inside() -> set[int]:
    """Every process, zombies too, that descends from a worker of any executor."""
    listing = subprocess.run(["ps", "-e", "-o", "pid=,args="], capture_output=True, text=True).stdout
    return {int(line.split()[0]) for line in listing.splitlines() if "executor/inside" in line}

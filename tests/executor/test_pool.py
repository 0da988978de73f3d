"""The executor's contract: one adversarial property per test."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from cocos.executor import ExecutionResult, Executor, ExecutorError, Limits, Program, Status, pool, runner
from cocos.executor.limits import available_memory_mb
from cocos.executor.sandboxes import levels
from cocos.executor.sandboxes.interpreter import INSIDE, INTERPRETER, START, Interpreter
from cocos.executor.sandboxes.sandbox import Sandbox
from tests.support.executor import (
    EVERY_LEVEL,
    GOOD,
    at_night,
    is_zombie,
    level_or_skip,
    offered,
    processes_below,
    statuses,
    workers,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.processes  # most of them start and kill workers

LEVEL = offered("namespaces", "seccomp") or "rlimits"


@pytest.fixture(scope="module")
def executor():
    with Executor(num_workers=2, sandbox=LEVEL) as executor:
        yield executor


def test_each_test_has_its_own_verdict(executor):
    tests = ("assert f(0) == 0", "assert f(1) == 1", "assert f(1) == 1/0")
    [result] = executor.run([Program("def f(x): return 1", tests)])
    assert statuses(result) == [Status.FAILED, Status.PASSED, Status.ERROR]
    assert result.verdicts[2].error_type == "ZeroDivisionError"
    assert result.num_passed == 1 and not result.all_passed
    assert result.isolation == executor.isolation == LEVEL


def test_a_syntax_error_is_the_programs_own_error(executor):
    [result] = executor.run([Program("def f(x) return", ("assert True == f(1)",))])
    assert result.load_error.error_type == "SyntaxError"
    assert result.num_passed == 0 and statuses(result) == [Status.ERROR]


def test_no_tests_is_an_error_and_never_a_pass():
    with pytest.raises(ValueError, match="one test or more"):
        Program("x = 1", ())


class Text(str):
    pass


def test_a_part_of_a_program_of_the_wrong_type_is_refused():
    for parts in (
        *({"code": Text("x = 1")}, {"setup": Text("")}, {"test_list": (Text("assert x"),)}, {"test_list": ["assert x"]}),
        *({"entry_point": None}, {"stdin": b""}, {"files": {"a": "b"}}, {"files": (("a", b"b"),)}, {"limits": 3}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must be|give a"):
            Program(**{"code": "x = 1", "test_list": ("assert x",), **parts})


def test_a_loop_is_killed_at_the_wall_limit_and_verdicts_before_it_are_kept(executor):
    limits = Limits(wall_s=1, cpu_s=60)
    tests = ("assert f(1) == 1", "assert f(0) == 0", "assert f(1) == 1")
    program = Program("def f(x):\n    while not x: pass\n    return x", tests, limits=limits)
    [result] = executor.run([program])
    assert statuses(result) == [Status.PASSED, Status.TIMEOUT, Status.NOT_RUN]
    assert result.verdicts[1].error_type == "WallLimit"


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
    with Executor(num_workers=1, sandbox=LEVEL) as executor:
        [worker] = workers(executor)
        *_, idle = processes_below(worker)  # which ends when a program with other limits comes
        code, limits = "import time\ntime.sleep(3)\ndef f(): return 1", Limits(open_files=32)
        slow = executor.submit(Program(code, ("assert f() == 1",), limits=limits))
        wait_until(lambda: idle not in processes_below(worker))
        os.kill(worker, 9)
        assert slow.result().all_passed
        assert executor.stats.worker_restarts == 1 and executor.stats.infra_failures == 0


@pytest.mark.parametrize("level", ["namespaces", *at_night("seccomp", "rlimits")])
def test_a_program_ends_with_its_worker(level):
    code = "import time\ntime.sleep(300)"
    with Executor(num_workers=1, sandbox=level_or_skip(level)) as executor:
        *_, idle = processes_below(workers(executor)[0])  # which ends when a program with other limits comes
        limits = Limits(wall_s=5, open_files=32)
        future = executor.submit(Program(code, ("assert 1 == 1",), limits=limits))
        wait_until(lambda: idle not in processes_below(workers(executor)[0]))
        before = processes_below(workers(executor)[0])
        os.kill(workers(executor)[0], 9)
        wait_until(lambda: all(map(is_zombie, before)), timeout_s=60)  # those that are gone count
        assert future.result().verdicts[0].status is Status.TIMEOUT


def test_a_program_that_waits_too_long_for_a_worker_is_an_infrastructure_failure():
    slow = [Program("import time\ntime.sleep(4)", (f"assert {n} == {n}",)) for n in range(3)]
    with Executor(num_workers=1, sandbox=LEVEL, max_wait_s=3.0) as executor:
        first, *late = executor.run(slow)
        assert first.all_passed
        assert all("not started within 3 s" in result.infra_error for result in late)
        assert executor.stats.infra_failures == 2 and executor.stats.worker_restarts == 0
        assert executor.run([GOOD])[0].all_passed


def test_a_program_that_ends_its_worker_fails_and_cannot_stop_the_run(monkeypatch):
    monkeypatch.setattr(pool, "MAX_INFRA_FAILURES", 0)
    # Level rlimits lets a program kill the zygote.
    code, tests = "import os\nn = {}\nos.kill(os.getppid(), 9)", ("assert 1 == 1", "assert n == n")
    killers = [Program(code.format(n), tests) for n in range(4)]
    with Executor(num_workers=2, sandbox="rlimits") as executor:
        *results, good = executor.run([*killers, GOOD])
        assert good.all_passed and executor.stats.infra_failures == 0
        for result in results:
            assert result.num_passed == 0 and statuses(result) == [Status.ERROR] * 2
            assert result.verdicts[0].error_type == "WorkerKilled"
        assert executor.stats.worker_restarts == 2 * len(killers)


@pytest.fixture
def breakable(monkeypatch):
    """The executor's level; after `breakable(start)` a new worker is what `start` returns."""
    [level] = [level for level in levels.LEVELS if level.name == LEVEL]
    replacements = []

    def launch(limits, interpreter):
        return replacements[-1]() if replacements else level.launch(limits, interpreter)

    monkeypatch.setattr(levels, "LEVELS", (replace(level, launch=launch),))
    monkeypatch.setattr(levels, "NAMES", (LEVEL,))
    return replacements.append


def raising(error):
    def function(*_):
        raise error

    return function


def kill_workers(executor):
    pids = [pid for worker in workers(executor) for pid in processes_below(worker)]
    for worker in workers(executor):
        os.kill(worker, 9)
    wait_until(lambda: all(map(is_zombie, pids)))


# What bubblewrap and the docker client raise where they fail.
START_ERRORS = [
    OSError("no more processes"),
    json.JSONDecodeError("no PID", "", 0),
    subprocess.TimeoutExpired("docker", 30),
]


def test_a_worker_that_cannot_be_started_is_an_infrastructure_failure_and_no_score(breakable):
    with Executor(num_workers=1, sandbox=LEVEL, min_isolation=LEVEL) as executor:
        breakable(raising(START_ERRORS[0]))
        kill_workers(executor)
        for error in START_ERRORS:
            breakable(raising(error))
            [result] = executor.run([GOOD])
            assert result.is_infra_failure and result.num_passed is None and not result.all_passed
            assert result.verdicts == () and str(error) in result.infra_error


def test_too_many_infrastructure_failures_stop_the_run(breakable, monkeypatch):
    monkeypatch.setattr(pool, "MAX_INFRA_FAILURES", 3)
    executor = Executor(num_workers=2, sandbox=LEVEL, min_isolation=LEVEL)
    breakable(raising(START_ERRORS[0]))
    kill_workers(executor)
    with pytest.raises(ExecutorError, match="stopped: more than 3 of the last 200"):
        executor.run([Program(GOOD.code + f"\nn = {n}", GOOD.test_list) for n in range(50)])
    with pytest.raises(ExecutorError, match="no more processes"):
        executor.submit(GOOD)
    executor.close()


def test_the_last_words_of_a_worker_are_in_the_reason(breakable):
    with Executor(num_workers=1, sandbox=LEVEL, min_isolation=LEVEL) as executor:
        breakable(lambda: Sandbox([sys.executable, "-c", "import sys; sys.exit('no space left')"], {}))
        kill_workers(executor)
        assert "no space left" in executor.run([GOOD])[0].infra_error


def test_a_worker_that_cannot_be_cleaned_up_costs_no_verdict(breakable, caplog):
    with Executor(num_workers=1, sandbox=LEVEL, min_isolation=LEVEL) as executor:
        clean_up = raising(subprocess.TimeoutExpired("docker rm", 30))
        command = [INTERPRETER, *START, json.dumps({"scratch": "/nowhere"})]
        environment = Interpreter().environment(str(INSIDE.parent))
        breakable(lambda: Sandbox(command, environment, clean_up=clean_up))
        kill_workers(executor)
        assert "/nowhere" in executor.run([GOOD])[0].infra_error
    assert "docker rm" in caplog.text


def test_an_executor_whose_self_test_fails_refuses_to_start(monkeypatch):
    leaky = [replace(level, launch=levels.LEVELS[-1].launch) for level in levels.LEVELS]
    monkeypatch.setattr(levels, "LEVELS", tuple(leaky))
    words = r"self-test .*: expected that the network is out of reach, but got failed"
    with pytest.raises(ExecutorError, match=words):
        Executor(num_workers=1, sandbox=LEVEL)


def test_below_the_minimum_isolation_it_refuses_and_names_the_remedy(monkeypatch):
    with pytest.raises(ExecutorError, match="below the minimum isolation"):
        Executor(sandbox="rlimits", min_isolation="namespaces")
    poor = [replace(level, missing_reason=lambda: "install this") for level in levels.LEVELS[:-1]]
    monkeypatch.setattr(levels, "LEVELS", (*poor, levels.LEVELS[-1]))
    with pytest.raises(ExecutorError, match="namespaces: install this"):
        Executor(sandbox="auto")
    with pytest.raises(ValueError, match="unknown isolation level 'jail'"):
        Executor(sandbox="jail")


def test_the_process_that_waits_for_a_program_is_replaced_if_limits_differ_or_it_has_ended():
    code = "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_AS)[0] >> 20\n"
    sizes = (300, 300, 400, 300)
    programs = [
        Program(f"{code}#{n}", (f"assert f() == {size}",), limits=Limits(memory_mb=size))
        for n, size in enumerate(sizes)
    ]
    with Executor(num_workers=1, sandbox="rlimits") as executor:
        assert all(result.all_passed for result in executor.run(programs))
        [zygote] = workers(executor)
        wait_until(lambda: len(processes_below(zygote)) == 3)  # it, the driver, and the one that waits
        children = processes_below(zygote)[1:]
        for pid in children:
            with suppress(ProcessLookupError):  # the one that waits may end with the driver
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: all(map(is_zombie, children)))
        assert executor.run(programs[:1])[0].all_passed and workers(executor) == [zygote]


@contextmanager
def starved(executor):
    """Make the executor's workers share one processor with busy processes."""
    cpus = os.sched_getaffinity(0)
    # Each in a session of its own, as programs are: Linux may share a processor among sessions.
    command = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(command, start_new_session=True) for _ in range(16)]
    pids = [pid for worker in workers(executor) for pid in processes_below(worker)]
    try:
        for pid in [*pids, *(hog.pid for hog in hogs)]:
            os.sched_setaffinity(pid, {min(cpus)})
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        for pid in pids:
            with suppress(ProcessLookupError):  # the process of a program has ended
                os.sched_setaffinity(pid, cpus)


def test_a_starved_timeout_gets_a_second_attempt_that_runs_alone(tmp_path):
    # Level rlimits lets programs write here: each one logs its start and its end.
    log = tmp_path / "log"
    note = f"import os, time\ndef note(text): open({str(log)!r}, 'a').write(text + '\\n')\n"
    # The first attempt never ends, the second one at once: on no machine is the first one fast enough.
    first = f"try: os.mkdir({str(tmp_path / 'first')!r})\nexcept FileExistsError: time.sleep(1)\nelse:\n    while True: pass"
    hungry = f"{note}note('starved starts')\n{first}\nnote('starved ends')"
    others = [f"{note}note('{n} starts')\ntime.sleep(1.5)\nnote('{n} ends')" for n in range(4)]
    programs = [Program(code, ("assert 1 == 1",), limits=Limits(wall_s=60)) for code in others]
    programs.insert(0, Program(hungry, ("assert 1 == 1",), limits=Limits(wall_s=3)))
    with Executor(num_workers=2, sandbox="rlimits") as executor:
        with starved(executor):
            futures = [executor.submit(program) for program in programs]
            wait_until(lambda: executor.stats.retried_timeouts or futures[0].done())
        assert all(future.result().all_passed for future in futures)
        assert executor.stats.retried_timeouts == 1 and executor.stats.timeouts == 0
    lines = log.read_text().splitlines()
    second_start = len(lines) - 1 - lines[::-1].index("starved starts")
    assert lines[second_start + 1] == "starved ends" and lines.count("starved starts") == 2
    running = {line.split()[0] for line in lines[:second_start] if line.endswith("starts")}
    running -= {line.split()[0] for line in lines[:second_start] if line.endswith("ends")}
    assert running == {"starved"}  # only its own first attempt, which was killed


def test_a_second_starved_timeout_counts():
    with Executor(num_workers=2, sandbox=LEVEL, limits=Limits(wall_s=1)) as executor, starved(executor):
        [result] = executor.run([Program("while True: pass", ("assert 1 == 1",))])
        assert statuses(result) == [Status.TIMEOUT]
        assert executor.stats.retried_timeouts == 1 and executor.stats.timeouts == 1


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_a_program_that_sleeps_is_not_starved(level):
    limits = Limits(wall_s=5)  # its start may wait for 0.5 s
    with Executor(num_workers=2, sandbox=level_or_skip(level), limits=limits) as executor:
        lock = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"
        waiting = ("import time\ntime.sleep(60)", lock)
        results = executor.run([Program(code, ("assert 1 == 1",)) for code in waiting])
        assert [statuses(result) for result in results] == [[Status.TIMEOUT]] * 2
        assert executor.stats.retried_timeouts == 0 and executor.stats.timeouts == 2


def test_a_timeout_that_had_the_processor_counts_at_once():
    with Executor(num_workers=1, sandbox=LEVEL, limits=Limits(wall_s=20, cpu_s=1)) as executor:
        [result] = executor.run([Program("while True: pass", ("assert 1 == 1",))])
        assert result.verdicts[0].error_type == "CpuLimit" and executor.stats.retried_timeouts == 0
        assert executor.stats.timeouts == 1


def test_limits_above_the_containers_own_are_clamped(executor):
    huge = Limits(memory_mb=1 << 30, open_files=1 << 30)
    assert huge.clamped().memory_mb <= available_memory_mb()
    assert executor.run([replace(GOOD, limits=huge)])[0].all_passed


def test_a_limit_that_makes_no_sense_is_refused():
    values = {"wall_s": 0, "memory_mb": 1, "cpu_s": 2.5, "open_files": float("nan"), "processes": -1}
    for field, value in values.items():
        with pytest.raises(ValueError, match=field):
            Limits(**{field: value})


def test_a_worker_is_a_fresh_interpreter_and_no_fork_of_this_one(executor):
    code = "import sys, threading\ndef seen(): return sorted({'cocos', 'pytest', 'torch'} & set(sys.modules)), threading.active_count()"
    assert executor.run([Program(code, ("assert seen() == ([], 1)",))])[0].all_passed


def test_a_programs_own_limits_win_over_the_executors(executor):
    program = Program("def f(): return len(bytearray(200 << 20))", (f"assert f() == {200 << 20}",))
    small, large = executor.run([replace(program, limits=Limits(memory_mb=100)), program])
    assert small.verdicts[0].status is Status.MEMORY and large.all_passed


def test_a_stream_yields_results_as_they_finish(executor):
    slow = Program("import time\ntime.sleep(1)", ("assert 1 == 1",))
    assert [index for index, _ in executor.stream([slow, GOOD, GOOD])] == [1, 2, 0]


def test_a_closed_executor_refuses_and_leaves_no_process():
    executor = Executor(num_workers=2, sandbox=LEVEL)
    pids = [pid for worker in workers(executor) for pid in processes_below(worker)]
    executor.close()
    executor.close()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    with pytest.raises(ExecutorError, match="closed"):
        executor.submit(GOOD)


# Python itself and what the executor opens need few files; a worker needs three.
MANY_WORKERS = """
import resource, sys
from cocos.executor import Executor, ExecutorError, Program
resource.setrlimit(resource.RLIMIT_NOFILE, tuple(map(int, sys.argv[2:])))
try:
    with Executor(num_workers=4, sandbox=sys.argv[1]) as executor:
        print(executor.run([Program("def f(): return 1", ("assert f() == 1",))])[0].all_passed)
except ExecutorError as error:
    print(error)
"""


def test_the_limit_on_open_files_is_raised_or_the_number_that_is_needed_is_named():
    def outcome(soft: int, hard: int) -> str:
        command = [sys.executable, "-c", MANY_WORKERS, LEVEL, str(soft), str(hard)]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    refused = outcome(20, 40)
    needed = int(re.fullmatch(r"4 workers need (\d+) open files, .* 40; .*--executor_workers\)", refused)[1])
    assert outcome(20, needed) == "True"


def test_a_process_pool_is_refused_by_name(executor):
    code = """
import concurrent.futures, multiprocessing, multiprocessing.pool
def pool(): multiprocessing.Pool(2)
def executor(): concurrent.futures.ProcessPoolExecutor(2).submit(len, "ab").result()
def queue(): multiprocessing.Queue()
def threads():
    with concurrent.futures.ThreadPoolExecutor(2) as pool: return list(pool.map(len, ["ab", "c"]))
"""
    tests = tuple(f"assert {name}() == [2, 1]" for name in ("pool", "executor", "queue", "threads"))
    [result] = executor.run([Program(code, tests)])
    assert statuses(result) == [*[Status.ERROR] * 3, Status.PASSED]
    assert all("process pool" in verdict.message for verdict in result.verdicts[:3])


def test_a_scratch_folder_that_holds_files_of_others_is_never_emptied(tmp_path):
    (tmp_path / "precious").write_text("x")
    command = [sys.executable, *START, json.dumps({"scratch": str(tmp_path)})]
    environment = Interpreter().environment(str(INSIDE.parent))
    run = subprocess.run(command, input=b"", capture_output=True, env=environment)
    assert run.returncode != 0 and b"contains files that would be deleted" in run.stderr
    assert (tmp_path / "precious").exists()


def test_a_test_that_can_only_run_beside_the_program_is_marked_with_the_reason(executor):
    test = "import io, sys\nsys.stdout = io.StringIO()\nf()\nassert sys.stdout.getvalue() == 'hi\\n'"
    [result] = executor.run([Program("def f(): print('hi')", (test,))])
    assert result.all_passed and result.verdicts[0].in_child
    assert result.verdicts[0].in_child_reason == "changes the module sys"


TOO_DEEP = [
    f"assert f(1) == {text}"
    for text in (
        *("+".join("1" * 260), "-" * 7000 + "1", "not " * 300 + "1", "f(" * 190 + "1" + ")" * 190, "[" * 199 + "]" * 199),
        *("1" + ".real" * 300, "[" * 5000, "(" * 150 + ")" * 150, "\n + ".join(["'a'"] * 400), "\0", "\ud800", "1 if " * 900),
    )
]  # fmt: skip


def test_no_test_makes_the_executor_fail(executor):
    results = executor.run([Program("def f(x): return 5", (test,)) for test in TOO_DEEP])
    assert not any(result.is_infra_failure for result in results)
    assert [test for test, result in zip(TOO_DEEP, results, strict=True) if result.all_passed] == [
        TOO_DEEP[3]
    ]


def test_an_executor_error_in_planning_is_an_infrastructure_failure(executor, monkeypatch):
    monkeypatch.setattr(runner, "plan_tests", raising(KeyError("surprise")))
    assert "surprise" in executor.run([Program("n = 1", ("assert n == 3",))])[0].infra_error


def test_a_forked_process_is_told_that_the_executor_is_its_parents():
    code = """
import os
from cocos.executor import Executor, ExecutorError, Program
with Executor(num_workers=1, sandbox="rlimits") as executor:
    child = os.fork()
    if not child:
        try: executor.submit(Program("", ("assert f() == 1",)))
        except ExecutorError as error: os._exit(7 if "parent process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_a_failed_clean_up_is_no_exception_under_strict_warnings():
    code = """
import glob, os, pathlib, signal, warnings
warnings.simplefilter("error")
from cocos.executor import Executor, Program
from cocos.executor.sandboxes.sandbox import Sandbox
real = Sandbox.kill
def kill(sandbox):
    real(sandbox)
    raise OSError("killpg failed")
Sandbox.kill = kill
with Executor(num_workers=1, sandbox="rlimits") as executor:
    for path in glob.glob("/proc/self/task/*/children"):
        for pid in pathlib.Path(path).read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    [result] = executor.run([Program("def f(): return 1", ("assert f() == 1",))])
    assert result.all_passed, result
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "left something behind" in run.stderr, run.stderr

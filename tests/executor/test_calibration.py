"""Limits from reference solutions."""

from dataclasses import replace

import pytest

from cocos.executor import Executor, Limits, Program, Status
from cocos.executor.calibration import calibrate
from tests.support.executor import offered, statuses

pytestmark = pytest.mark.processes

LIMITS = Limits(wall_s=4, cpu_s=4)
BUSY = "import time\ndef f(n):\n    while time.process_time() < n: pass\n    return 1"
SLEEPY = "import time\ndef f(n):\n    time.sleep(n)\n    return 1"


@pytest.fixture(scope="module")
def executor():
    with Executor(1, LIMITS, sandbox=offered("namespaces", "seccomp") or "rlimits") as executor:
        yield executor


def test_a_limit_is_a_multiple_of_the_references_time_between_floor_and_the_executors_limit(executor):
    references = [
        Program("def f(): return 1", ("assert f() == 1",)),
        Program(BUSY, ("assert f(0.2) == 1",)),
        Program(BUSY, ("assert f(0.2) == 1", "assert f(0.4) == 1")),  # the processor time of both tests
        Program(BUSY, ("assert f(0.6) == 1",)),
        Program(SLEEPY, ("assert f(1.5) == 1",)),  # takes no processor time, and needs its 1.5 s all the same
        Program("def f(): return 2", ("assert f() == 1",)),
    ]
    fast, busy, twice, long, sleepy, wrong = limits = calibrate(executor, references, factor=7)
    assert (fast.wall_s, fast.cpu_s) == (1.0, 1)
    assert 1.4 <= busy.wall_s < 2.8 <= twice.wall_s < 4 and twice.cpu_s in (3, 4)
    assert long == wrong == executor.limits
    assert 1.5 <= sleepy.wall_s < 4
    assert all(replace(executor.limits, wall_s=one.wall_s, cpu_s=one.cpu_s) == one for one in limits)
    within = [replace(program, limits=limit) for program, limit in zip(references[:5], limits, strict=False)]
    # Three passes, since the machine can stall for longer than a limit.
    passes = [executor.run(within) for _ in range(3)]
    assert all(any(result.all_passed for result in results) for results in zip(*passes, strict=True))


def test_a_program_that_is_much_slower_than_the_reference_times_out(executor):
    [limit] = calibrate(executor, [Program("def f(): return 1", ("assert f() == 1",))], factor=3, floor_s=0.3)
    [result] = executor.run([Program(SLEEPY, ("assert f(9) == 1",), limits=limit)])
    assert statuses(result) == [Status.TIMEOUT] and result.duration_s < LIMITS.wall_s


def test_the_factor_is_above_0(executor):
    with pytest.raises(ValueError, match="factor is 0; give a number above 0"):
        calibrate(executor, [], factor=0)

"""Programs that could waste the time of the pool."""

import pytest

from cocos.executor import Executor, Limits, Program
from tests.executor.test_pool import starved
from tests.support.executor import offered
from tests.support.waiting import wait_until

pytestmark = pytest.mark.processes

LEVEL = offered("namespaces", "seccomp") or "rlimits"
THREADS = """
import hashlib, threading
def work():
    while True: hashlib.pbkdf2_hmac('sha256', b'x', b'y', 300_000)  # without the lock of the interpreter
for _ in range(13): threading.Thread(target=work, daemon=True).start()
work()  # the main thread waits for the others
"""


def test_threads_that_wait_for_each_other_get_no_second_attempt_that_one_would_not_get():
    limits = Limits(wall_s=2, cpu_s=60)
    second_attempts = []
    for code in (
        "while True: pass",
        THREADS,
    ):  # on a busy machine, the first one waits for other processes, too
        with Executor(num_workers=1, sandbox=LEVEL, limits=limits) as executor:
            executor.run([Program(code, ("assert x == 1",))])
            assert executor.stats.timeouts == 1
            second_attempts.append(executor.stats.retried_timeouts)
    of_one, of_many = second_attempts
    assert of_many <= of_one


def test_eighty_megabytes_of_code_are_read_in_time():
    code = "#" * (80 << 20) + "\ndef f(x): return x + 1"
    with Executor(num_workers=1, sandbox=LEVEL, limits=Limits(wall_s=20)) as executor:
        # Parts that are added to a bytes object would take quadratic time: minutes.
        [result] = executor.run([Program(code, ("assert f(1) == 2",))])
        assert result.all_passed, result
        assert executor.stats.worker_restarts == 0


def test_a_second_attempt_has_the_time_that_the_first_one_waited(tmp_path):
    # The first attempt never ends, and waits for most of its 4 s. The second one needs 4.3 s on any machine. At level
    # rlimits it sees that it is the second.
    first = "import os, time\ntry: os.mkdir({!r})\nexcept FileExistsError: time.sleep(4.3)\nelse:\n    while True: pass"
    program = Program(first.format(str(tmp_path / "first")), ("assert 1 == 1",))
    with Executor(num_workers=1, sandbox="rlimits", limits=Limits(wall_s=4, cpu_s=9)) as executor:
        with starved(executor):
            future = executor.submit(program)
            wait_until(lambda: executor.stats.retried_timeouts or future.done())
        assert future.result().all_passed and executor.stats.retried_timeouts == 1

"""Many programs, a fifth of them hostile, while workers are killed: every verdict is right and nothing leaks.

COCOS_SOAK sets the number of programs: 1000 by default, which takes some seconds; 10000 for the full soak.
"""

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cocos.executor import Executor, Limits, Program, Status
from tests.support.executor import offered, workers, zombies

pytestmark = pytest.mark.processes

COUNT = int(os.environ.get("COCOS_SOAK", "1000"))
KILL_EVERY = 250
BATCH = 250
# A hostile program and the status that its one test must have.
HOSTILE = {
    "import os\nos._exit(0)": Status.ERROR,
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)": Status.ERROR,
    "import ctypes\nctypes.string_at(0)": Status.ERROR,
    "held = bytearray(1 << 33)": Status.MEMORY,
    "import os\ntry:\n    for _ in range(50):\n        if os.fork() == 0: os._exit(0)\nexcept OSError: pass": Status.FAILED,
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)": Status.FAILED,
    "import os\nfor fd in range(64):\n    try: os.write(fd, b'[0, 0.0, [\"passed\"]]\\n' * 100)\n    except OSError: pass": Status.ERROR,
    "import os\nheld = [os.open('/dev/null', 0) for _ in range(40)]": Status.FAILED,
    "import sys\nsys.setrecursionlimit(10 ** 4)\ndef g(): return g()\ng()": Status.ERROR,
    "open('left', 'w').write('x' * 100000)": Status.FAILED,
    "import sys\nsys.stdout.write('x' * 10 ** 7)": Status.FAILED,
    "def f(x): return 'x' * 10 ** 7": Status.FAILED,
}
LOOP = "while True: pass"


def jobs(count: int) -> Iterator[tuple[Program, Status]]:
    """Yield different programs, each with the status that its test must have."""
    chance = random.Random(0)
    for number in range(count):
        if chance.random() >= 0.2:
            yield Program(f"def f(x): return x + {number}", (f"assert f(1) == {number + 1}",)), Status.PASSED
        elif chance.random() < 0.02:
            yield (
                Program(f"n = {number}\n{LOOP}", ("assert n == 0",), limits=Limits(wall_s=0.5, cpu_s=1)),
                Status.TIMEOUT,
            )
        else:
            code = chance.choice(list(HOSTILE))
            yield Program(f"n = {number}\ndef f(x): return -1\n{code}", ("assert f(1) == 1",)), HOSTILE[code]


def resident_mb() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_soak():
    level = offered("namespaces") or "rlimits"  # not seccomp: hostile programs fork, which it refuses
    zombies_before = zombies()  # of other tests
    with Executor(num_workers=2, sandbox=level, limits=Limits(wall_s=20)) as executor:
        todo = list(jobs(COUNT))
        warm_up = [program for program, _ in todo[:BATCH]]
        executor.run(warm_up)
        threads, memory_mb = threading.active_count(), resident_mb()
        descriptors = len(os.listdir("/proc/self/fd"))
        wrong, kills = [], 0
        for start in range(0, COUNT, BATCH):
            batch = todo[start : start + BATCH]
            futures = [executor.submit(program) for program, _ in batch]
            if start // KILL_EVERY > kills - 1:
                os.kill(random.choice(workers(executor)), 9)
                kills += 1
            for (program, status), future in zip(batch, futures, strict=True):
                result = future.result()
                if [verdict.status for verdict in result.verdicts] != [status]:
                    wrong.append((program.code, status, result))
        assert wrong == []
        assert executor.stats.infra_failures == 0 and executor.stats.worker_restarts >= kills - 1
        # The worker that was killed last is reaped when it is missed, or at the end.
        assert len(zombies() - zombies_before) <= 1 and threading.active_count() == threads
        assert abs(len(os.listdir("/proc/self/fd")) - descriptors) <= 2
        assert resident_mb() < 1.1 * memory_mb
    assert zombies() <= zombies_before

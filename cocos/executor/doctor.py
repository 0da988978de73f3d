"""Check of this machine: which isolation levels work, and whether each keeps its promises.

Knows how a promise is tried out. `promises.py` lists the promises in their words, and
`missing_reason` of each level says why it does not work here.
"""

import ctypes
import os
import platform
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cocos.executor.inside import landlock
from cocos.executor.pool import Executor
from cocos.executor.promises import PRELUDE, PROMISES, TEST, Promise
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.levels import LEVELS, choose
from cocos.executor.verdicts import ExecutorError, Program

CANARY = "cocos-canary"
SEGMENT_BYTES = 4096
IPC_RMID, IPC_PRIVATE = 0, 0


@contextmanager
def victim() -> Iterator[dict]:
    """Create what the programs of `promises.py` attack, and remove it again.

    All of it is open to every user, so only the isolation protects it.
    """
    libc = ctypes.CDLL(None)
    with (
        tempfile.TemporaryDirectory(prefix="cocos-victim-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        os.chmod(folder, 0o777)
        file, address = Path(folder, "file"), str(Path(folder, "socket"))
        file.write_text("private")
        file.chmod(0o666)
        datagrams.bind(address)
        os.chmod(address, 0o666)
        segment = libc.shmget(IPC_PRIVATE, SEGMENT_BYTES, 0o1666)
        process = subprocess.Popen(["sleep", "600"], env={**os.environ, "CANARY": CANARY})
        try:
            yield {
                "folder": folder,
                "file": str(file),
                "socket": address,
                "port": server.getsockname()[1],
                "pid": process.pid,
                "segment": segment,
            }
        finally:
            process.kill()
            process.wait()
            libc.shmctl(segment, IPC_RMID, None)


def broken_promises(executor: Executor) -> dict[Promise, str]:
    """Try every promise with this executor's level; return those that do not hold, each with the evidence.

    Args:
        executor: An executor with one worker, so that programs follow one another in one sandbox.

    """
    broken = {}
    for promise in PROMISES:
        with victim() as attacked:
            start = f"VICTIM = {attacked!r}\n{PRELUDE}\n"
            results = executor.run([Program(start + code, (TEST,)) for code in promise.programs])
        for result in results:
            if result.infra_error:
                broken[promise] = result.infra_error
            elif not result.all_passed:
                broken[promise] = str(result.verdicts[0].actual or result.verdicts[0].message)
    return broken


def doctor() -> int:
    """Print which levels work and which of their promises hold; return the exit status."""
    reasons = {level.name: level.missing_reason() for level in LEVELS}
    for name, reason in reasons.items():
        print(f"{name:<11} {_yes_or_no(reason)}")
    print(
        f"filter      {_yes_or_no(syscall_filter.missing_reason())} (system calls, at all levels but rlimits)"
    )
    print(f"Landlock    version {landlock.version()}; up to {landlock.NEWEST_VERSION} are used (seccomp)")
    print(f"kernel      {platform.release()}\n")
    working = [name for name, reason in reasons.items() if reason is None]
    try:
        best = choose().name
        broken = {}
        for name in working:
            with Executor(num_workers=1, sandbox=name) as executor:
                broken[name] = broken_promises(executor)
    except ExecutorError as error:
        print(f"auto        {error}")
        return 1
    width = max(len(promise.text) for promise in PROMISES)
    print(" " * width, *(f"{name:<10}" for name in working))
    for promise in PROMISES:
        cells = (f"{_cell(promise, name, broken[name]):<10}" for name in working)
        print(f"{promise.text:<{width}}", *cells)
    lies = [(name, promise) for name in working for promise in broken[name] if name in promise.levels]
    for name, promise in lies:
        print(f"{name} breaks its promise that {promise.text}: {broken[name][promise]}")
    print(f"\nauto        {best}; its self-test passes")
    return 1 if any(name == best for name, _ in lies) else 0


def _cell(promise: Promise, level: str, broken: dict[Promise, str]) -> str:
    if promise not in broken:
        return "yes"
    return "BROKEN" if level in promise.levels else "no"


def _yes_or_no(missing_reason: str | None) -> str:
    return "yes" if missing_reason is None else f"no: {missing_reason}"

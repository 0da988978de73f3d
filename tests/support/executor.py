"""Isolation levels that this machine offers, and queries on results and processes, for tests of the executor."""

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from cocos.executor import ExecutionResult, Executor, Program, Status
from cocos.executor.sandboxes.levels import LEVELS

GOOD = Program("def f(x):\n    return x + 1", ("assert f(1) == 2", "assert f(2) == 3"))


def offered(*names: str) -> str | None:
    """Return the first of these levels that this machine offers."""
    return next(
        (level.name for level in LEVELS if level.name in names and level.missing_reason() is None), None
    )


def level_or_skip(name: str) -> str:
    """Return the level's name; skip the test, with the reason, if this machine does not offer the level."""
    [level] = [level for level in LEVELS if level.name == name]
    if reason := level.missing_reason():
        pytest.skip(f"level {name} is not offered here: {reason}")
    return name


def at_night(*values: str | int) -> list:
    """Return parameters whose tests only `make test-all` runs."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


EVERY_LEVEL = ["namespaces", *at_night("seccomp", "docker")]


def statuses(result: ExecutionResult) -> list[Status]:
    return [verdict.status for verdict in result.verdicts]


def zombies() -> set[int]:
    """Return the ids of this process's children that have ended without a wait."""
    return {pid for pid, found in _processes().items() if found == ("Z", os.getpid())}


def is_zombie(pid: int) -> bool:
    return _processes().get(pid, ("Z", 0))[0] == "Z"


def processes_below(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants."""
    parents = {child: parent for child, (_, parent) in _processes().items()}
    found = [pid]
    for ancestor in found:
        found += [child for child, parent in parents.items() if parent == ancestor]
    return found


@contextmanager
def watched(pid):
    """Collect the ids of every process that a running one starts on its way."""
    started, is_over = set(), threading.Event()

    def watch():
        while not is_over.wait(0.1):
            started.update(processes_below(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield started
    finally:
        is_over.set()
        watcher.join()


def assert_gone(pids):
    """None of these processes is left; an executor's worker notices the end of its run within seconds."""
    deadline = time.monotonic() + 30
    while left := [pid for pid in pids if os.path.exists(f"/proc/{pid}") and not is_zombie(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def workers(executor: Executor) -> list[int]:
    """Return the ids of the executor's running workers: the children of its threads."""
    children = [Path(f"/proc/self/task/{thread.native_id}/children") for thread in executor._threads]
    return [int(pid) for path in children for pid in path.read_text().split()]


def _processes() -> dict[int, tuple[str, int]]:
    """Return state and parent of every process, by id."""
    table = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        table[int(stat.parent.name)] = (state, int(parent))
    return table

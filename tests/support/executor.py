"""What the executor's test files share: the data beside the repository, the levels of this machine, and small queries."""

import os
from pathlib import Path

import pytest

from cocos.executor import ExecutionResult, Program, Status
from cocos.executor.sandboxes.levels import LEVELS
from tests.support.paths import DATASETS

GOOD = Program("def f(x):\n    return x + 1", ("assert f(1) == 2", "assert f(2) == 3"))


def offered(*names: str) -> str | None:
    """The first of these levels that this machine offers."""
    return next((level.name for level in LEVELS if level.name in names and level.why_missing() is None), None)


def level_or_skip(name: str) -> str:
    """Skip, saying why, where this machine does not offer a level."""
    [level] = [level for level in LEVELS if level.name == name]
    if reason := level.why_missing():
        pytest.skip(f"level {name} is not offered here: {reason}")
    return name


def dataset(name: str) -> Path:
    """A file of the benchmark data beside the repository, or skip."""
    path = DATASETS / name
    if not path.exists():
        pytest.skip(f"{path} is not there: this test needs the benchmark data beside the repository")
    return path


def statuses(result: ExecutionResult) -> list[Status]:
    return [verdict.status for verdict in result.verdicts]


def zombies() -> int:
    """Children of this process that nobody waited for."""
    return sum(state == "Z" and parent == os.getpid() for state, parent in _processes().values())


def is_zombie(pid: int) -> bool:
    return _processes().get(pid, ("Z", 0))[0] == "Z"


def processes_below(pid: int) -> list[int]:
    """A process and everything that descends from it."""
    parents = {child: parent for child, (_, parent) in _processes().items()}
    found = [pid]
    for ancestor in found:
        found += [child for child, parent in parents.items() if parent == ancestor]
    return found


def _processes() -> dict[int, tuple[str, int]]:
    """State and parent of every process, by id."""
    table = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        table[int(stat.parent.name)] = (state, int(parent))
    return table

"""Resource limits of one program.

Knows units, defaults and how much memory the container has. Does not know how a limit is enforced: that is
`inside/confinement.py` and, for the wall limit, `inside/zygote.py`.
"""

import math
import os
import resource
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

CGROUP_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # version 2, 1
CGROUP_CPU = Path("/sys/fs/cgroup/cpu.max")  # microseconds of a period, and the period
# With less than this an interpreter cannot even start, or report why it failed.
LEAST_MEMORY_MB, LEAST_OPEN_FILES = 64, 16
LEAST = {
    "wall_s": 0.01,
    "cpu_s": 1,
    "memory_mb": LEAST_MEMORY_MB,
    "output_kb": 4,
    "open_files": LEAST_OPEN_FILES,
}


@dataclass(frozen=True)
class Limits:
    """Resources that one program may use for all its tests together.

    No limit can be switched off. Only `processes` and `file_mb` may be 0.

    Attributes:
        wall_s: Elapsed seconds.
        cpu_s: CPU seconds. Keep it below `wall_s`: an endless computation then reaches this limit
            first, and CPU time does not depend on the load of the machine as elapsed time does.
        memory_mb: Address space of each process, MiB.
        output_kb: KiB of a value or message that comes back, at most 16 MiB. stdout and stderr do not count:
            they are discarded.
        file_mb: Largest single file, MiB.
        processes: Further processes and threads. Not every isolation level can enforce it; see
            cocos/executor/README.md.
        open_files: Open file descriptors.

    """

    wall_s: float = 12.0
    cpu_s: int = 10
    memory_mb: int = 1024
    output_kb: int = 16 << 10
    file_mb: int = 16
    processes: int = 16
    open_files: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = type(value) is int or (field.name == "wall_s" and type(value) is float)
            # The other limits are 32-bit integers in the wire format. `not 0 <= value` holds for nan too.
            if not is_number or not 0 <= value < 1 << 31:
                expected = "a number" if field.name == "wall_s" else "an integer"
                raise ValueError(f"limit {field.name} is {value!r}; expected {expected} from 0 to 2**31")
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(
                    f"limit {name} is {getattr(self, name)!r}; no program can run with less than {least}"
                )

    @classmethod
    def with_timeout(cls, wall_s: float, **others: int) -> "Limits":
        """Return limits with this wall limit, and a CPU limit that suits it."""
        return cls(wall_s=wall_s, cpu_s=max(1, math.ceil(wall_s)), **others)

    def clamped(self) -> "Limits":
        """Return these limits, lowered to what this container or machine itself has."""
        memory_mb = max(LEAST_MEMORY_MB, min(self.memory_mb, available_memory_mb()))
        open_files = self.open_files
        hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard_limit != resource.RLIM_INFINITY:
            open_files = max(LEAST_OPEN_FILES, min(open_files, hard_limit))
        return replace(self, memory_mb=memory_mb, open_files=open_files)


def available_memory_mb() -> int:
    """Return the memory of the container, or of the machine where that is less, in MiB."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in CGROUP_MEMORY:
        with suppress(OSError, ValueError):  # the file says "max", or this cgroup version is not in use
            size = min(size, int(Path(path).read_text()))
    return size >> 20


def usable_cores() -> float:
    """Return the cores that this process may use: those it may run on, or the container's share if less."""
    cores: float = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # no control groups of version 2, or the file says "max"
        quota, period = map(int, CGROUP_CPU.read_text().split())
        cores = min(cores, quota / period)
    return cores

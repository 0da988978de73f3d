"""Limits of one program.

Knows units, defaults and what this container leaves to give. Does not know how a limit is enforced: that is
`inside/confine.py`.
"""

import os
import resource
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

CGROUP_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Limits:
    """What one program may use, all its tests together. 0 means none is allowed, not that no limit applies.

    Attributes:
        wall_s: Seconds on the clock.
        cpu_s: Seconds of processor time. Below `wall_s`, a busy machine does not turn into a wrong verdict.
        memory_mb: Address space of a process, MiB.
        output_kb: KiB that may come back as values and messages; stdout and stderr are discarded by the
            kernel.
        file_mb: Largest single file, MiB.
        processes: Further processes and threads; enforced where the level can count them (see
            docs/executor.md).
        open_files: Open descriptors.

    """

    wall_s: float = 12.0
    cpu_s: int = 10
    memory_mb: int = 1024
    output_kb: int = 1024
    file_mb: int = 16
    processes: int = 16
    open_files: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= getattr(self, field.name) < 1 << 31:
                raise ValueError(
                    f"limit {field.name} is {getattr(self, field.name)!r}; expected a number from 0 to 2**31"
                )
        lowest = {"wall_s": 0.01, "cpu_s": 1, "memory_mb": 64, "output_kb": 4, "open_files": 16}
        for name, least in lowest.items():
            if getattr(self, name) < least:
                raise ValueError(
                    f"limit {name} is {getattr(self, name)!r}; no program can run with less than {least}"
                )

    def clamped(self) -> "Limits":
        """These limits, lowered to what this container or machine has itself."""
        memory_mb = max(64, min(self.memory_mb, available_memory_mb()))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        open_files = (
            self.open_files if hard == resource.RLIM_INFINITY else max(16, min(self.open_files, hard))
        )
        return replace(self, memory_mb=memory_mb, open_files=open_files)

    def calibrated(self, reference_s: float, factor: float = 10.0, least_s: float = 2.0) -> "Limits":
        """These limits with the times that a reference solution justifies: `factor` times its own, at least
        `least_s`.

        Never above the limits they are derived from, so a slow reference cannot lift them.
        """
        wall_s = min(self.wall_s, max(least_s, factor * reference_s))
        return replace(self, wall_s=wall_s, cpu_s=max(1, min(self.cpu_s, round(wall_s))))


def available_memory_mb() -> int:
    """Memory of the container, or of the machine where that is less, MiB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in CGROUP_MEMORY:
        with suppress(OSError, ValueError):  # "max", or not this kind of cgroup
            pages = min(pages, int(Path(path).read_text()))
    return pages >> 20

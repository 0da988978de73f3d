"""Limits of one program.

Knows units and defaults. Does not know how a limit is enforced: that is `inside/`.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """What one program may use, all its tests together. A limit of 0 means none is allowed, not that none applies.

    Attributes:
        wall_s: Seconds on the clock.
        cpu_s: Seconds of processor time; below `wall_s`, a busy machine does not turn into a wrong verdict.
        memory_mb: Address space, MiB.
        output_kb: KiB that may come back as values and messages; stdout and stderr are discarded by the kernel.
        file_mb: Largest single file, MiB.
        processes: Further processes and threads.
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
            if not getattr(self, field.name) >= 0:
                raise ValueError(
                    f"limit {field.name} is {getattr(self, field.name)!r}; expected a number >= 0"
                )
        if (
            self.wall_s == 0
            or self.cpu_s == 0
            or self.memory_mb < 64
            or self.output_kb == 0
            or self.open_files < 16
        ):
            raise ValueError(
                "no program can run within these limits: wall_s, cpu_s and output_kb must be above 0, "
                f"memory_mb at least 64 and open_files at least 16 ({self})"
            )

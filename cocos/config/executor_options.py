"""Options of the executor that runs the model's programs, the same in every command."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cocos.config.option import option, require_above_zero, require_at_least, require_share
from cocos.executor.limits import LEAST_MEMORY_MB, Limits
from cocos.literals import IsolationLevel


@dataclass
class ExecutorOptions:
    """Options of the executor that runs the model's programs."""

    group: ClassVar[str] = "programs under test"

    sandbox: Literal["auto", IsolationLevel] = option(
        "executor", "auto", "Isolation level; `auto`: the strongest that works here."
    )
    min_isolation: IsolationLevel | None = option(
        "executor", None, "Weakest level to accept. By default seccomp with `auto`, otherwise any."
    )
    program_timeout_s: float = option(
        "executor", 10.0, "Time limit of a program with all its tests, in seconds."
    )
    program_memory_mb: int = option(
        "executor", Limits.memory_mb, "Memory limit of each process of a program, in MiB."
    )
    program_processes: int = option(
        "executor", Limits.processes, "Largest number of further processes and threads of a program."
    )
    program_packages: list[str] = option(
        "executor", [], "Installed packages that programs may import, such as numpy."
    )
    executor_workers: int | None = option(
        "run", None, "Programs that run at once. By default one per CPU core."
    )

    def __post_init__(self) -> None:
        require_at_least(self, 1, "executor_workers")
        require_at_least(self, 0, "program_processes")
        require_at_least(self, LEAST_MEMORY_MB, "program_memory_mb")
        require_above_zero(self, "program_timeout_s")

    @property
    def program_limits(self) -> Limits:
        """Limits of one program with all its tests."""
        return Limits.with_timeout(
            self.program_timeout_s, memory_mb=self.program_memory_mb, processes=self.program_processes
        )


@dataclass
class ScoringOptions(ExecutorOptions):
    """Options of an executor whose verdicts are scored."""

    program_timeout_factor: float | None = option(
        "executor", None, "Limit a program to this multiple of its reference's time, 1 s or more."
    )
    max_infra_share: float = option("run", 0.05, "Stop if a larger share of the completions gets no verdict.")

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        require_above_zero(self, "program_timeout_factor")
        require_share(self, "max_infra_share")

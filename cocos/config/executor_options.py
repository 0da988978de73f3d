"""Options of the executor that runs the model's programs, the same in every command."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from cocos.config.option import option, require_not_negative, require_positive, require_share
from cocos.executor.limits import LEAST_MEMORY_MB, Limits
from cocos.literals import IsolationLevel


@dataclass
class ExecutorOptions:
    """Options of the executor that runs the model's programs."""

    group: ClassVar[str] = "programs under test"

    sandbox: Literal["auto", "docker", "namespaces", "seccomp", "rlimits"] = option(
        role="executor", default="auto", help="Isolation level; `auto`: the strongest that works here."
    )
    min_isolation: IsolationLevel | None = option(
        role="executor",
        default=None,
        help="Weakest level to accept. By default seccomp with `auto`, otherwise any.",
    )
    program_timeout_s: float = option(
        role="executor", default=10.0, help="Time limit of a program with all its tests, in seconds."
    )
    program_memory_mb: int = option(
        role="executor", default=Limits.memory_mb, help="Memory limit of each process of a program, in MiB."
    )
    program_processes: int = option(
        role="executor",
        default=Limits.processes,
        help="Largest number of further processes and threads of a program.",
    )
    program_packages: list[str] = option(
        role="executor",
        default_factory=list,
        help="Installed packages that programs may import, such as numpy.",
    )
    executor_workers: int | None = option(
        role="run", default=None, help="Programs that run at once. By default one per processor."
    )

    def __post_init__(self) -> None:
        if self.executor_workers is not None:
            require_positive(self, "executor_workers")
        require_not_negative(self, "program_processes")
        if not 0 < self.program_timeout_s < inf:
            raise ValueError(f"--program_timeout_s is {self.program_timeout_s}; give seconds above 0")
        if self.program_memory_mb < LEAST_MEMORY_MB:
            raise ValueError(
                f"--program_memory_mb is {self.program_memory_mb}; give {LEAST_MEMORY_MB} or more"
            )

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
        role="executor",
        default=None,
        help="Limit a program to this multiple of its reference's time, 1 s or more.",
    )
    max_infra_share: float = option(
        role="run", default=0.05, help="Stop if a larger share of the completions gets no verdict."
    )

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        if self.program_timeout_factor is not None and not self.program_timeout_factor > 0:
            raise ValueError(
                f"--program_timeout_factor is {self.program_timeout_factor}; give a number above 0"
            )
        require_share(self, "max_infra_share")

"""What goes into the executor and what comes out of it.

Plain frozen data: it knows neither processes nor isolation levels.
"""

from dataclasses import dataclass
from enum import StrEnum

from cocos.executor.limits import Limits


class ExecutorError(RuntimeError):
    """The executor itself cannot work; the message says what to do. Never caused by a candidate's code."""


class Status(StrEnum):
    """How one test ended."""

    PASSED = "passed"  # positive evidence that the test held
    FAILED = "failed"  # the assertion is false
    ERROR = "error"  # an exception, or the process ended before the test was through
    TIMEOUT = "timeout"  # the wall or the CPU limit
    MEMORY = "memory"  # the memory limit
    NOT_RUN = "not_run"  # an earlier test ended the process


@dataclass(frozen=True)
class Program:
    """One untrusted program and its tests; executed in the order code, setup, then each test, in one process.

    Hashable: identical programs within one call of `Executor.run` are run once.

    Raises:
        ValueError: There are no tests, or a part is not a string.

    """

    code: str
    test_list: tuple[str, ...]
    setup: str = ""
    limits: Limits | None = None  # None: the executor's own

    def __post_init__(self) -> None:
        if not self.test_list:
            raise ValueError("a Program needs one test or more; zero tests would pass vacuously")
        if not isinstance(self.test_list, tuple):
            raise ValueError(f"test_list is {type(self.test_list).__name__}; give a tuple of strings")
        if not all(isinstance(part, str) for part in (self.code, self.setup, *self.test_list)):
            raise ValueError("code, setup and every test must be strings")


@dataclass(frozen=True)
class Verdict:
    """The outcome of one test.

    Attributes:
        status: How the test ended.
        error_type: Class name of the exception ("AssertionError" for a false assertion), or None.
        message: The exception's text, cut to a few hundred characters, or None.
        expected: Source-like form of what the assertion demands, where it shows it.
        actual: Source-like form of what the program gave instead, where the assertion shows it.
        duration_s: Wall time of this test alone; 0 where it did not run to its end.
        in_child: The test could not be judged outside the process that ran the candidate: its evidence could
            be forged.

    """

    status: Status
    error_type: str | None = None
    message: str | None = None
    expected: str | None = None
    actual: str | None = None
    duration_s: float = 0.0
    in_child: bool = False

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED


@dataclass(frozen=True)
class ExecutionResult:
    """What became of one Program.

    Attributes:
        verdicts: One per test, in order; empty if and only if the executor itself failed.
        infra_error: Why the executor failed, or None. Such a result is no evidence about the program: leave
            it out.
        isolation: Name of the isolation level in force.
        duration_s: Wall time inside the worker; 0 where the executor failed.
        error_type: Class name of the exception that code or setup raised before any test ran, or None.
        message: That exception's text, or None.

    """

    verdicts: tuple[Verdict, ...]
    infra_error: str | None = None
    isolation: str = ""
    duration_s: float = 0.0
    error_type: str | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        assert bool(self.verdicts) != (self.infra_error is not None), (
            "verdicts and infra_error exclude each other"
        )

    @property
    def is_infra_failure(self) -> bool:
        return self.infra_error is not None

    @property
    def num_passed(self) -> int | None:
        """Tests that passed; None, never 0, where the executor failed."""
        return None if self.is_infra_failure else sum(verdict.passed for verdict in self.verdicts)

    @property
    def fraction(self) -> float | None:
        """Share of tests that passed, in [0, 1]; None where the executor failed."""
        return None if self.is_infra_failure else sum(v.passed for v in self.verdicts) / len(self.verdicts)

    @property
    def all_passed(self) -> bool:
        """True only with positive evidence for every test; False after an executor failure too."""
        return bool(self.verdicts) and all(verdict.passed for verdict in self.verdicts)

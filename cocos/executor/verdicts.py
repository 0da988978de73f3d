"""Input and output of the executor: programs, verdicts and results, as frozen data.

Knows nothing of processes or isolation levels.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

from cocos.executor.limits import Limits


class ExecutorError(RuntimeError):
    """The executor itself cannot work. Never caused by the code of a program."""


class Status(StrEnum):
    """Outcome of one test."""

    PASSED = "passed"  # there is positive evidence that the test passed
    FAILED = "failed"  # the assertion is false
    ERROR = "error"  # an exception, or the process ended before the test did
    TIMEOUT = "timeout"  # the wall limit or the CPU limit was reached
    MEMORY = "memory"  # the memory limit was reached
    NOT_RUN = "not_run"  # an earlier test ended the process


@dataclass(frozen=True)
class Program:
    """An untrusted program and its tests, executed in one process: the code, the setup, then each test.

    Hashable, so that one call of `Executor.run` can run identical programs once.

    Attributes:
        code: Source of the candidate.
        test_list: Source of each test.
        setup: Source to run after the code and before the tests.
        limits: Limits of this program; None: those of the executor.
        entry_point: Name that the candidate must define, or "". Tests never take it for a builtin.
        stdin: Text that the program reads from its standard input.
        files: Relative path and text of each file in the program's working folder.
        has_expressions: `test_list` has expressions in place of tests; see `Executor.values`.

    Raises:
        ValueError: There are no tests, or a part has the wrong type.

    """

    code: str
    test_list: tuple[str, ...]
    setup: str = ""
    limits: Limits | None = None
    entry_point: str = ""
    stdin: str = ""
    files: tuple[tuple[str, str], ...] = ()
    has_expressions: bool = False

    def __post_init__(self) -> None:
        if not self.test_list:
            raise ValueError("a Program needs one test or more; with none, any code would pass")
        if type(self.test_list) is not tuple:
            raise ValueError(f"test_list is {type(self.test_list).__name__}; give a tuple of strings")
        if type(self.files) is not tuple or not all(type(f) is tuple and len(f) == 2 for f in self.files):
            raise ValueError("files must be a tuple with a tuple (relative path, text) per file")
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise ValueError(f"limits is {type(self.limits).__name__}; give a Limits, or None")
        texts = (self.code, self.setup, self.entry_point, self.stdin, *self.test_list, *chain(*self.files))
        # Not a subclass of str either: marshal, which encodes the job, refuses it.
        if not all(type(text) is str for text in texts):
            raise ValueError("code, setup, entry_point, stdin, every test and every file must be strings")


@dataclass(frozen=True)
class Verdict:
    """Outcome of one test, with the reason.

    Attributes:
        status: How the test ended.
        error_type: Class name of the exception ("AssertionError" for a false assertion), or None.
        message: Text of the exception, truncated to a few hundred characters, or None.
        actual: `repr` of what the program returned, if a comparison is false; None for other assertions.
        expected: `repr` of the other side, or None in the same case.
        relation: What does not hold between the two: "==", "<", "in", "within 1e-06 of", ...
        duration_s: Wall time of this test alone; 0 if it did not finish.
        in_child_reason: Reason why the outcome depends on the process that ran the candidate, so that the
            candidate could have forged it; None if it does not.
        is_marked_by_program: The program has caused that reason. With another program, the same test can
            be decided without it.
        ended_at: Line at which the program ended before any test had a result, with its source; "" if it is
            not known. All tests of the program then have the same verdict. None for every other verdict.
        encoded: Of an expression, its value as JSON (`inside/data_types.py`).

    """

    status: Status
    error_type: str | None = None
    message: str | None = None
    expected: str | None = None
    actual: str | None = None
    duration_s: float = 0.0
    in_child_reason: str | None = None
    relation: str = "=="
    is_marked_by_program: bool = False
    encoded: str | None = None
    ended_at: str | None = None

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    @property
    def in_child(self) -> bool:
        """True if the candidate could have forged this outcome."""
        return self.in_child_reason is not None


class Value(NamedTuple):
    """Value of an expression, or the verdict that says why there is none."""

    value: Any
    verdict: Verdict  # passed if and only if there is a value


def comparison_text(actual: str, relation: str, expected: str) -> str:
    """Return what a false comparison shows, as in "expected 2, got 3" and "3 is not > 5"."""
    match relation:
        case "==" | "is":
            return f"expected {expected}, got {actual}"
        case "!=" | "is not":
            return f"expected a value other than {expected}, got {actual}"
        case "not in":
            return f"{actual} is in {expected}"
        case "contains" | "not contains":
            return f"{actual} {'contains' if relation[:3] == 'not' else 'does not contain'} {expected}"
    return f"{actual} is not {relation} {expected}"


def end_text(verdict: Verdict, error: str) -> str:
    """Return how a program ended before any test had a result: "ends in line 2 (`1 / 0`), before ..."."""
    if verdict.status is Status.TIMEOUT:
        return "takes too long before any test has a result"
    place = f" in {verdict.ended_at}," if verdict.ended_at else ""
    return f"ends{place} before any test has a result, with {error}"


@dataclass(frozen=True)
class ExecutionResult:
    """Result of executing one program.

    Attributes:
        verdicts: One per test, in order; empty if and only if the executor itself failed.
        infra_error: Reason why the executor failed, or None. A result with a reason says nothing about the
            program: do not score it.
        isolation: Name of the isolation level in force.
        duration_s: Wall time inside the worker; 0 if the executor failed.
        cpu_s: Processor time of the program; 0 if the executor failed.
        packages: Third-party packages that the program could import, with their versions ("numpy 2.3.1").

    """

    verdicts: tuple[Verdict, ...]
    infra_error: str | None = None
    isolation: str = ""
    duration_s: float = 0.0
    cpu_s: float = 0.0
    packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert bool(self.verdicts) != (self.infra_error is not None), (
            "verdicts and infra_error exclude each other"
        )

    @property
    def is_infra_failure(self) -> bool:
        return self.infra_error is not None

    @property
    def load_error(self) -> Verdict | None:
        """The verdict of all tests if the program ended before any of them had a result, otherwise None."""
        return next((verdict for verdict in self.verdicts if verdict.ended_at is not None), None)

    @property
    def num_passed(self) -> int | None:
        """Number of tests that passed; None, never 0, if the executor failed."""
        return None if self.is_infra_failure else sum(verdict.passed for verdict in self.verdicts)

    @property
    def is_right(self) -> bool:
        """True if every test passed, and the program made no verdict one that it could have forged."""
        return self.all_passed and not any(verdict.is_marked_by_program for verdict in self.verdicts)

    @property
    def all_passed(self) -> bool:
        """True only with positive evidence for every test; False if the executor failed."""
        return bool(self.verdicts) and all(verdict.passed for verdict in self.verdicts)

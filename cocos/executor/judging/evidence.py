"""Verdicts from the evidence of a sandbox. No test counts as passed without positive evidence.

The candidate may have written anything into its evidence. So every line is checked, and reading ends at the
first line that is malformed or out of order. The judge's evidence comes from a process that the candidate
cannot reach.
"""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from os import WIFSIGNALED, WTERMSIG
from types import CodeType
from typing import Any, TypeGuard

from cocos.executor.inside import value_codec
from cocos.executor.inside.wire_format import FLOODED, TIMED_OUT
from cocos.executor.judging.assert_split import SAFE_NAMES, Split
from cocos.executor.judging.plans import InChild, Judged, Plan
from cocos.executor.limits import Limits
from cocos.executor.verdicts import ExecutionResult, Status, Verdict

REPR_CHARS = 200
_STATUS = {"AssertionError": Status.FAILED, "MemoryError": Status.MEMORY}


@dataclass(frozen=True)
class Answer:
    """The zygote's answer to one job.

    `wire_format.AnswerHeader` describes the fields. `duration_s` is its `wall_s`.
    """

    end: bytes
    is_spent: bool
    wait_status: int
    duration_s: float
    cpu_s: float
    peak_mb: float
    candidate: bytes  # evidence from the candidate's process
    judge: bytes  # evidence from the judge


def read_result(plans: tuple[Plan, ...], answer: Answer, limits: Limits, isolation: str) -> ExecutionResult:
    """Return the result of one program, with one verdict per test.

    Args:
        plans: The plan of each test, in the order of the job.
        answer: The zygote's answer.
        limits: Limits that the program ran under.
        isolation: Name of the isolation level, for the result.

    """
    cause = _cause_of_end(answer, limits)
    rows = _parsed_lines(answer.candidate)
    loaded = next(rows, None)
    if loaded != "loaded":
        if isinstance(loaded, list) and len(loaded) == 3 and loaded[0] == "program":
            cause = _error(loaded[1:], 0.0)
        return ExecutionResult(
            (cause,) * len(plans), None, isolation, answer.duration_s, cause.error_type, cause.message
        )
    judge_rows = {row[0]: row for row in _parsed_lines(answer.judge) if _is_row(row)}
    verdicts: list[Verdict] = []
    for number, plan in enumerate(plans):
        row = next(rows, None)
        if isinstance(plan, Judged):
            # The judge's row has the outcome. The candidate's row only marks the end of the test, and is
            # missing if its process ended first. If it is malformed, the test has no evidence.
            row = judge_rows.get(number) if row is None or _is_row(row) else None
        if not _is_row(row) or row[0] != number:
            # Without valid evidence, the verdict is the reason why the process ended. No later test ran.
            verdicts += [cause] + [Verdict(Status.NOT_RUN)] * (len(plans) - number - 1)
            break
        verdicts.append(_verdict(plan, row[1], row[2]))
    return ExecutionResult(tuple(verdicts), None, isolation, answer.duration_s)


def _parsed_lines(evidence: bytes) -> Iterator[Any]:
    """Yield the parsed lines, up to the first that is not JSON."""
    for line in evidence.split(b"\n")[:-1]:  # the last item is empty, or a line that is not complete
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            return


def _is_row(row: Any) -> TypeGuard[list]:
    return (
        isinstance(row, list)
        and len(row) == 3
        and type(row[0]) is int  # not isinstance: True would pass as the number 1
        and type(row[1]) is float
        and isinstance(row[2], list)
    )


def _verdict(plan: Plan, duration_s: float, outcome: list) -> Verdict:
    duration_s = duration_s if 0 <= duration_s < float("inf") else 0.0
    if isinstance(plan, Split) and outcome[:1] != ["e"]:
        return _compare(plan, duration_s, outcome)
    if not isinstance(plan, Split) and outcome == ["passed"]:
        return Verdict(Status.PASSED, duration_s=duration_s, in_child=isinstance(plan, InChild))
    return _error(outcome[1:], duration_s, in_child=isinstance(plan, InChild))


def _error(description: list, duration_s: float, in_child: bool = False) -> Verdict:
    """Return the verdict for [error type, message]; any other list gives the error type MalformedEvidence."""
    if len(description) != 2 or not all(isinstance(part, str) for part in description):
        description = ["MalformedEvidence", "the process sent no well-formed outcome"]
    error_type, message = (part[:REPR_CHARS] for part in description)
    return Verdict(
        _STATUS.get(error_type, Status.ERROR), error_type, message, duration_s=duration_s, in_child=in_child
    )


class _CandidateRaised(Exception):
    """An exception was raised in the candidate's process by an atom that the condition needs."""


class _Atoms(dict):
    """Values of the atoms by name, decoded when the condition reads them.

    An atom that raised or is malformed therefore matters only if the condition needs it. For example,
    `f(1) == 2 or f(None) == 3` passes if the first comparison is true and `f(None)` raises.
    """

    def __init__(self, outcomes: list) -> None:
        self.outcomes = outcomes

    def __missing__(self, name: str) -> object:
        if not name.startswith("_"):
            raise KeyError(name)  # a name such as `len`, which `eval` then looks up in the globals
        outcome = self.outcomes[int(name[1:])]
        if not isinstance(outcome, list) or len(outcome) < 2:
            raise value_codec.CodecError("no well-formed value")
        if outcome[0] != "v":
            raise _CandidateRaised(*outcome[1:])
        return self.setdefault(name, value_codec.decode(outcome[1]))


def _compare(plan: Split, duration_s: float, outcomes: list) -> Verdict:
    """Return the verdict on a split test: evaluate its condition on the values of its atoms."""
    if len(outcomes) != len(plan.atoms):
        return _error([], duration_s)
    names = {"__builtins__": {}, **SAFE_NAMES}
    try:
        if eval(plan.condition, names, _Atoms(outcomes)):
            return Verdict(Status.PASSED, duration_s=duration_s)
    except _CandidateRaised as error:
        return _error(list(error.args), duration_s)
    # On an unexpected value the condition can raise any exception. It counts as an error of the candidate.
    except Exception as error:
        return _error([type(error).__name__, str(error)], duration_s)
    expected, actual = (_repr_of_side(side, names, outcomes) for side in (plan.expected, plan.actual))
    message = f"expected {expected}, got {actual}" if plan.expected else "the assertion is false"
    return Verdict(Status.FAILED, "AssertionError", message, expected, actual, duration_s)


def _repr_of_side(side: CodeType | None, names: dict, outcomes: list) -> str | None:
    try:
        return repr(eval(side, names, _Atoms(outcomes)))[:REPR_CHARS] if side else None
    except ValueError:  # an integer with more digits than Python converts to text
        return "<too long to show>"


def _cause_of_end(answer: Answer, limits: Limits) -> Verdict:
    """Return the verdict on the test during which the process ended."""
    if answer.end == TIMED_OUT:
        return Verdict(Status.TIMEOUT, "WallLimit", f"more than {limits.wall_s:g} s of wall time")
    if answer.end == FLOODED:
        return Verdict(Status.ERROR, "OutputLimit", f"more than {limits.output_kb} KiB of evidence")
    if not WIFSIGNALED(answer.wait_status):
        return Verdict(Status.ERROR, "ProcessExit", "the process ended before the test did")
    # The kernel sends SIGXCPU at the soft limit of processor time. It sends SIGKILL at the hard limit and
    # when memory runs out, so compare with what the process used.
    number = WTERMSIG(answer.wait_status)
    if number == signal.SIGXCPU or answer.cpu_s >= limits.cpu_s:
        return Verdict(Status.TIMEOUT, "CpuLimit", f"more than {limits.cpu_s} s of processor time")
    if number == signal.SIGKILL and answer.peak_mb > limits.memory_mb / 2:
        return Verdict(Status.MEMORY, "MemoryError", "the kernel killed the process because memory ran out")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Verdict(Status.ERROR, "ProcessKilled", f"the process was killed by {name}")

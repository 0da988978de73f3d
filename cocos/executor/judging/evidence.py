"""From what came out of a sandbox to verdicts: nothing counts as passed without positive evidence.

The candidate may have written anything into its evidence, so every line is checked, the first that is
malformed or out of order ends the reading, and what a value means is decided here. The judge's evidence comes
from a process of ours.
"""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from os import WIFSIGNALED, WTERMSIG
from types import CodeType
from typing import Any, TypeGuard

from cocos.executor.inside import codec
from cocos.executor.inside.wire import FLOODED, TIMED_OUT
from cocos.executor.judging.assert_split import SAFE_NAMES, Split
from cocos.executor.judging.plans import InChild, Judged, Plan
from cocos.executor.limits import Limits
from cocos.executor.verdicts import ExecutionResult, Status, Verdict

REPR_CHARS = 200
_STATUS = {"AssertionError": Status.FAILED, "MemoryError": Status.MEMORY}


@dataclass(frozen=True)
class Answer:
    """What the zygote says about one job."""

    end: bytes
    is_spent: bool  # the sandbox cannot be cleaned for another program
    wait_status: int
    duration_s: float
    cpu_s: float
    peak_mb: float
    candidate: bytes
    judge: bytes


def read_result(plans: tuple[Plan, ...], answer: Answer, limits: Limits, isolation: str) -> ExecutionResult:
    """Turn an answer into one verdict per test."""
    cause = _cause(answer, limits)
    rows = _lines(answer.candidate)
    loaded = next(rows, None)
    if loaded != "loaded":
        if isinstance(loaded, list) and len(loaded) == 3 and loaded[0] == "program":
            cause = _error(loaded[1:], 0.0)
        return ExecutionResult(
            (cause,) * len(plans), None, isolation, answer.duration_s, cause.error_type, cause.message
        )
    judged = {row[0]: row for row in _lines(answer.judge) if _is_row(row)}
    verdicts: list[Verdict] = []
    for number, plan in enumerate(plans):
        row = next(rows, None)
        if isinstance(plan, Judged):
            # The judge's word stands even where the candidate's process ended right after.
            row = judged.get(number) if row is None or _is_row(row) else None
        if not _is_row(row) or row[0] != number:
            verdicts += [cause] + [Verdict(Status.NOT_RUN)] * (len(plans) - number - 1)
            break
        verdicts.append(_verdict(plan, row[1], row[2]))
    return ExecutionResult(tuple(verdicts), None, isolation, answer.duration_s)


def _lines(evidence: bytes) -> Iterator[Any]:
    """The whole lines of JSON, up to the first that is none."""
    for line in evidence.split(b"\n")[:-1]:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            return


def _is_row(row: Any) -> TypeGuard[list]:
    return (
        isinstance(row, list)
        and len(row) == 3
        and type(row[0]) is int
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


def _error(described: list, duration_s: float, in_child: bool = False) -> Verdict:
    if len(described) != 2 or not all(isinstance(part, str) for part in described):
        described = ["MalformedEvidence", "the process sent no well-formed outcome"]
    error_type, message = (part[:REPR_CHARS] for part in described)
    return Verdict(
        _STATUS.get(error_type, Status.ERROR), error_type, message, duration_s=duration_s, in_child=in_child
    )


class _CandidateRaised(Exception):
    """The atom that a condition needs raised, beside the candidate."""


class _Atoms(dict):
    """The decoded atoms by name; one that raised, or is malformed, raises where the condition needs it."""

    def __init__(self, outcomes: list) -> None:
        self.outcomes = outcomes

    def __missing__(self, name: str) -> object:
        if not name.startswith("_"):
            raise KeyError(name)
        outcome = self.outcomes[int(name[1:])]
        if not isinstance(outcome, list) or len(outcome) < 2:
            raise codec.CodecError("no well-formed value")
        if outcome[0] != "v":
            raise _CandidateRaised(*outcome[1:])
        return self.setdefault(name, codec.decode(outcome[1]))


def _compare(plan: Split, duration_s: float, outcomes: list) -> Verdict:
    if len(outcomes) != len(plan.atoms):
        return _error([], duration_s)
    names = {"__builtins__": {}, **SAFE_NAMES}
    try:
        if eval(plan.condition, names, _Atoms(outcomes)):
            return Verdict(Status.PASSED, duration_s=duration_s)
    except _CandidateRaised as error:
        return _error(list(error.args), duration_s)
    except (
        Exception
    ) as error:  # what a condition raises on a strange value is the candidate's fault, whatever it is
        return _error([type(error).__name__, str(error)], duration_s)
    expected, actual = (_shown(side, names, outcomes) for side in (plan.expected, plan.actual))
    message = f"expected {expected}, got {actual}" if plan.expected else "the assertion is false"
    return Verdict(Status.FAILED, "AssertionError", message, expected, actual, duration_s)


def _shown(side: CodeType | None, names: dict, outcomes: list) -> str | None:
    try:
        return repr(eval(side, names, _Atoms(outcomes)))[:REPR_CHARS] if side else None
    except ValueError:  # an integer of more digits than Python prints
        return "<too long to show>"


def _cause(answer: Answer, limits: Limits) -> Verdict:
    """Why the process ended, as the verdict on the test that left no evidence."""
    if answer.end == TIMED_OUT:
        return Verdict(Status.TIMEOUT, "WallLimit", f"more than {limits.wall_s:g} s on the clock")
    if answer.end == FLOODED:
        return Verdict(Status.ERROR, "OutputLimit", f"more than {limits.output_kb} KiB came back")
    if not WIFSIGNALED(answer.wait_status):
        return Verdict(Status.ERROR, "ProcessExit", "the process ended before the test did")
    number = WTERMSIG(answer.wait_status)
    if number == signal.SIGXCPU or answer.cpu_s >= limits.cpu_s:
        return Verdict(Status.TIMEOUT, "CpuLimit", f"more than {limits.cpu_s} s of processor time")
    if number == signal.SIGKILL and answer.peak_mb > limits.memory_mb / 2:
        return Verdict(Status.MEMORY, "MemoryError", "the kernel ended the process for want of memory")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Verdict(Status.ERROR, "ProcessKilled", f"the process was killed by {name}")

"""Verdicts from the evidence of a sandbox. No test counts as passed without positive evidence.

The candidate may have written anything into its evidence. So every line is checked, and reading ends at the
first line that is malformed or out of order. The driver's evidence comes from a process that the candidate
cannot reach.
"""

import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import WIFSIGNALED, WTERMSIG
from typing import Any, NamedTuple, TypeGuard

from cocos.executor.inside.wire_format import FLOODED, TIMED_OUT
from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.conditions import (
    Undecided,
    compare,
    error_verdict,
    failed_comparison,
    shown,
    value_verdict,
)
from cocos.executor.judging.plans import Driven, InChild, Plan
from cocos.executor.limits import Limits
from cocos.executor.verdicts import ExecutionResult, Status, Verdict

_NO_EVIDENCE = Verdict(
    Status.ERROR, "NoEvidence", "the test reached a limit, or the program sent the driver malformed messages"
)
_parse = json.JSONDecoder().decode


@dataclass(frozen=True)
class Answer:
    """The zygote's answer to one job.

    `wire_format.AnswerHeader` describes the fields. `duration_s` is its `wall_s`.
    """

    end: bytes
    wait_status: int
    duration_s: float
    cpu_s: float
    waited_s: float
    peak_mb: float
    candidate: bytes  # evidence from the candidate's process
    driver: bytes  # evidence from the driver
    firsts: Sequence[int] = (0,)  # number of the first test of each batch
    # Bytes of the candidate's evidence and of the driver's when the candidate got each batch after the first.
    commits: tuple[tuple[int, int], ...] = ()


class Reading(NamedTuple):
    """The result that an answer supports, and the tests that need another plan.

    Attributes:
        result: The result, with an ERROR verdict for each undecided test.
        undecided: Reason by the number of the test. The evidence does not say whether such a test holds,
            because a value cannot be sent or compared where the plan wanted it.

    """

    result: ExecutionResult
    undecided: dict[int, str]


def read_result(plans: tuple[Plan, ...], answer: Answer, limits: Limits, isolation: str) -> Reading:
    """Return the result of one program, with one verdict per test.

    Args:
        plans: The plan of each test, in the order of the job.
        answer: The zygote's answer.
        limits: Limits that the program ran under.
        isolation: Name of the isolation level, for the result.

    """
    cause = _cause_of_end(answer, limits)
    # What was written after the candidate had got the next batch is no evidence for this one. The driver's
    # neither: the candidate could have asked for the batch before it answered the driver.
    parts = [
        (answer.candidate[start:end], answer.driver[driver_start:driver_end])
        for (start, driver_start), (end, driver_end) in pairwise(((0, 0), *answer.commits, (None, None)))
    ]
    rows, driver_rows = _parsed_lines(parts[0][0]), _driver_rows(parts[0][1])
    loaded = next(rows, None)
    loaded = loaded if isinstance(loaded, list) and len(loaded) == 3 else [None]
    if loaded[0] != "loaded":
        if loaded[0] == "program":
            cause = error_verdict(loaded[1:], 0.0)
        failed = ((cause,) * len(plans), None, isolation, answer.duration_s, cause.error_type, cause.message)
        return Reading(ExecutionResult(*failed, answer.cpu_s), {})
    own = {name for name in loaded[2] if type(name) is str} if isinstance(loaded[2], list) else set()
    verdicts: list[Verdict] = []
    undecided: dict[int, str] = {}
    for number, plan in enumerate(plans):
        if number and number in answer.firsts:
            batch = answer.firsts.index(number)
            evidence, of_driver = parts[batch] if batch < len(parts) else (b"", b"")
            rows, driver_rows = _parsed_lines(evidence), _driver_rows(of_driver) | driver_rows
        row = next(rows, None)
        if isinstance(plan, Driven):
            # The driver's row has the outcome. The candidate's row only marks the end of the test, and is
            # missing if its process ended first. If it is malformed, the test has no evidence.
            row = driver_rows.get(number) if row is None or _is_row(row) else None
        if not _is_row(row) or row[0] != number:
            # Without valid evidence, the verdict is the reason why the process ended. No later test ran.
            if isinstance(plan, Driven) and cause.error_type == "ProcessExit":
                cause = _NO_EVIDENCE
            verdicts += [cause] + [Verdict(Status.NOT_RUN)] * (len(plans) - number - 1)
            break
        try:
            verdicts.append(_verdict(plan, row[1], row[2], own))
        except Undecided as error:
            undecided[number] = str(error)
            verdicts.append(error_verdict(["NotPlainValue", str(error)], 0.0))
    result = ExecutionResult(tuple(verdicts), None, isolation, answer.duration_s, cpu_s=answer.cpu_s)
    return Reading(result, undecided)


def marked(result: ExecutionResult, reason: str) -> ExecutionResult:
    """Return a result in which every pass is marked as one that the program could have forged."""
    verdicts = (
        replace(verdict, in_child_reason=reason, is_marked_by_program=True) if verdict.passed else verdict
        for verdict in result.verdicts
    )
    return replace(result, verdicts=tuple(verdicts))


def _parsed_lines(evidence: bytes) -> Iterator[Any]:
    """Yield the parsed lines, up to the first that is not JSON."""
    # The last item is empty, or a line that is not complete.
    for line in evidence.decode(errors="replace").split("\n")[:-1]:
        try:
            yield _parse(line)
        except (ValueError, RecursionError):
            return


def _driver_rows(evidence: bytes) -> dict[int, list]:
    """Return the driver's row of each test; reading ends at the first malformed line."""
    rows: dict[int, list] = {}
    for line in _parsed_lines(evidence):
        if not _is_row(line) or line[0] in rows:
            break
        rows[line[0]] = line
    return rows


def _is_row(row: Any) -> TypeGuard[list]:
    return (
        isinstance(row, list)
        and len(row) == 3
        and type(row[0]) is int  # not isinstance: True would pass as the number 1
        and type(row[1]) is float
        and isinstance(row[2], list)
    )


def _verdict(plan: Plan, duration_s: float, outcome: list, own: set[str]) -> Verdict:
    """Return the verdict for a well-formed row.

    Args:
        plan: The test's plan.
        duration_s: Its wall time.
        outcome: Its outcome.
        own: Names of builtins that the program has given to something else.

    Raises:
        Undecided: The evidence does not decide the test.

    """
    duration_s = duration_s if 0 <= duration_s < float("inf") else 0.0
    if isinstance(plan, Split):
        match outcome:
            case _ if not plan.checks:
                return value_verdict(duration_s, outcome)
            case ["n", str(reason)]:  # values that are too large
                raise Undecided(shown(reason))
            case _ if own and any(own.intersection(check.condition.co_names) for check in plan.checks):
                raise Undecided("the program defines a builtin that the test calls")
            case ["e", *description]:
                return error_verdict(description, duration_s)
        return compare(plan, duration_s, outcome)
    mark: dict[str, Any] = {}
    if isinstance(plan, InChild):
        mark = {"in_child_reason": plan.reason, "is_marked_by_program": plan.is_programs_choice}
    match plan, outcome:
        case _, ["passed"]:
            return Verdict(Status.PASSED, duration_s=duration_s, **mark)
        case Driven(), ["passed", str(reason), bool(is_programs)]:  # the program's process has decided
            mark = {"in_child_reason": shown(reason), "is_marked_by_program": is_programs}
            return Verdict(Status.PASSED, duration_s=duration_s, **mark)
        case Driven(), ["e", "AssertionError", "", str(symbol), str(left), str(right), *tolerance]:
            return failed_comparison(symbol, left, right, str(*tolerance), duration_s)
        case Driven(), ["e", "AssertionError", "", str(text)]:
            return error_verdict(["AssertionError", f"false: {text}"], duration_s)
        case Driven(), ["undecided", str(reason)]:
            raise Undecided(shown(reason))
    return replace(error_verdict(outcome[1:], duration_s), **mark)


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

"""Verdicts from the evidence of a sandbox. No test counts as passed without positive evidence.

The evidence comes from the driver, a process that the candidate cannot reach.
"""

import json
import signal
from dataclasses import replace
from os import WIFSIGNALED, WTERMSIG
from typing import NamedTuple

from cocos.executor.inside.marks import Mark, Reason
from cocos.executor.inside.wire_format import EXITED, TIMED_OUT, AnswerHeader
from cocos.executor.limits import Limits
from cocos.executor.plans.plans import Plan
from cocos.executor.plans.setups import Setups
from cocos.executor.verdicts import ExecutionResult, Status, Verdict, comparison_text

_TEXT_CHARS = 200  # of error types, messages and reprs in a verdict
_STATUS = {"AssertionError": Status.FAILED, "MemoryError": Status.MEMORY}


class Answer(NamedTuple):
    """The zygote's answer to one job: its header, and the driver's evidence (`inside/driver.py`)."""

    header: AnswerHeader
    evidence: bytes


class Reading(NamedTuple):
    """The result that an answer supports, and the tests that need another plan.

    Attributes:
        result: The result, with an ERROR verdict for each undecided test.
        undecided: By the number of a test that only the candidate's process can run: the reason.

    """

    result: ExecutionResult
    undecided: dict[int, Mark]


def read_result(
    plans: tuple[Plan, ...], setups: Setups, answer: Answer, limits: Limits, isolation: str
) -> Reading:
    """Return the result of one program, with one verdict per test.

    Args:
        plans: The plan of each test, in the order of the job.
        setups: The setup as the job had it.
        answer: The zygote's answer.
        limits: Limits that the program ran under.
        isolation: Name of the isolation level, for the result.

    """
    spent = answer.header.wall_s, answer.header.cpu_s
    first, *rows = json.loads(answer.evidence or "[]") or [["nothing"]]
    if first != ["loaded"]:
        is_error = first[0] == "program"
        cause = error_verdict(first[1:], 0.0) if is_error else _cause_of_end(answer.header, limits)
        cause = replace(cause, ended_at=shown(first[3]) if is_error else "")
        return Reading(ExecutionResult((cause,) * len(plans), None, isolation, *spent), {})
    verdicts: list[Verdict] = []
    undecided: dict[int, Mark] = {}
    changed: frozenset[str] = frozenset()  # by marked tests
    for plan, (duration_s, outcome, *found) in zip(plans, rows, strict=False):
        mark = Mark(*found)
        if outcome[0] == "undecided" and plan.kind == "driven":
            undecided[len(verdicts)] = mark._replace(reason=shown(outcome[1]))
        planned = plan.mark if plan.kind == "in child" else setups.mark
        if planned.reason:
            mark = Mark(planned.reason, planned.is_marked_by_program or mark.is_marked_by_program)
        elif not mark.reason and (names := plan.reads & changed):
            mark = Mark(Reason.READS_MARKED.format(min(names)))
        if mark.reason:
            changed |= plan.changes
        verdict = _verdict(duration_s, outcome, limits)
        if mark.reason and (verdict.passed or plan.kind == "in child"):
            verdict = replace(
                verdict, in_child_reason=shown(mark.reason), is_marked_by_program=mark.is_marked_by_program
            )
        verdicts.append(verdict)
    if len(verdicts) < len(plans):
        # Without evidence, the verdict is the reason why the process ended. No later test ran.
        verdicts.append(_cause_of_end(answer.header, limits))
        verdicts += [Verdict(Status.NOT_RUN)] * (len(plans) - len(verdicts))
    result = ExecutionResult(tuple(verdicts), None, isolation, *spent)
    return Reading(result, undecided)


def _verdict(duration_s: float, outcome: list, limits: Limits) -> Verdict:
    """Return the verdict for an outcome of the driver, without a mark."""
    match outcome:
        case ["passed"]:
            return Verdict(Status.PASSED, duration_s=duration_s)
        case ["value", node]:
            return Verdict(Status.PASSED, duration_s=duration_s, encoded=json.dumps(node))
        case ["e", "AssertionError", "", symbol, left, right, *tolerance]:
            return failed_comparison(symbol, left, right, "".join(tolerance), duration_s)
        case ["e", "AssertionError", "", text]:
            return error_verdict(["AssertionError", f"false: {text}"], duration_s)
        case ["ended", status, cpu_s, peak_mb]:
            return _cause_of_end(AnswerHeader(EXITED, status, 0.0, cpu_s, 0.0, peak_mb, 0), limits)
        case ["not run"]:
            return Verdict(Status.NOT_RUN)
        case ["undecided", reason]:
            return error_verdict(["NotPlainValue", reason], duration_s)
    return error_verdict(outcome[1:], duration_s)


def _cause_of_end(answer: AnswerHeader, limits: Limits) -> Verdict:
    """Return the verdict on the test during which the process ended."""
    if answer.end == TIMED_OUT:
        return Verdict(Status.TIMEOUT, "WallLimit", f"more than {limits.wall_s:g} s of wall time")
    if not WIFSIGNALED(answer.wait_status):
        return Verdict(Status.ERROR, "ProcessExit", "the process ended before the test did")
    # The kernel sends SIGXCPU at the soft limit of CPU time. It sends SIGKILL at the hard limit and
    # when memory runs out, so compare with what the process used.
    number = WTERMSIG(answer.wait_status)
    if number == signal.SIGXCPU or answer.cpu_s >= limits.cpu_s:
        return Verdict(Status.TIMEOUT, "CpuLimit", f"more than {limits.cpu_s} s of CPU time")
    if number == signal.SIGKILL and answer.peak_mb > limits.memory_mb / 2:
        return Verdict(Status.MEMORY, "MemoryError", "the kernel killed the process because memory ran out")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Verdict(Status.ERROR, "ProcessKilled", f"the process was killed by {name}")


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "contains", "not in": "not contains"}


def failed_comparison(symbol: str, left: str, right: str, tolerance: str, duration_s: float) -> Verdict:
    """Return the verdict for a false comparison.

    Args:
        symbol: Its operator, after "~" if the left side is the expected one; "within" for a tolerance.
        left: Text of the left side.
        right: Text of the right side.
        tolerance: Text of the tolerance, or "".
        duration_s: Wall time of the test.

    """
    relation = symbol.removeprefix("~")
    if relation != symbol:
        left, right, relation = right, left, _MIRRORED.get(relation, relation)
    if relation == "within":
        relation = f"within {shown(tolerance)} of"
    actual, expected = shown(left), shown(right)
    message = comparison_text(actual, relation, expected)
    return Verdict(
        *(Status.FAILED, "AssertionError", message, expected, actual, duration_s), relation=relation
    )


def error_verdict(description: list, duration_s: float) -> Verdict:
    """Return the verdict for [error type, message]."""
    error_type, message = map(shown, description[:2])
    status = _STATUS.get(error_type, Status.ERROR)
    return Verdict(status, error_type, message, duration_s=duration_s)


def shown(text: str) -> str:
    """Return what a verdict shows of a program's text: cut off, and with escapes for lone surrogates.

    UTF-8 has no encoding for these, and tokenizers refuse them.
    """
    return text[:_TEXT_CHARS].encode(errors="backslashreplace").decode()[:_TEXT_CHARS]

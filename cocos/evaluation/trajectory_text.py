"""Trajectories as text, for `test.py --verbose`, and in parts for the page."""

import difflib
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from cocos.agents.words import TOOLS
from cocos.executor import ExecutionResult, Status, Verdict, comparison_text, end_text
from cocos.generation import Generator
from cocos.generation.tool_calls import call_fault, call_reason, parse_tool_calls
from cocos.trajectories import Trajectory, Turn


def prompt_text(trajectory: Trajectory, generator: Generator) -> str:
    """Return the prompt of a trajectory's last turn as the model sees it."""
    turns = [turn for turn in trajectory.turns if not turn.is_carried]
    title = f"problem {trajectory.problem.task_id}: prompt of turn {len(turns)}"
    return f"{_rule(title)}\n{generator.show(turns[-1].prompt_ids)}\n{_rule('end of the prompt')}"


def trajectory_text(trajectory: Trajectory) -> str:
    """Return all that is known of a trajectory: nodes, requests, answers, tests and seconds of its turns."""
    problem = trajectory.problem
    lines = [_rule(f"problem {problem.task_id}, sample {trajectory.sample}")]
    before: Turn | None = None
    for number, turn in enumerate(trajectory.turns, start=1):
        result, completion = turn.result, turn.completion
        where = f", node {turn.step.node} at temperature {turn.step.temperature:g}" if turn.step else ""
        lines.append(f"turn {number}{where}: {outcome_text(result)}{notes(turn)}")
        lines.append(
            f"    {completion.duration_s:.3f} s to generate, {result.duration_s:.3f} s to run at "
            f"{result.isolation}"
        )
        for part in turn_parts(turn, before, problem.scored_tests, len(problem.test_list)):
            lines += [f"  {part.title}:", textwrap.indent(part.text, "    ")]
        before = turn
    return "\n".join(lines)


def outcome_text(result: ExecutionResult) -> str:
    """Return how many tests passed, or why there is no verdict."""
    if result.is_infra_failure:
        return f"no verdict, {result.infra_error}"
    return f"{result.num_passed} of {len(result.verdicts)} tests pass"


class Part(NamedTuple):
    """A part of a turn to show."""

    title: str  # name of the part
    text: str  # its text
    language: str | None = None  # `python` or `diff`; None for other text
    is_detail: bool = False  # most readers can do without it


def turn_parts(turn: Turn, before: Turn | None, tests: Sequence[str], num_visible: int) -> list[Part]:
    """Return what can be shown of a turn, in reading order.

    Args:
        before: The previous turn, if any.
        num_visible: Number of the tests that the model may be told of, the first ones.

    """
    is_repeated = before is not None and turn.code == before.code
    calls = parse_tool_calls(turn.completion.text) if turn.step else []
    is_refused = turn.step is not None and turn.step.node == "refuse"
    parts = [
        Part("Feedback before this attempt", turn.feedback),
        Part("Refused", call_fault(calls, TOOLS, "code") if is_refused else ""),
        Part("Reason", call_reason(turn.completion.text) if turn.step else ""),
        Part("The same program" if is_repeated else "Program", turn.code or "(no program)", "python"),
        Part("Tests", marked_tests(tests, num_visible, turn.result)),
        Part(
            "Changes since the attempt before",
            _changes_text(before.code, turn.code) if before else "",
            "diff",
        ),
        Part("Request", turn.request, is_detail=True),
        Part("Thought", turn.completion.thought, is_detail=True),
        Part("Whole answer", turn.completion.text, is_detail=True),
    ]
    return [part for part in parts if part.text]


def marked_tests(tests: Sequence[str], num_visible: int, result: ExecutionResult) -> str:
    """Return every test with a mark, and below one that did not pass its outcome."""
    load = result.load_error
    lines = [f"The program {end_text(load, verdict_text(load))}."] if load else []
    for number, (test, verdict) in enumerate(zip(tests, result.verdicts, strict=False), start=1):
        hidden = " (hidden from the model)" if number > num_visible else ""
        lines.append(f"{'✓' if verdict.passed else '✗'} {test.rstrip()}{hidden}")
        if not verdict.passed and not load:
            lines.append(f"    {verdict_text(verdict)}")
    return "\n".join(lines)


def _changes_text(before: str, after: str) -> str:
    """Return the lines in which two programs differ, as a unified diff; "" if they are equal."""
    changes = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")
    return "\n".join(list(changes)[2:])  # without the names of files


def verdict_text(verdict: Verdict) -> str:
    """Return the outcome of a test: `passed`, `expected 4, got 3`, `3 is not > 5`, or the error."""
    if verdict.expected is not None and verdict.actual is not None:
        return comparison_text(verdict.actual, verdict.relation, verdict.expected)
    if verdict.status is Status.NOT_RUN:
        return "not run: an earlier test ended the program"
    message = f": {verdict.message}" if verdict.message else ""
    return f"{verdict.error_type or verdict.status.name.lower()}{message}"


def notes(turn: Turn) -> str:
    """Return what is special about a turn, in brackets; "" for nothing."""
    notes = {
        "given": turn.is_given,
        "repeated after an early stop": turn.is_carried,
        "resampled": turn.is_resampled,
        "cut off at --max_completion_length": turn.completion.is_truncated,
        f"API key {turn.completion.key}": turn.completion.key is not None,
    }
    present = ", ".join(note for note, applies in notes.items() if applies)
    return f" ({present})" if present else ""


def _rule(title: str) -> str:
    return f"--- {title} ".ljust(80, "-")

"""What a model may be told about its program before it tries again: nothing, how many tests pass, or the
first failure.

Told is only what the shown tests say; a program that hidden tests alone refuse is told that it passes.
Knows problems and verdicts; does not know where in a prompt the words go (`prompts.py`).
"""

from typing import Literal

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.problems import Problem

Feedback = Literal["none", "verdict", "error"]

REPEATED = "The program above is the same as the one before it."


def passes_shown(problem: Problem, result: ExecutionResult) -> bool:
    """Whether every test that the model was shown passes: what it could find out by itself."""
    return not result.is_infra_failure and all(verdict.passed for verdict in _shown(problem, result))


def feedback(mode: Feedback, problem: Problem, result: ExecutionResult, max_chars: int) -> str:
    """The words about a program, or "" where there is nothing to tell.

    Args:
        mode: `verdict` says how many of the shown tests pass; `error` also the first that does not, with what
            it expected and got, or the exception's last line.
        max_chars: Of the test, and of what went wrong with it, at most; longer ones are cut.

    Example:
        "The program above passes 1 of the 3 tests. This one fails:\\n\\nassert f(2) == 4\\n\\nExpected 4,
        got 5."

    """
    verdicts = _shown(problem, result)
    if mode == "none" or not verdicts:
        return ""
    passed = sum(verdict.passed for verdict in verdicts)
    if passed == len(verdicts):
        return "The program above passes the tests."
    if mode == "error" and result.error_type:
        return f"The program above ends before any test with {_reason(verdicts[0], max_chars)}"
    count = f"The program above passes {passed} of the {len(verdicts)} tests."
    if mode == "verdict":
        return count
    number = next(n for n, verdict in enumerate(verdicts) if not verdict.passed)
    test, reason = problem.test_list[number], _reason(verdicts[number], max_chars)
    return f"{count} This one fails:\n\n{_cut(test, max_chars)}\n\n{reason}"


def _shown(problem: Problem, result: ExecutionResult) -> tuple[Verdict, ...]:
    return result.verdicts[: len(problem.test_list)]


def _reason(verdict: Verdict, max_chars: int) -> str:
    if verdict.status is Status.FAILED and verdict.expected is not None and verdict.actual is not None:
        expected, actual = (_cut(side, max_chars // 2) for side in (verdict.expected, verdict.actual))
        return f"Expected {expected}, got {actual}."
    if verdict.status is Status.TIMEOUT:
        return "It takes too long."
    lines = (verdict.message or "").strip().splitlines()
    kind = verdict.error_type or verdict.status.name.capitalize()
    return _cut(f"{kind}: {lines[-1]}" if lines else kind, max_chars)


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max(0, max_chars - 4)]} ..."

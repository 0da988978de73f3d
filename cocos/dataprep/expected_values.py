"""Expected values of tests that a data set gives as inputs only: the reference computes them in the sandbox.

A program evaluates many calls, one after another. A call that reaches a limit is tried again as the first.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cocos.dataprep.formats.conversion import Converted
from cocos.dataprep.formats.input_tests import literal
from cocos.dataprep.formats.shown_tests import MAX_TEST_CHARS
from cocos.executor import Executor, Program, Status, Verdict
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem

CALLS_PER_PROGRAM = 250
# Far from what a call of the published sets takes (2 s), so that the tests do not depend on the machine.
CALL_CPU_S = 10
PROGRAM_WALL_S, OUTPUT_KB = 600, 16 << 10
# The size of a value and, unless it is too large for a test, the value. A reference may define `len`.
SIZED = (
    "(lambda value, b: (lambda size: (size, value if size <= {max_chars} else None))(b.len(b.repr(value))))"
    "({expression}, __import__('builtins'))"
)
# A call that ends like this may be the victim of earlier ones.
LIMITS_REACHED = (Status.TIMEOUT, Status.MEMORY, Status.NOT_RUN)
ENDINGS = ("ProcessExit", "ProcessKilled", "OutputLimit")


class ExpectedValue(NamedTuple):
    """Value of an expression, or the reason why there is none."""

    value: Any
    error: str | None = None


def with_expected_values(converted: Converted, place: Place, executor: Executor) -> Converted:
    """Return a converted row with asserts in place of its `input_tests`.

    A test is left out, with its origin and a reason, if its reference raises, or if value or test cannot be
    written.

    Raises:
        DataError: No visible test is left.
        ExecutorError: The executor failed.

    """
    tests, problem = converted.input_tests, converted.problem
    assert tests is not None
    program = replace(problem, code=f"{problem.code}\n{tests.preamble}")
    values = compute_values(program, [tests.expression(call) for call in tests.calls], executor)
    visible: list[str] = []
    hidden: list[str] = []
    left_out = list(converted.left_out)
    for call, (value, error) in zip(tests.calls, values, strict=True):
        try:
            if error is not None:
                raise ValueError(error)
            test = tests.test(call, value)
            if len(test) > MAX_TEST_CHARS:
                raise ValueError(f"the test has {len(test)} characters, more than {MAX_TEST_CHARS}")
        except (ValueError, TypeError, ArithmeticError) as reason:
            left_out.append(f"{call.origin}: {reason}")
        else:
            (hidden if call.is_hidden else visible).append(test)
    if not visible:
        raise DataError(f"{place}: no base input gives a test; {left_out[0]}")
    complete = replace(problem, test_list=tuple(visible), hidden_test_list=tuple(hidden))
    return converted._replace(problem=complete, left_out=tuple(left_out), input_tests=None)


def compute_values(
    problem: Problem, expressions: Sequence[str], executor: Executor, cpu_s: int = CALL_CPU_S
) -> list[ExpectedValue]:
    """Return the value of each expression after the reference has run, computed in the sandbox.

    Args:
        problem: Problem with the reference.
        expressions: The expressions.
        executor: Executor of the reference.
        cpu_s: Most CPU seconds of an expression; one that needs more has no value.

    Raises:
        ExecutorError: The executor failed.

    """
    limits = replace(executor.limits, wall_s=PROGRAM_WALL_S, cpu_s=cpu_s, output_kb=OUTPUT_KB)
    program = Program(problem.code, ("",), problem.setup, limits)
    values: list[ExpectedValue] = []
    while len(values) < len(expressions):
        part = [
            SIZED.format(max_chars=MAX_TEST_CHARS, expression=expression)
            for expression in expressions[len(values) :][:CALLS_PER_PROGRAM]
        ]
        for number, (value, verdict) in enumerate(executor.values(program, part)):
            if number and (verdict.status in LIMITS_REACHED or verdict.error_type in ENDINGS):
                break  # earlier calls have used a part of the limits; another program begins with it
            values.append(_read(value, verdict))
    return values


def _read(sized: Any, verdict: Verdict) -> ExpectedValue:
    if verdict.status in LIMITS_REACHED or verdict.error_type in ENDINGS:
        return ExpectedValue(None, f"the reference does not return: {verdict.error_type}")
    if not verdict.passed:
        return ExpectedValue(None, f"{verdict.error_type}: {verdict.message}")
    size, value = sized
    if size > MAX_TEST_CHARS:
        return ExpectedValue(None, f"the value has {size} characters")
    try:
        literal(value)
    except ValueError as reason:
        return ExpectedValue(None, str(reason))
    return ExpectedValue(value)

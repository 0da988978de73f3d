"""Expected values of tests that a data set gives as inputs only: the reference computes them in the sandbox.

The values come back as the `actual` of false comparisons, of which a verdict quotes the start. So the program
writes all values as one compressed text, and every test quotes one part of it.
"""

import ast
import base64
import inspect
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cocos.dataprep.formats.conversion import Converted
from cocos.dataprep.formats.input_tests import literal
from cocos.executor import Executor, ExecutorError, Program, Status
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem

MAX_TEST_CHARS = 10_000  # a longer test would make a row of which the inputs of one test are the larger part
PART_CHARS = 180  # a verdict quotes 200 characters of a value
NUM_PARTS = 128
CALLS_PER_PROGRAM = 250
# Far from what a call of the published sets takes (2 s), so that the tests do not depend on the machine.
CALL_CPU_S = 10
PROGRAM_WALL_S, PROGRAM_CPU_S = 600, 300
PARTS = tuple(f"assert _cocos_part({number}) == ''" for number in range(NUM_PARTS))
# Runs in its own namespace, because a reference may define `sum` or `sorted`.
HELPER = """
import base64, json, signal, zlib
{literal}
def stop(*_):
    raise TimeoutError("more than {call_cpu_s} s of processor time")
def value(expression, names):
    signal.setitimer(signal.ITIMER_PROF, {call_cpu_s})
    try:
        text = literal(eval(expression, names))
    except Exception as error:
        return [None, f"{{type(error).__name__}}: {{error}}"[:200]]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return [text, None] if len(text) <= {max_chars} else [None, f"the value has {{len(text)}} characters"]
def parts(expressions, names):
    signal.signal(signal.SIGPROF, stop)
    values = json.dumps([value(expression, names) for expression in expressions])
    text = base64.b64encode(zlib.compress(values.encode(), 9)).decode()
    return lambda number: text[number * {part_chars} : (number + 1) * {part_chars}]
"""
PROGRAM = """
{code}
_cocos = {{}}
exec({helper!r}, _cocos)
_cocos_part = _cocos["parts"]({expressions!r}, globals())
"""


class Value(NamedTuple):
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
        except ValueError as reason:
            left_out.append(f"{call.origin}: {reason}")
        else:
            (hidden if call.is_hidden else visible).append(test)
    if not visible:
        raise DataError(f"{place}: no base input gives a test; {left_out[0]}")
    complete = replace(problem, test_list=tuple(visible), hidden_test_list=tuple(hidden))
    return Converted(complete, tuple(left_out), converted.group)


def compute_values(problem: Problem, expressions: Sequence[str], executor: Executor) -> list[Value]:
    """Return the value of each expression after the reference has run, computed in the sandbox.

    Raises:
        ExecutorError: The executor failed.

    """
    values: list[Value] = []
    pending = [
        list(expressions[i : i + CALLS_PER_PROGRAM]) for i in range(0, len(expressions), CALLS_PER_PROGRAM)
    ]
    pending.reverse()  # the next program is the last
    while pending:
        part = pending.pop()
        found = _run(problem, part, executor)
        if isinstance(found, list):
            values += found
        elif len(part) == 1:
            values.append(Value(None, found))
        else:  # one of the calls is slow, or ends the process, or has a large value: find it
            pending += [part[len(part) // 2 :], part[: len(part) // 2]]
    return values


def _run(problem: Problem, expressions: list[str], executor: Executor) -> list[Value] | str:
    """Return the values of some expressions, or why the program did not return them all."""
    helper = HELPER.format(
        literal=inspect.getsource(literal),
        call_cpu_s=CALL_CPU_S,
        max_chars=MAX_TEST_CHARS,
        part_chars=PART_CHARS,
    )
    code = PROGRAM.format(code=problem.code, helper=helper, expressions=expressions)
    limits = replace(executor.limits, wall_s=PROGRAM_WALL_S, cpu_s=PROGRAM_CPU_S)
    result = executor.submit(Program(code, PARTS, problem.setup, limits)).result()
    if result.is_infra_failure:
        raise ExecutorError(f"the executor failed, so a reference has no values: {result.infra_error}")
    text = ""
    for verdict in result.verdicts:
        if verdict.passed:  # the text has ended
            values = json.loads(zlib.decompress(base64.b64decode(text)))
            return [_read(*value) for value in values]
        if verdict.status is not Status.FAILED or verdict.actual is None:
            return f"the reference does not return: {verdict.error_type}"
        text += ast.literal_eval(verdict.actual)
    return "the value is too large"


def _read(source: str | None, error: str | None) -> Value:
    """Return the value that `literal` wrote, without executing its source."""
    if source is None:
        return Value(None, error)
    try:
        return Value(ast.literal_eval(_ComplexNumbers().visit(ast.parse(source, mode="eval"))))
    except (ValueError, SyntaxError, MemoryError, RecursionError) as reason:
        return Value(None, f"the value cannot be read ({reason})"[:200])


class _ComplexNumbers(ast.NodeTransformer):
    """Replaces `complex(1.0, -0.0)`, whose sign `1-0j` would lose, by its value."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name("complex"), args=[real, imaginary], keywords=[]):
                return ast.Constant(complex(ast.literal_eval(real), ast.literal_eval(imaginary)))
        return node  # refused by literal_eval, except set()

"""Tests of whole programs: text for standard input, and what the program should print.

Such a test is the source `assert program_output('3\\n') == '6\\n'`. The program runs anew for each test, in a
process of its own, which never has an expected output: the trusted process compares. So one test sees nothing
of another, and no program can forge a verdict.
"""

import ast
import json
import math
from collections.abc import Sequence
from itertools import accumulate, zip_longest
from typing import NamedTuple

from cocos.executor.evidence import shown
from cocos.executor.parser import parse
from cocos.executor.verdicts import Program, Status, Verdict, comparison_text

STDOUT_FUNCTION = "program_output"
TOLERANCE = (
    1e-6  # of numbers that the expected output writes with a point or an exponent; absolute or relative
)
# Tests of one job: memory of the driver, and time until a worker counts as dead.
MAX_TESTS, MAX_CHARS = 100, 4 << 20


class StdoutTest(NamedTuple):
    """The input of a program, and the output that it should print."""

    input: str
    output: str

    @property
    def source(self) -> str:
        """The test as a problem has it."""
        return f"assert {STDOUT_FUNCTION}({self.input!r}) == {self.output!r}"


def read_stdout_test(source: str) -> StdoutTest | None:
    """Return the test that a source is; None for every other test."""
    if STDOUT_FUNCTION not in source:  # most tests need not be parsed
        return None
    try:
        body = parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match body:
        case [
            ast.Assert(
                ast.Compare(
                    ast.Call(ast.Name(name), [ast.Constant(str(given))], []),
                    [ast.Eq()],
                    [ast.Constant(str(output))],
                )
            )
        ] if name == STDOUT_FUNCTION:
            return StdoutTest(given, output)
    return None


def read_stdout_tests(program: Program) -> list[StdoutTest]:
    """Return the tests of a program that is judged by what it prints; [] for every other program."""
    tests = [] if program.has_expressions else list(map(read_stdout_test, program.test_list))
    return [test for test in tests if test] if all(tests) else []


def batch_of(tests: Sequence[StdoutTest]) -> Sequence[StdoutTest]:
    """Return the first tests, at least one, which run in one job."""
    sizes = accumulate(len(test.input) for test in tests[:MAX_TESTS])
    return tests[: max(1, sum(size <= MAX_CHARS for size in sizes))]


def judge(found: Verdict, expected: str) -> Verdict:
    """Return the verdict on a test, from that on its run, which has the output as a value."""
    if found.encoded is None:
        return found
    actual = json.loads(found.encoded)
    if is_same_output(actual, expected):
        return Verdict(Status.PASSED, duration_s=found.duration_s)
    line, *texts = _first_difference(actual, expected)
    printed, wanted = (shown(repr(text)) for text in texts)
    place = f"line {line} of the output: " if line else ""
    message = place + comparison_text(printed, "==", wanted)
    return Verdict(Status.FAILED, "AssertionError", message, wanted, printed, found.duration_s)


def is_same_output(actual: str, expected: str) -> bool:
    """Return whether a judge of programming contests accepts an output.

    The words (what white space separates) are equal, one by one. A word that is a number with a point or an
    exponent in the expected output may differ by `TOLERANCE`.
    """
    words, wanted = actual.split(), expected.split()
    return len(words) == len(wanted) and all(map(_is_same_word, words, wanted))


def _is_same_word(word: str, wanted: str) -> bool:
    if word == wanted:
        return True
    if wanted.lstrip("+-").isdigit():
        return False
    try:
        number, other = float(wanted), float(word)
    except ValueError:
        return False
    return math.isclose(other, number, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _first_difference(actual: str, expected: str) -> tuple[int, str, str]:
    """Return the number of the first line that differs, from 1, and both lines; 0 and short texts whole."""
    if len(actual) + len(expected) > 160:
        lines = enumerate(zip_longest(actual.splitlines(), expected.splitlines(), fillvalue=""), start=1)
        for number, (line, wanted) in lines:
            if not is_same_output(line, wanted):
                return number, line, wanted
    return 0, actual, expected

"""Tests of whole programs: text for standard input, and what the program should print.

Such a test is the source `assert program_output('3\\n') == '6\\n'`. The program runs anew for each test, in a
process of its own, which never has an expected output: the trusted process compares. So one test sees nothing
of another, and no program can forge a verdict.
"""

import ast
import json
import math
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from cocos.executor.evidence import shown
from cocos.executor.inside import data_types
from cocos.executor.parser import parse
from cocos.executor.verdicts import Program, Status, Verdict, comparison_text

FUNCTION = "program_output"
TOLERANCE = (
    1e-6  # of numbers that the expected output writes with a point or an exponent; absolute or relative
)
# Runs the program as a script, and returns what it wrote to descriptor 1. Its exit is that of an interpreter:
# threads end, and then what `atexit` has.
_AS_SCRIPT = f"""
def {FUNCTION}():
    import atexit, os, sys, threading, types
    output = os.memfd_create("stdout")
    os.dup2(output, 1)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    try:
        exec(compile({{source!r}}, "<program>", "exec"), main.__dict__)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"exit with {{{{end.code!r}}}}") from None
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return os.pread(output, os.fstat(output).st_size, 0).decode(errors="replace")
"""


class StdoutTest(NamedTuple):
    """The input of a program, and the output that it should print."""

    input: str
    output: str

    @property
    def source(self) -> str:
        """The test as a problem has it."""
        return f"assert {FUNCTION}({self.input!r}) == {self.output!r}"


def read_stdout_test(source: str) -> StdoutTest | None:
    """Return the test that a source is; None for every other test."""
    if not source.startswith(f"assert {FUNCTION}("):
        return None
    try:
        body = parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match body:
        case [
            ast.Assert(
                ast.Compare(
                    ast.Call(ast.Name(), [ast.Constant(str(given))], []),
                    [ast.Eq()],
                    [ast.Constant(str(output))],
                )
            )
        ]:
            return StdoutTest(given, output)
    return None


def read_stdout_tests(program: Program) -> list[StdoutTest]:
    """Return the tests of a program that is judged by what it prints; [] for every other program."""
    tests = [] if program.has_expressions else list(map(read_stdout_test, program.test_list))
    return [test for test in tests if test] if all(tests) else []


def as_job(program: Program, test: StdoutTest) -> Program:
    """Return the program that runs for one test; the value of its expression is the output."""
    code = _AS_SCRIPT.format(source=program.code)
    return replace(
        program,
        code=code,
        test_list=(f"{FUNCTION}()",),
        stdin=test.input,
        entry_point="",
        has_expressions=True,
    )


def judge(found: Verdict, expected: str) -> Verdict:
    """Return the verdict on a test, from the verdict on its job."""
    if found.encoded is None:
        return replace(found, ended_at=None)
    actual = data_types.decode_plain(json.loads(found.encoded))
    if not isinstance(actual, str):  # the program has replaced what returns its output
        return Verdict(Status.ERROR, "TypeError", "its output is no text", duration_s=found.duration_s)
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

"""Child process that drives the statements of tests. The candidate cannot reach it.

A test is run statement by statement, in Python's order. What needs the program runs in the program's process
(`program_end.py`), in its namespace. Only data come back, and this process decides. What no name of the
program takes part in runs here, natively: reference functions, numpy, conditions, loops.
"""

import json
import os
import random
import sys
import time

from program_values import CannotCross, ProgramGone
from statements import Failed, Test
from wire_format import EVIDENCE_FD, MESSAGE_CHARS

RECURSION_LIMIT = 10_000  # copies of a tree take several frames for each level of nesting


def run_driver(job: bytes, max_bytes: int) -> None:
    """Drive the tests of a job in order, write evidence as each ends, and end the process.

    The job is a JSON list of {"number", "source", "setup", "remote"}. `setup` is source to run first, and
    `remote` lists the names that only the program has. Evidence is one JSON line per test:
    [number, seconds, outcome]. An outcome is one of

        ["passed"]
        ["passed", reason, is_programs]                        passed, but the program's process took part
        ["e", error type, message]                             the test raised
        ["e", "AssertionError", "", text]                      this condition is false
        ["e", "AssertionError", "", operator, left, right]     this comparison is false; perhaps a tolerance
        ["undecided", reason]                                  only the program's process can run the test
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    for test in json.loads(job):
        start = time.perf_counter()
        random.seed(test["source"])  # the candidate knows the seed of its own `random`
        driven = Test(test["remote"])
        outcome = _outcome(driven, test["setup"], test["source"])
        row = [test["number"], time.perf_counter() - start, outcome]
        os.write(EVIDENCE_FD, json.dumps(row).encode() + b"\n")
        driven.end()  # only now: evidence that comes after the next request for tests does not count
    os._exit(0)


def _outcome(test: Test, setup: str, source: str) -> list:
    try:
        test.run(setup, source)
    except ProgramGone:
        os._exit(0)
    except CannotCross as error:
        return ["undecided", str(error)[:MESSAGE_CHARS]]
    except Failed as error:
        return ["e", "AssertionError", "", *error.sides]
    except BaseException as error:
        return ["e", type(error).__name__, _text(error)]
    return ["passed", *test.marks()]


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MESSAGE_CHARS]
    except BaseException as worse:
        return f"<{type(worse).__name__} in __str__>"

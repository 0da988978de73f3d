"""Marks: why a program could have forged a verdict, who is the cause, and whether it holds for later tests.

A test is marked if the program's process decides a part of it, or if the program may know what it expects.
Plans in the trusted process, and the driver while it runs a test, take the reasons from here.
"""

import ast
import types
from enum import StrEnum
from typing import Any, NamedTuple

from . import data_types
from .wire_format import MESSAGE_CHARS

_SMALL, _SHORT_TEXT = 1000, 3  # numbers and texts up to these are guessed as easily as known


class Reason(StrEnum):
    """Every reason for a mark; some have places for names."""

    # The test runs in the program's process, because of what its source does.
    STREAMS = "reads or replaces the standard streams"
    PATCHES = "patches what the candidate uses"
    ASYNCHRONOUS = "is asynchronous"
    THREADS = "starts threads or processes"
    STATE = "reads or changes the state of the process"
    COSTS = "measures the program's CPU time or memory"
    MEMORY = "asks how the process keeps objects"
    TRACES = "reads the traceback of an exception"
    NAMED_OBJECTS = "makes objects of what a text names"
    RUN_TIME_NAMES = "looks up names at run time"
    PICKLES = "unpickles what the program wrote"
    PANDAS = "works with objects of pandas"
    SOURCES = "reads the candidate's source or signatures"
    GLOBALS = "rebinds globals of the candidate"
    CHANGED_MODULE = "changes the module {}"
    GIVEN_MODULE = "hands over the module {}"
    FRAMEWORK = "runs a test framework"
    MATCHED_CLASS = "matches a class of the candidate"
    DERIVED_CLASS = "derives from a class of the candidate"
    NO_NAME = "no name in it is known to be the candidate's"
    SYNTAX = "does not parse: {}"
    DEPTH = "nested too deeply"
    SHARED_NAME = "shares a name with a test that runs in the program's process"
    OTHER_MEANING = "the test or the setup gives {} of the program another meaning"
    CHANGING_CLASS = "attributes of the class {} of the setup change"
    USED_NAME = "the program uses {}, which the test or the setup defines"
    # The same, as the driver finds out.
    GETS = "the program gets {}"
    LOST_OBJECT = "an object that the program has no more"
    EVALUATES = "the test evaluates text"
    COMPILES = "the test compiles text"
    UNPICKLES = "the test unpickles, or loads a library"
    IMPORTS_FILE = "the test imports a file of the working folder"
    ASKS = "asks {} of {} of the program"
    # The driver runs the test, but asks the program for what decides it.
    DECIDED = "decided by {} of the program"
    # The program may know what the test expects.
    GETS_SETUP = "the program gets {} of the setup"
    GETS_VALUE = "the program gets a value with a function of the test"
    RAN_THERE = "test {} ran in the program's process"
    READS_MARKED = "reads {} of a test that is marked"


class Mark(NamedTuple):
    """A reason why the program could have forged a verdict.

    Attributes:
        reason: The reason.
        is_marked_by_program: The program has caused it; with another one, the test may be unmarked.

    """

    reason: str
    is_marked_by_program: bool = False


UNMARKED = Mark("")


class Marks:
    """The marks of a job's tests in the driver."""

    def __init__(self) -> None:
        self._of_test: dict[str, bool] = {}  # is_marked_by_program of each reason
        self._lasting: dict[str, bool] = {}

    def begin_test(self) -> None:
        """Drop the marks that hold for no later test."""
        self._of_test = {**self._lasting}

    def keep(self) -> None:
        """Let all marks hold for all later tests."""
        self._lasting |= self._of_test

    def add(self, reason: str, is_marked_by_program: bool = True, *told: Any) -> None:
        """Mark the test; all later ones too, if the program gets a value that they may expect.

        Args:
            reason: The reason.
            is_marked_by_program: The program has caused it.
            told: What the program gets.

        """
        self._of_test[reason] = is_marked_by_program or self._of_test.get(reason, False)
        if any(map(may_be_expected, told)):
            self._lasting[reason] = self._of_test[reason]

    def mark(self) -> Mark:
        """Return all marks of the test as one; with an empty reason if there are none."""
        reasons = self._of_test
        return Mark(", ".join(reasons)[:MESSAGE_CHARS], any(reasons.values())) if reasons else UNMARKED


def may_be_expected(value: Any) -> bool:
    """Return whether a program that knew this value could answer with it: no small number, no short text."""
    kind = type(value)
    if kind in (int, bool):
        return abs(value) > _SMALL
    if kind in (str, bytes):
        return len(value) > _SHORT_TEXT
    is_empty = data_types.tag_of(value) not in ("", data_types.ARRAY) and not value
    return not (value is None or is_empty or callable(value) or kind is types.ModuleType)


def holds_expected(node: ast.AST) -> bool:
    """Return whether a part of a source is such a value: a constant, or a display of several."""
    match node:
        case ast.Constant(value=value):
            return may_be_expected(value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return (
                sum(isinstance(inner, ast.Constant) for part in parts if part for inner in ast.walk(part)) > 1
            )
    return False


def tells_expected(source: str) -> bool:
    """Return whether a test's source has such a value, or computes one of constants."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    sums = (node for node in nodes if isinstance(node, ast.BinOp))
    is_known = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return any(map(holds_expected, nodes)) or any(
        all(isinstance(part, is_known) for part in ast.walk(node)) for node in sums
    )

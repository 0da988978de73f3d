"""`Executor.values`: what a program's functions return, as data."""

import datetime
import math

import pytest

from cocos.executor import Executor, Limits, Program, Status
from tests.executor.test_forgeries import FORGE
from tests.support.executor import offered

pytestmark = pytest.mark.processes

CODE = """
import datetime, os, time
class Point: pass
class Age(int): pass
def f(x): return [x, (x,), {x: {x}}]
def grow(items=[]):
    items.append(len(items))
    return items
"""
PROGRAM = Program(CODE, ("assert False",), setup="N = 7", limits=Limits(wall_s=6, cpu_s=2, output_kb=64))


@pytest.fixture(scope="module")
def executor():
    with Executor(1, sandbox=offered("namespaces", "seccomp") or "rlimits") as executor:
        yield executor


def test_values_are_data_of_their_types(executor):
    texts = ("f(1)", "N", "2 ** 70", "float('-inf')", "b'x'", "datetime.date(2020, 1, 2)", "None  # nothing")
    values = executor.values(PROGRAM, texts)
    expected = [[1, (1,), {1: {1}}], 7, 2**70, -math.inf, b"x", datetime.date(2020, 1, 2), None]
    assert [value for value, _ in values] == expected
    assert all(verdict.passed for _, verdict in values)
    assert executor.values(PROGRAM, ()) == []


def test_expressions_are_evaluated_in_order_in_one_process(executor):
    assert [value for value, _ in executor.values(PROGRAM, ("grow()",) * 3)] == [[0], [0, 1], [0, 1, 2]]


def test_an_expression_without_a_plain_value_has_a_verdict_that_says_why(executor):
    errors = {
        **{"Point()": "NotPlainValue", "Age(3)": "NotPlainValue", "range(3)": "NotPlainValue"},
        **{"1 / 0": "ZeroDivisionError", "f('x' * 70_000)": "OutputLimit", "f(2)[0]": None},
        **{"os._exit(0)": "ProcessExit", "f(1)": None},
    }
    values = dict(zip(errors, executor.values(PROGRAM, tuple(errors)), strict=True))
    assert {text: verdict.error_type for text, (_, verdict) in values.items()} == errors
    assert values["f(2)[0]"].value == 2 and values["f(1)"].verdict.status is Status.NOT_RUN
    assert "Point" in values["Point()"].verdict.message and values["Point()"].value is None


def test_what_is_no_expression_is_refused(executor):
    for text in ("x = 1", "1), (2", "", "import os"):
        with pytest.raises(SyntaxError):
            executor.values(PROGRAM, (text,))


def test_a_forged_value_is_an_error_or_what_the_program_says(executor):
    code = f"{FORGE}\ndef f(): answer_all(['v', {{node}}, [], [], []])"
    for node, error in (
        ("5", None),
        ('["zz"]', "MalformedEvidence"),
        ("{}", "MalformedEvidence"),
        ('["i", 5]', "MalformedEvidence"),
        ('["r", 0, 9, 1]', "NotPlainValue"),
    ):
        [value] = executor.values(Program(code.replace("{node}", node), ("",)), ("f()",))
        assert value.verdict.error_type == error and value.value == (5 if error is None else None)

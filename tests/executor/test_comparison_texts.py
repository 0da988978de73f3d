"""What a verdict says about a false assert: golden texts."""

from dataclasses import replace

import pytest

from cocos.executor import Executor, Limits, Program, Status
from cocos.problems import Problem
from cocos.prompts import feedback_message
from tests.support.executor import EVERY_LEVEL, level_or_skip, offered

pytestmark = pytest.mark.processes

CODE = """
def f(x): return x
def g(x): return [x]
def long(n): return 'a' * n
class P:
    def __init__(self, x): self.x = x
    def __repr__(self): return f'P({self.x})'
    def __eq__(self, other): return self.x == other.x
    __hash__ = None
"""
TEXTS = {
    "assert f(1) == 2": "expected 2, got 1",
    "assert f(1) != 1": "expected a value other than 1, got 1",
    "assert f(3) > 5": "3 is not > 5",
    "assert f(3) <= 2": "3 is not <= 2",
    "assert f(1) in [2, 3]": "1 is not in [2, 3]",
    "assert f(2) not in [2, 3]": "2 is in [2, 3]",
    "assert 2 in g(1)": "[1] does not contain 2",
    "assert f(1) is None": "expected None, got 1",
    "assert abs(f(0.5) - 1) < 1e-6": "0.5 is not within 1e-06 of 1",
    "assert f('a') == 'b'": "expected 'b', got 'a'",
    "assert f({2, 1}) == {3}": "expected {3}, got {1, 2}",
    "assert sorted(f([2, 1])) == [2, 1]": "expected [2, 1], got [1, 2]",
    "assert f(0)": "false: f(0)",
    "assert 1 < f(1) < 3": "false: 1 < f(1) < 3",
    "assert f(1) == 1\nassert f(2) == 3\nassert f(3) == 5": "expected 3, got 2",
    "assert f(1) == 1 and f(2) == 3": "false: f(1) == 1 and f(2) == 3",
    "assert P(1) == P(2)": "",  # in the program's process, as two objects are compared
    "x = [2, 1]\nassert f(x) is not x": "expected a value other than [2, 1], got [2, 1]",
}


@pytest.fixture(scope="module")
def executor():
    with Executor(2, Limits(wall_s=20), offered("namespaces", "seccomp") or "rlimits") as executor:
        yield executor


def messages(executor, tests):
    [result] = executor.run([Program(CODE, tuple(tests))])
    assert {v.status for v in result.verdicts} == {Status.FAILED}, result
    return [verdict.message for verdict in result.verdicts]


def test_a_false_assert_says_what_it_compares(executor):
    assert dict(zip(TEXTS, messages(executor, TEXTS), strict=True)) == TEXTS


def test_values_of_a_million_characters_are_cut(executor):
    tests = ("assert long(1000000) == 'b'", "x = [long]\nassert x[0](1000000) == 'b'")
    assert messages(executor, tests) == [f"expected 'b', got '{'a' * 199}"] * 2


LONE = r"'\ud800'"  # half of a pair, which UTF-8 cannot encode
SPEAKING = {
    f"def f(x): raise ValueError({LONE})": r"\ud800",
    f"def f(x): raise ValueError({LONE} * 300)": r"\ud800" * 33,
    f"raise ValueError({LONE})": r"\ud800",
    f"class E(Exception):\n    __str__ = lambda s: {LONE}\ndef f(x): raise E": r"\ud800",
    f"def f(x): return {LONE}": r"expected 1, got '\ud800'",
    f"class P:\n    __repr__ = lambda s: {LONE}\n    __eq__ = lambda s, o: False\ndef f(x): return P()": r"\ud800",
}


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_no_message_has_a_character_that_a_tokenizer_refuses(level):
    tests = ("assert f(1) == 1", "for x in [f(1)]:\n    assert x is None")
    with Executor(2, Limits(wall_s=20), level_or_skip(level)) as executor:
        results = executor.run([Program(code, tests) for code in SPEAKING])
        [equal] = executor.run([Program(f"def f(x): return {LONE}", (f"assert f(1) == {LONE}",))])
    assert equal.all_passed
    for (code, said), result in zip(SPEAKING.items(), results, strict=True):
        assert any(said in (verdict.message or "") for verdict in result.verdicts), result
        problem = Problem(task_id="1", text="", code=code, test_list=tests)
        feedback_message("error", problem, result, 300).encode()
        for verdict in result.verdicts:
            "".join(map(str, vars(verdict).values())).encode()


def test_the_model_is_told_what_does_not_hold(executor):
    problem = Problem(task_id="1", text="", code=CODE, test_list=("assert f(1) == 1",))
    told = {
        "assert f(3) > 5": "3 is not > 5.",
        "assert f(1) == 2": "Expected 2, got 1.",
        "assert f(1) == 1": "The program above passes the tests.",
    }
    results = executor.run([Program(CODE, (test,)) for test in told])
    for (test, words), result in zip(told.items(), results, strict=True):
        text = feedback_message("error", replace(problem, test_list=(test,)), result, 300)
        assert text.split("\n\n")[-1] == words

"""What a verdict says about a false assert: golden texts."""

from dataclasses import replace

import pytest

from cocos.executor import Executor, Limits, Program, Status
from cocos.problems import Problem
from cocos.prompts import feedback_message
from tests.support.executor import EVERY_LEVEL, level_or_skip, offered

pytestmark = pytest.mark.processes

CODE = """
from decimal import Decimal
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
    "assert 2 == f(1)": "expected 2, got 1",
    "assert f(1) != 1": "expected a value other than 1, got 1",
    "assert f(3) > 5": "3 is not > 5",
    "assert f(3) >= 5": "3 is not >= 5",
    "assert f(3) < 3": "3 is not < 3",
    "assert f(3) <= 2": "3 is not <= 2",
    "assert 5 < f(3)": "3 is not > 5",
    "assert f(1) in [2, 3]": "1 is not in [2, 3]",
    "assert f(2) not in [2, 3]": "2 is in [2, 3]",
    "assert 2 in g(1)": "[1] does not contain 2",
    "assert 1 not in g(1)": "[1] contains 1",
    "assert f(1) is None": "expected None, got 1",
    "assert f(None) is not None": "expected a value other than None, got None",
    "assert abs(f(0.5) - 1) < 1e-6": "0.5 is not within 1e-06 of 1",
    "assert abs(1 - f(0.5)) < 1e-6": "0.5 is not within 1e-06 of 1",
    "assert f('a') == 'b'": "expected 'b', got 'a'",
    "assert f([1, 2]) == [1, 3]": "expected [1, 3], got [1, 2]",
    "assert f({'a': 1}) == {'a': 2}": "expected {'a': 2}, got {'a': 1}",
    "assert f({2, 1}) == {3}": "expected {3}, got {1, 2}",
    "assert len(g(1)) == 2": "expected 2, got 1",
    "assert sorted(f([2, 1])) == [2, 1]": "expected [2, 1], got [1, 2]",
    "assert g(1)[0] == 2": "expected 2, got 1",
    "assert f(1) + 1 == 3": "expected 3, got 2",
    "assert f(0)": "false: f(0)",
    "assert not f(1)": "false: not f(1)",
    "x = f(1)\nassert x == 1 and x > 3": "false: x == 1 and x > 3",
    "assert 1 < f(1) < 3": "false: 1 < f(1) < 3",
    "assert isinstance(f(1), str)": "false: isinstance(f(1), str)",
    "import math\nassert math.isclose(f(1.0), 2)": "false: math.isclose(f(1.0), 2)",
    "assert f(1) == 1\nassert f(2) == 3\nassert f(3) == 5": "expected 3, got 2",
    "x = f(4)\nassert x == 4\nassert x > 9": "4 is not > 9",
    "assert f(1) == 1 and f(2) == 3": "false: f(1) == 1 and f(2) == 3",
    "assert P(1) == P(2)": "",  # in the program's process, as two objects are compared
    "assert f(Decimal('0.5')) > 1": "Decimal('0.5') is not > 1",
    "assert f(range(3)) == [0, 1]": "expected [0, 1], got range(0, 3)",
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


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("assert f(3) > 5", "3 is not > 5."),
        ("assert f(1) != 1", "Expected a value other than 1, got 1."),
        ("assert abs(f(0.5) - 1) < 1e-6", "0.5 is not within 1e-06 of 1."),
        ("assert f(1) in [2, 3]", "1 is not in [2, 3]."),
        ("assert f(1) == 2", "Expected 2, got 1."),
    ],
)
def test_the_model_is_told_what_does_not_hold(executor, test, words):
    problem = Problem(task_id="1", text="", code=CODE, test_list=(test,))
    [result] = executor.run([Program(CODE, (test,))])
    assert feedback_message("error", problem, result, 300).split("\n\n")[-1] == words
    passing = replace(problem, test_list=("assert f(1) == 1",))
    [passed] = executor.run([Program(CODE, passing.test_list)])
    assert feedback_message("error", passing, passed, 300) == "The program above passes the tests."

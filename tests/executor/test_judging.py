"""Plans for judging tests, and the reading of evidence, without running a program."""

import json

import pytest

from cocos.executor import Limits, Status
from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.evidence import Answer, read_result
from cocos.executor.judging.plans import Driven, InChild, next_plan, plan_test
from cocos.problems import load_problems
from tests.support.paths import dataset


def test_a_plan_keeps_the_expected_value_out_of_the_candidates_process():
    plan = plan_test("assert f(1, [2]) == 'the secret'")
    assert isinstance(plan, Split) and plan.atoms == ("f(1, [2])",)
    plan = plan_test("def check(c):\n    assert c(1) == 'the secret'\ncheck(f)")
    assert isinstance(plan, Split) and plan.atoms == ("f(1)",)
    plan = plan_test("def check(c):\n    for x in (1, 2):\n        assert c(x) == 'the secret'\ncheck(f)")
    assert isinstance(plan, Driven) and plan.remote == ("f",)


@pytest.mark.parametrize(
    ("test", "atoms"),
    [
        ("assert not f(1)", ("f(1)",)),
        ("assert f(1) is None", ("f(1)",)),
        ("assert math.isclose(f(1), 2.5, rel_tol=0.01)", ("f(1)",)),
        ("assert set(f(1)) == set([1, 2])", ("set(f(1))",)),
        ("assert 1 < f(1) <= 3", ("f(1)",)),
        ("assert abs(f(1) - 0.5) < 1e-6", ("f(1)",)),
        ("assert abs(f(1) - 0.5) <= 1e-6 * max(1.0, abs(0.5))", ("f(1)",)),
        ("assert sum(10, 15) == 6", ("sum(10, 15)",)),  # the function under test has the name of a builtin
        ("assert f(lambda x: x > 1, [1, 2]) == [2]", ("f(lambda x: x > 1, [1, 2])",)),
        ("assert f(DATA)[0] == 2", ("f(DATA)[0]",)),
        ("assert f(1)[g(0)] == 2 or f(1)", None),
        ("assert f(1) == 1\nassert g(2)[-1] == 3\nassert f(g(3)) == 3", ("f(1)", "g(2)[-1]", "f(g(3))")),
        ("x = [2, 1]\nassert f(x) == [1, 2]", ("f([2, 1])",)),
        ("want = [1, 2]\nassert f(1) == want\nassert g(1) == want", ("f(1)", "g(1)")),
        ("r = f(1)\nassert r == 2 and len(r) == 1\nassert isinstance(r, list)", ("f(1)",)),
        ("def test():\n    'Doc.'\n    r = f(1)\n    assert r == 2\ntest()", ("f(1)",)),
        ("def check(c):\n    assert c(1) == 1\n    assert c(2) == 2\ncheck(f)", ("f(1)", "f(2)")),
        ("x = [2, 1]\nassert f(x, lambda n: n > 1) == [2]", ("f([2, 1], lambda n: n > 1)",)),
        ("x = 2\ny = (x, 3)\nassert f(x, y) == x\nassert g(y) == 3", ("f(2, (2, 3))", "g((2, 3))")),
        # Where a call could change what the test uses again, or a value that another call returned.
        ("x = [2, 1]\nf(x)\nassert x == [1, 2]", None),
        ("x = [2, 1]\nassert f(x) == x", None),
        ("x = [2, 1]\nassert f(x) == 1\nassert g(x) == 2", None),
        ("x = [2, 1]\nr = f(x)\nassert r == 1 and x == [1, 2]", None),
        ("x = [2, 1]\ny = x\nassert f(y) == 1", None),
        ("x = [2, 1]\ny = (x, 3)\nassert f(y) == 1", None),
        ("x = [2, 1]\nassert f(lambda: x.pop()) == 1", None),
        ("x = [2, 1]\nassert f([x for _ in '12']) == 1", None),
        # A second call in an assert, and calls that Python may not make.
        ("assert [f(1), f(2)] == [1, 2]", None),
        ("def check(c):\n    assert c(1) == c(2)\ncheck(f)", None),
        ("assert round(f(1), 2) == 0.5 and isinstance(f(1), (int, float))", None),
        ("assert 1 == 2 or f(1)", None),
        ("assert 1 < 2 < f(1)", None),
        ("a = f(1)\nb = f(2)\nassert a == [1] and b == [2]", None),
        ("a = f(1)\nassert g(a) == 2", None),
        ("a = f(1)\nb = g(a)\nassert b == 2", None),
        ("a = f(1)\nassert f(2) == 2 and a == 1", None),
        ("x = 1\nassert f(lambda x: x + 1) == 2", None),
        ("def check(c):\n    c = 1\n    assert c == 1\ncheck(f)", None),
        ("assert sorted(f(1)[0]) == [1, 2]", ("sorted(f(1)[0])",)),
        ("assert list(map(f, [1, 2])) == [1, 4]", ("list(map(f, [1, 2]))",)),
        ("assert Solution().f(1) == [0] * 1000", ("Solution().f(1)",)),
        ("assert make(2)(3) == math.pi * 2**3", ("make(2)(3)",)),
        ("assert f('aab') == Counter('aab')", ("f('aab')",)),
        ("r = f(1)\nassert round(r, 2) == 0.5 and isinstance(r, (int, float))", ("f(1)",)),
    ],
)
def test_an_assert_is_split_at_the_candidates_calls(test, atoms):
    plan = plan_test(test)
    assert getattr(plan, "atoms", None) == atoms


# Besides the demands of test_demands.py: what takes long in the trusted process, and what depends on its hash seed.
@pytest.mark.parametrize(
    "test",
    [
        *(
            "f(1) == 9**9**9",
            "f(1) == [0] * 10**9",
            "f(1) == ('a' * 9999) * 9999",
            "f(1) == '%999999999d' % 3",
        ),
        *(
            "f(1) == list(range(10**9))",
            "f(1) == 1 << 10**9",
            "f(1) == round(1, -10**9)",
            "round(f(1), f(2)) == 1",
            "f(1) == [0] * max(10**9, 1)",
            "f(1) == 2 * int('9' * 9)",
        ),
        *(
            "sum(f(1), []) == []",
            "f(1) == bytes(10**10)",
            "max(f(1), key=bytes) == 1",
            "f(1) == [0] * int('9' * 9)",
        ),
        *("f(1) == list({'a', 'b'})", "f(1) == str(set('ab'))", "f(1) == tuple(frozenset(['a']))"),
        *("f(1) == max({'a', 'b'}, key=len)", "f(1) == repr([{'a'}])", "f(1) == dict(zip({'a'}, [1]))"),
        *(
            "f(1) is f(1)",
            "f(1) is 3",
            "type(f(1)) == int",
            "f(1).x",
            "f(1).upper() == 'A'",
            "word.startswith('a')",
        ),
    ],
)
def test_an_assert_that_the_trusted_process_cannot_decide_is_driven(test):
    assert isinstance(plan_test(f"assert {test}"), Driven)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("async def g():\n    assert await f() == 1\nasyncio.run(g())", "is asynchronous"),
        ("with redirect_stdout(out):\n    f()", "reads or replaces the standard streams"),
        ("import sys\nsys.setrecursionlimit(9)\nassert f(1)", "reads or changes the state of the process"),
        ("import time\ntime.sleep = print\nassert f(1)", "changes the module time"),
        ("def g():\n    global cache\n    cache = {}\ng()\nassert f(1)", "rebinds globals of the candidate"),
        ("from unittest.mock import patch\nassert f(1)", "patches what the candidate uses"),
        ("import unittest\nassert f(1)\nunittest.main()", "runs a test framework"),
        ("class B(Base):\n    pass\nassert B().x == 1", "derives from a class of the candidate"),
        ("assert eval('f(1) == 2')", "no name in it is known to be the candidate's"),
        ("x = f(1)\nassert eval('f(1)') == x", "looks up names at run time"),
        ("assert f(1) ==", "does not parse: invalid syntax (<unknown>, line 1)"),
    ],
)
def test_a_test_that_needs_the_candidates_process_says_why(test, reason):
    plan = plan_test(test)
    assert isinstance(plan, InChild) and plan.reason == reason


def test_the_setup_runs_in_the_judge_only_if_it_needs_no_candidate_at_once():
    test = "assert same(f(1), WANT)"
    assert plan_test(test, "WANT = 1\ndef same(a, b): return a == b").setup.startswith("WANT = 1")
    assert plan_test(test, "def same(a, b): return g(a) == b\nWANT = 1").remote == ("f", "g")
    plan = plan_test(test, "def same(a, b): return a == b\nWANT = g()")
    assert plan.reason == "uses names of a setup that needs the candidate"


def test_planning_prints_no_warning(recwarn):
    assert isinstance(plan_test("assert (f(1) == 2) is (1 is 1) and '\\d'"), Driven)
    assert isinstance(plan_test("assert f(1) == (3 is 3)"), Split)
    assert [str(warning.message) for warning in recwarn] == []


def test_the_entry_point_is_never_the_builtin():
    test = "x = parse('1')\nx.sort()\nassert sum(x) == 6"
    assert plan_test(test).remote == ("parse",) and plan_test(test, "", "sum").remote == ("parse", "sum")


def test_a_test_that_could_be_split_is_never_decided_beside_the_candidate():
    test = "assert f(1) == 2"
    judged = next_plan(plan_test(test), test, "", "", "not plain")
    assert isinstance(judged, Driven) and next_plan(judged, test, "", "", "not judged") == judged
    test = "x = f(1)\nx.sort()\nassert x == 2"
    assert next_plan(plan_test(test), test, "", "", "not judged").reason == "not judged"


@pytest.mark.processes
def test_every_test_of_mbpp_is_split():
    for name in ("mbpp.jsonl", "sanitized-mbpp.json"):
        problems = load_problems(dataset(name))
        tests = [plan_test(test, p.setup) for p in problems for test in p.test_list + p.challenge_test_list]
        assert all(isinstance(plan, Split) for plan in tests)


def read(test: str, line: str):
    answer = Answer(b"E", 0, 0.1, 0.1, 0.0, 10.0, f'["loaded", 0, []]\n{line}\n'.encode(), b"")
    return read_result((plan_test(test),), answer, Limits(), "x")


# Values that are small as evidence and costly to handle. The trusted process must not even build them.
@pytest.mark.parametrize(
    "value",
    [
        ["F", ["i", hex(3**600_000)], ["i", hex(5**400_000)]],
        ["D", "1e1000000"],
        ["r", 0, 10**12, 1],
        ["i", "0x" + "f" * 900_000],
        ["l", ["g", 1, 2]],
        ["o", "Liar", True],
        ["s", *(["i", hex(n * (2**61 - 1))] for n in range(35_000)), *range(5_000)],
        ["d", *(part for n in range(20_000) for part in (["i", hex(n * (2**61 - 1))], 0))],
        ["f", ["t", ["l"]], 1],
    ],
    ids=[
        "fraction",
        "decimal",
        "range",
        "integer",
        "iterator",
        "object",
        "equal hashes",
        "equal keys",
        "list as key",
    ],
)
@pytest.mark.parametrize(
    "test", ["assert f() == 3", "assert sum(f()) == 6", "assert 'a' in f()", "assert round(f()) != 3"]
)
def test_a_costly_value_decides_nothing(value, test):
    reading = read(test, json.dumps([0, 0.0, [["v", value]]]))
    assert not reading.result.all_passed


@pytest.mark.parametrize(
    ("test", "value", "status"),
    [
        ("assert f() == {3: [1.5]}", ["d", 3, ["l", 1.5]], Status.PASSED),
        ("assert f() in ('a', b'a')", ["b", "61"], Status.PASSED),
        ("assert max(f()) == 2**200", ["t", 1, ["i", hex(2**200)]], Status.PASSED),
        ("assert f()['a'] == 1", ["d", "a", 2], Status.FAILED),
        ("assert f() < 3", "a", Status.ERROR),
    ],
)
def test_plain_values_decide_a_split_test(test, value, status):
    reading = read(test, json.dumps([0, 0.0, [["v", value]]]))
    assert reading.result.verdicts[0].status is status and reading.undecided == {}


def test_an_undecided_test_says_why():
    assert read("assert f() == 3", '[0, 0.0, [["n", "returned Node"]]]').undecided == {0: "returned Node"}
    # A missing key may be there in a defaultdict, whose factory does not cross.
    assert 0 in read("x = f()\nassert x['a'] == 0", '[0, 0.0, [["v", ["f", "b", 1]]]]').undecided


def test_sets_are_shown_in_order():
    value = ["t", ["s", *"cbda"], ["d", 1, ["z", 9, 8]], ["s"]]
    [verdict] = read("assert f() == 3", json.dumps([0, 0.0, [["v", value]]])).result.verdicts
    assert verdict.actual == "({'a', 'b', 'c', 'd'}, {1: frozenset({8, 9})}, set())"


@pytest.mark.parametrize("line", ["", "{}", "[", "[0]", '[0, 0.0, ["v"]]', '[0, 0.0, [["v"]]]', '[0, 1e999, [["v", 2]]]', '[1, 0.0, [["v", 2]]]',
                                  '[0, 0.0, [["v", ["zz"]]]]', "[" * 5000, '[0, "0", [["v", 2]]]', '[true, 0.0, [["v", 2]]]', '[0, 0.0, [["e", 1, 2]]]'])  # fmt: skip
def test_malformed_evidence_never_passes_a_test(line):
    [verdict] = read("assert f() == 3", line).result.verdicts
    assert not verdict.passed and 0 <= verdict.duration_s < 1e9


def test_a_value_that_no_assert_needs_must_be_there():
    outcomes = '[0, 0.0, [["e", "ValueError", "no"], ["v", 3]]]'
    [verdict] = read("x = f(1)\nassert g(2) == 3", outcomes).result.verdicts
    assert verdict.error_type == "ValueError"


def test_the_first_false_assert_is_the_verdict():
    test = "assert f(1) == 1\nassert f(2) > 5\nassert f(3) == 0"
    values = '[0, 0.0, [["v", 1], ["v", 2], ["e", "ValueError", "no"]]]'
    assert read(test, values).result.verdicts[0].message == "2 is not > 5"
    assert read(test, values.replace('["v", 2]', '["v", 9]')).result.verdicts[0].error_type == "ValueError"

"""Plans for judging tests, and the reading of evidence, without running a program."""

import pytest

from cocos.executor import Limits
from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.evidence import Answer, read_result
from cocos.executor.judging.plans import Judged, plan_test
from cocos.problems import load_problems
from tests.support.paths import dataset


def test_a_plan_keeps_the_expected_value_out_of_the_candidates_process():
    plan = plan_test("assert f(1, [2]) == 'the secret'")
    assert isinstance(plan, Split) and plan.atoms == ("f(1, [2])",)
    plan = plan_test("def check(c):\n    assert c(1) == 'the secret'\ncheck(f)")
    assert isinstance(plan, Judged) and plan.remote == ("f",)


@pytest.mark.parametrize(
    ("test", "atoms"),
    [
        ("assert not f(1)", ("f(1)",)),
        ("assert f(1) is None", ("f(1)",)),
        ("assert math.isclose(f(1), 2.5, rel_tol=0.01)", ("f(1)",)),
        ("assert set(f(1)) == set([1, 2])", ("set(f(1))",)),
        ("assert 1 < f(1) <= 3 and f(2) in (1, 2)", ("f(1)", "f(2)")),
        ("assert abs(f(1) - 0.5) < 1e-6", ("f(1)",)),
        ("assert sum(10, 15) == 6", ("sum(10, 15)",)),  # the function under test has the name of a builtin
        ("assert f(lambda x: x > 1, [1, 2]) == [2]", ("f(lambda x: x > 1, [1, 2])",)),
    ],
)
def test_an_assert_is_split_at_the_candidates_calls(test, atoms):
    plan = plan_test(test)
    assert isinstance(plan, Split) and plan.atoms == atoms


@pytest.mark.processes
def test_every_test_of_mbpp_is_split():
    for name in ("mbpp.jsonl", "sanitized-mbpp.json"):
        problems = load_problems(dataset(name))
        tests = [plan_test(test, p.setup) for p in problems for test in p.test_list + p.challenge_test_list]
        assert all(isinstance(plan, Split) for plan in tests)


@pytest.mark.parametrize("line", ["", "{}", "[", "[0]", '[0, 0.0, ["v"]]', '[0, 0.0, [["v"]]]', '[0, 1e999, [["v", 2]]]', '[1, 0.0, [["v", 2]]]',
                                  '[0, 0.0, [["v", ["zz"]]]]', "[" * 5000, '[0, "0", [["v", 2]]]', '[true, 0.0, [["v", 2]]]', '[0, 0.0, [["e", 1, 2]]]'])  # fmt: skip
def test_malformed_evidence_never_passes_a_test(line):
    answer = Answer(b"E", 0, 0.1, 0.1, 0.0, 10.0, f'"loaded"\n{line}\n'.encode(), b"")
    [verdict] = read_result((plan_test("assert f() == 3"),), answer, Limits(), "x").result.verdicts
    assert not verdict.passed and 0 <= verdict.duration_s < 1e9

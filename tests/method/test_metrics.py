"""Metrics by hand, by enumeration and by invariant."""

from dataclasses import replace
from itertools import combinations
from math import comb, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.intervals import change, share, wilson
from cocos.metrics import (
    best_at_k,
    bug_rates,
    correction_metrics,
    edit_metrics,
    edit_ratio,
    error_counts,
    first_error,
    fix_rates,
    pass_at_k,
    pass_at_k_metrics,
    scored,
    summary,
)
from cocos.problems import Problem
from cocos.trajectories import Trajectory, Turn

INFRA_FAILURE = ExecutionResult((), infra_error="the worker died")
quick = settings(max_examples=100, deadline=None, database=None)


def executed(passed: int, tests: int = 3, error: str | None = "AssertionError") -> ExecutionResult:
    bad = Verdict(Status.FAILED if error == "AssertionError" else Status.ERROR, error)
    return ExecutionResult((Verdict(Status.PASSED),) * passed + (bad,) * (tests - passed))


def trajectory(*results: ExecutionResult | int, task_id: str = "1", sample: int = 0) -> Trajectory:
    """A trajectory with these results; a number says how many of 3 tests passed."""
    done = [r if isinstance(r, ExecutionResult) else executed(r) for r in results]
    turns = tuple(Turn((1, 2), Completion((3,), "x"), "x", result) for result in done)
    return Trajectory(Problem(task_id, "t", ("assert True",) * 3), sample, turns)


def values(trajectories) -> dict[str, float]:
    return {name: estimate.value for name, estimate in correction_metrics(trajectories).items()}


# Ten problems, two turns: 4 right and kept, 2 spoilt, 1 repaired, 1 bettered, 1 worsened, 1 as wrong as before.
TEN = [(3, 3)] * 4 + [(3, 0), (3, 2), (1, 3), (0, 1), (2, 1), (1, 1)]


def test_shares_of_all_problems_by_hand():
    found = values([trajectory(*passed) for passed in TEN])
    assert found == pytest.approx(
        {
            "acc_t1": 0.6,  # 4 + 2 of 10
            "acc_t2": 0.5,  # 4 + 1 of 10
            "delta_t1_t2": -0.1,
            "i2c_t1_t2": 0.1,  # of all ten, not of the four that were wrong
            "c2i_t1_t2": 0.2,  # of all ten, not of the six that were right
            "better_t1_t2": 0.2,  # (1, 3), (0, 1)
            "worse_t1_t2": 0.3,  # (3, 0), (3, 2), (2, 1)
        }
    )


def test_every_pair_of_neighbouring_turns_has_its_own_numbers():
    found = values([trajectory(0, 3, 0), trajectory(0, 3, 3), trajectory(3, 3, 3), trajectory(0, 0, 3)])
    assert [found[f"acc_t{t}"] for t in (1, 2, 3)] == [0.25, 0.75, 0.75]
    assert (found["i2c_t1_t2"], found["c2i_t1_t2"], found["delta_t1_t2"]) == (0.5, 0.0, 0.5)
    assert (found["i2c_t2_t3"], found["c2i_t2_t3"], found["delta_t2_t3"]) == (0.25, 0.25, 0.0)
    # and from the first turn to the last: the second trajectory is repaired, the fourth too, none is spoilt
    assert (found["i2c_t1_t3"], found["c2i_t1_t3"], found["delta_t1_t3"]) == (0.5, 0.0, 0.5)
    assert (found["better_t1_t3"], found["worse_t1_t3"]) == (0.5, 0.0)


def test_two_turns_have_one_pair():
    assert not {name for name in values([trajectory(0, 3)]) if name.endswith("t1_t1")}
    assert sum(name.startswith("delta_") for name in values([trajectory(0, 3)])) == 1


def test_one_turn_has_an_accuracy_and_no_change():
    assert values([trajectory(3), trajectory(2)]) == {"acc_t1": 0.5}


rows = st.integers(1, 4).flatmap(
    lambda turns: st.lists(
        st.lists(st.integers(0, 3), min_size=turns, max_size=turns), min_size=1, max_size=12
    )
)


@quick
@given(rows)
def test_delta_is_always_i2c_minus_c2i_and_the_difference_of_accuracies(rows_B_T):
    found = correction_metrics([trajectory(*row) for row in rows_B_T])
    for t in range(1, len(rows_B_T[0])):
        pair = f"t{t}_t{t + 1}"
        delta, i2c, c2i = (found[f"{name}_{pair}"].value for name in ("delta", "i2c", "c2i"))
        assert delta == pytest.approx(i2c - c2i, abs=1e-12)
        assert delta == pytest.approx(found[f"acc_t{t + 1}"].value - found[f"acc_t{t}"].value, abs=1e-12)
        assert i2c <= found[f"better_{pair}"].value and c2i <= found[f"worse_{pair}"].value
    for name, estimate in found.items():
        if estimate.low is None or estimate.high is None:
            assert name.startswith("delta_")
        else:
            assert (
                -1 <= estimate.low <= estimate.value + 1e-12 and estimate.value - 1e-12 <= estimate.high <= 1
            )


def test_executor_failures_are_left_out_of_every_share_and_counted():
    trajectories = [
        trajectory(3, 3),
        trajectory(0, 0),
        trajectory(3, INFRA_FAILURE),
        trajectory(INFRA_FAILURE, 3),
    ]
    assert scored(trajectories) == trajectories[:2]
    counts, alone = summary(trajectories), summary(trajectories[:2])
    assert {name for name in counts if counts[name] != alone[name]} == {
        "num_trajectories",
        "num_infra_failures",
    }
    assert (counts["num_trajectories"], counts["num_scored"], counts["num_infra_failures"]) == (4, 2, 2)
    # Of 2; were a failure 0, it would be 1/4, and 1/4 repaired
    found = counts["metrics"]
    assert [found[name]["value"] for name in ("acc_t1", "acc_t2", "i2c_t1_t2")] == [0.5, 0.5, 0.0]
    assert counts["errors"] == [{"AssertionError": 1}, {"AssertionError": 1}]


def test_nothing_but_executor_failures_is_an_error_that_says_so():
    with pytest.raises(
        ValueError, match="no scored trajectories: the executor or the endpoint failed in every one"
    ):
        summary([trajectory(INFRA_FAILURE, INFRA_FAILURE)])


# -- intervals --


def test_the_wilson_interval_by_hand():
    # n = 10, p = 0.8, z^2 = 3.8415: centre (0.8 + 0.19207) / 1.38415 = 0.71674;
    # half 1.96 * sqrt(0.016 + 0.0096037) / 1.38415 = 1.96 * 0.16001 / 1.38415 = 0.22657
    assert wilson(8, 10) == pytest.approx((0.8, 0.49016, 0.94332), abs=1e-5)
    # p = 0: centre and half are both z^2 / 2n / (1 + z^2 / n), so low = 0 and high = 3.8415 / 13.8415
    assert wilson(0, 10) == pytest.approx((0.0, 0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((1.0, 0.72247, 1.0), abs=1e-5)


@quick
@given(st.integers(1, 400), st.data())
def test_the_ends_of_the_wilson_interval_lie_1_96_standard_errors_from_the_share(n, data):
    share, low, high = wilson(data.draw(st.integers(0, n)), n)
    assert 0 <= low <= share <= high <= 1
    for end in (low, high):
        assert abs(share - end) == pytest.approx(1.959964 * sqrt(end * (1 - end) / n), abs=1e-6)


def changes(gained: int, lost: int, n: int) -> list[list[int]]:
    """One sample per problem."""
    return [[1]] * gained + [[-1]] * lost + [[0]] * (n - gained - lost)


def test_the_paired_interval_by_hand():
    # delta 0.2; variance (0.3 + 0.1 - 0.04) / 100 = 0.0036, so 0.06; 1.96 * 0.06 = 0.1176
    assert change(changes(30, 10, 100)) == pytest.approx((0.2, 0.0824, 0.3176), abs=1e-4)
    # delta -0.2; sqrt((0.2 - 0.04) / 10) = 0.126491; -0.2 -+ 0.247918
    assert change(changes(0, 2, 10)) == pytest.approx((-0.2, -0.447918, 0.047918), abs=1e-4)


def test_a_change_over_few_problems_or_without_variance_has_no_interval():
    assert change(changes(1, 0, 1)) == (1.0, None, None)
    assert change(changes(2, 1, 9)) == (pytest.approx(1 / 9), None, None)  # 10 problems are the minimum
    assert change(changes(2, 1, 10)).low is not None
    assert change(changes(0, 0, 500)) == (0.0, None, None)  # Wald's interval would be [0, 0]
    assert change(changes(12, 0, 12)) == (1.0, None, None)
    # 20 problems of 3 samples each of which 1 is gained: the mean of every problem is 1/3, no spread
    assert change([[1, 0, 0]] * 20) == (pytest.approx(1 / 3), None, None)


def test_the_wilson_interval_covers_95_percent_from_one_problem_on():
    """The mean over all true shares of the probability that the interval includes the share."""
    # n = 1: 0 of 1 covers shares up to 0.793451 and has the probability 1 - p; 1 of 1 mirrors it.
    # 2 * (0.793451 - 0.793451^2 / 2) = 0.957
    assert wilson(0, 1) == pytest.approx((0.0, 0.0, 0.793451), abs=1e-6)
    for n in (1, 2, 3, 5, 10):
        total = 0.0
        for x in range(n + 1):
            _, low, high = wilson(x, n)
            grid = [low + (high - low) * (i + 0.5) / 2000 for i in range(2000)]
            total += sum(comb(n, x) * p**x * (1 - p) ** (n - x) for p in grid) / 2000 * (high - low)
        assert 0.95 < total < 0.96
        if n == 1:
            assert total == pytest.approx(0.957, abs=1e-3)


def test_samples_of_one_problem_count_for_less_than_as_many_problems():
    assert share([[True]] * 8 + [[False]] * 2) == pytest.approx(wilson(8, 10))
    # always alike: the second sample says nothing
    assert share([[True] * 2] * 8 + [[False] * 2] * 2) == pytest.approx(wilson(8, 10))
    assert change([[1, 1], [0, 0], [-1, -1], [0, 0], [1, 1]] * 2) == pytest.approx(change(changes(4, 2, 10)))
    # 12 problems of 2 samples, p = 5/8; residuals 2 - 1.25, 1 - 1.25, 2 - 1.25, 0 - 1.25 squared 0.5625, 0.0625,
    # 0.5625, 1.5625, sum 3 * 2.75, / 24^2 = 0.014323; effective n = 0.234375 / 0.014323 = 16.3636 of 24
    four = [[True, True], [True, False], [True, True], [False, False]]
    assert share(four * 3) == pytest.approx(wilson(5 / 8 * 16.3636, 16.3636), abs=1e-4)
    # 4 problems are too few to measure how alike their samples are: they count as 4 samples, not as 5.4545
    assert share(four) == pytest.approx(wilson(5 / 8 * 4, 4))
    assert share([[True] * 16]) == pytest.approx(wilson(1, 1))
    # all right: no spread to learn from, so as many as there are problems
    assert share([[True] * 4] * 10) == pytest.approx(wilson(10, 10))


def test_the_interval_of_several_samples_is_that_of_their_problems():
    rows = [
        trajectory(passed, 3, task_id=str(i), sample=j)
        for i, passed in enumerate((3, 3, 0, 0) * 3)
        for j in range(8)
    ]
    once = [t for t in rows if t.sample == 0]
    assert correction_metrics(rows)["acc_t1"] == pytest.approx(correction_metrics(once)["acc_t1"])
    assert correction_metrics(rows)["delta_t1_t2"] == pytest.approx(correction_metrics(once)["delta_t1_t2"])


# -- pass@k --


def test_pass_at_k_by_hand():
    assert pass_at_k(4, 1, 2) == pytest.approx(0.5)  # 1 - C(3,2) / C(4,2) = 1 - 3/6
    assert pass_at_k(5, 2, 3) == pytest.approx(0.9)  # 1 - C(3,3) / C(5,3) = 1 - 1/10
    assert (pass_at_k(3, 0, 3), pass_at_k(3, 1, 3), pass_at_k(1, 1, 1)) == (0.0, 1.0, 1.0)


def test_pass_at_k_is_the_share_of_k_subsets_with_a_right_sample():
    for n in range(1, 7):
        for c in range(n + 1):
            for k in range(1, n + 1):
                subsets = list(combinations([True] * c + [False] * (n - c), k))
                assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0), (0, 0, 1)])
def test_pass_at_k_of_impossible_counts_is_refused(n, c, k):
    with pytest.raises(ValueError, match="needs 0 <= c <= n and 1 <= k <= n"):
        pass_at_k(n, c, k)


def test_pass_at_k_is_a_mean_over_problems_at_every_turn():
    trajectories = [
        trajectory(*passed, task_id="a", sample=i) for i, passed in enumerate([(3, 3), (0, 3), (0, 0)])
    ]
    trajectories += [trajectory(0, 0, task_id="b", sample=i) for i in range(3)]
    assert pass_at_k_metrics(trajectories) == pytest.approx(
        {
            "pass@1_t1": 1 / 6,  # (1/3 + 0) / 2
            "pass@1_t2": 1 / 3,  # (2/3 + 0) / 2
            "pass@2_t1": 1 / 3,  # (1 - C(2,2) / C(3,2) + 0) / 2 = (2/3) / 2
            "pass@2_t2": 1 / 2,  # (1 - 0 + 0) / 2
            # One of the three samples of a is right; 3 is no power of 2, but all there are.
            "pass@3_t1": 1 / 2,
            "pass@3_t2": 1 / 2,
        }
    )


def test_best_at_k_is_the_share_of_k_subsets_whose_choice_by_visible_tests_is_right():
    assert best_at_k(4, 2, 1, 2) == pytest.approx(5 / 12)  # (1 - C(2,2) / C(4,2)) * 1/2
    for n in range(1, 6):
        for visible in range(n + 1):
            for right in range(visible + 1):
                samples = [1] * right + [0] * (visible - right) + [-1] * (n - visible)  # -1: not chosen
                for k in range(1, n + 1):
                    choices = [[s for s in subset if s >= 0] or [0] for subset in combinations(samples, k)]
                    expected = sum(sum(c) / len(c) for c in choices) / len(choices)
                    assert best_at_k(n, visible, right, k) == pytest.approx(expected)


def test_best_at_k_needs_hidden_tests_and_several_samples():
    problem = Problem("a", "t", ("assert 1",), hidden_test_list=("assert 2", "assert 3"))
    right, fools_the_visible_test, wrong = (
        replace(trajectory(passed), problem=problem, sample=sample) for sample, passed in enumerate((3, 1, 0))
    )
    shares = pass_at_k_metrics([right, fools_the_visible_test, wrong])
    assert shares == pytest.approx(
        {
            **{"pass@1_t1": 1 / 3, "best@1_t1": 1 / 3, "pass@2_t1": 2 / 3, "best@2_t1": 1 / 2},
            **{"pass@3_t1": 1.0, "best@3_t1": 1 / 2},
        }
    )
    assert set(pass_at_k_metrics([right])) == {"pass@1_t1"}


def test_a_sample_that_the_executor_failed_on_is_no_sample():
    trajectories = [trajectory(3, task_id="a"), trajectory(INFRA_FAILURE, task_id="a", sample=1)]
    trajectories += [trajectory(0, task_id="b"), trajectory(3, task_id="b", sample=1)]
    # a has one sample left, so k goes to 1: (1/1 + 1/2) / 2; were the failure wrong, (1/2 + 1/2) / 2
    assert summary(trajectories)["pass_at_k"] == {"pass@1_t1": 0.75}


# -- edits --


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [
        ("x + 1", "x * 2", 0.4),  # delete "+" and "1", insert "*" and "2": 4 edits / 10 characters
        ("abc", "abc", 0.0),
        ("abc", "xyz", 1.0),  # 6 edits / 6 characters
        ("abc", "abcabc", 1 / 3),  # 3 insertions / 9
        ("ab", "ba", 0.5),  # delete "a", insert it again: 2 / 4
        ("", "abc", 1.0),
        ("", "", 0.0),  # two completions without a program
        ("é\n🙂", "é\n", 0.2),  # characters, not bytes: 1 / 5
    ],
)
def test_the_edit_ratio_by_hand(before, after, ratio):
    assert edit_ratio(before, after) == pytest.approx(ratio)


@quick
@given(st.text("ab\n", max_size=12), st.text("abc", max_size=12))
def test_the_edit_ratio_counts_the_fewest_insertions_and_deletions(before, after):
    # The textbook recurrence: edits[i][j] turn the first i characters into the first j.
    edits = [[i + j for j in range(len(after) + 1)] for i in range(len(before) + 1)]
    for i, a in enumerate(before):
        for j, b in enumerate(after):
            edits[i + 1][j + 1] = edits[i][j] if a == b else 1 + min(edits[i][j + 1], edits[i + 1][j])
    assert edit_ratio(before, after) == pytest.approx(edits[-1][-1] / max(1, len(before) + len(after)))
    assert edit_ratio(before, after) == pytest.approx(edit_ratio(after, before))
    assert (edit_ratio(before, after) == 0.0) == (before == after)


def written(*codes: str, task_id: str = "1", sample: int = 0) -> Trajectory:
    """A trajectory with these programs."""
    turns = tuple(Turn((1,), Completion((3,), code), code, executed(0)) for code in codes)
    return Trajectory(Problem(task_id, "t", ("assert True",)), sample, turns)


def test_repeated_programs_and_edits_of_every_pair_of_neighbouring_turns():
    found = edit_metrics([written("ab", "ab", "ba"), written("ab", "xy", "xy", task_id="2")])
    assert {name: estimate.value for name, estimate in found.items()} == {
        "repeated_t1_t2": 0.5,
        "edit_ratio_t1_t2": 0.5,  # (0 + 4/4) / 2
        "repeated_t2_t3": 0.5,
        "edit_ratio_t2_t3": 0.25,  # (2/4 + 0) / 2
        # no program is right, so every edit is one of a wrong program
        "repeated_wrong_t1_t2": 0.5,
        "near_repeated_wrong_t1_t2": 0.5,
        "repeated_wrong_t2_t3": 0.5,
        "near_repeated_wrong_t2_t3": 0.5,
    }
    assert summary([written("ab", "ab")])["metrics"]["repeated_t1_t2"]["value"] == 1.0
    assert edit_metrics([written("ab")]) == {}


def test_repeats_of_wrong_programs_leave_out_right_ones():
    right = replace(written("ab", "ab").turns[0], result=executed(3))
    kept = Trajectory(written("ab").problem, 0, (right, right))  # a right program, repeated
    long = "x" * 50
    found = edit_metrics([kept, written(long, long + "yy", task_id="2"), written("ab", "ba", task_id="3")])
    values = {name: estimate.value for name, estimate in found.items()}
    assert values["repeated_t1_t2"] == pytest.approx(1 / 3) and values["repeated_wrong_t1_t2"] == 0.0
    # 2 edits of 102 characters are less than 5 %; "ab" -> "ba" has 2 of 4
    assert values["near_repeated_wrong_t1_t2"] == 0.5
    assert "repeated_wrong_t1_t2" not in edit_metrics([kept])


def test_the_interval_of_the_edit_ratio_is_over_problems_and_within_0_and_1():
    # 10 problems: 9 ratios of 0 and one of 1. mean 0.1; variance (9 * 0.01 + 0.81) / 100 = 0.009;
    # 0.1 -+ 1.96 * 0.094868 = (-0.086, 0.286), cut off at 0
    once = [written("ab", "xy" if i == 0 else "ab", task_id=str(i)) for i in range(10)]
    assert edit_metrics(once)["edit_ratio_t1_t2"] == pytest.approx((0.1, 0.0, 0.285938), abs=1e-5)
    assert edit_metrics(once)["repeated_t1_t2"] == pytest.approx(wilson(9, 10))
    twice = once + [replace(trajectory, sample=1) for trajectory in once]  # says nothing more
    assert edit_metrics(twice)["edit_ratio_t1_t2"] == pytest.approx(edit_metrics(once)["edit_ratio_t1_t2"])
    assert edit_metrics(once[:9])["edit_ratio_t1_t2"].low is None


def test_turns_that_the_model_did_not_sample_are_no_edits():
    first, second, third = written("ab", "ab", "xy").turns
    problem = written("ab").problem
    stopped = Trajectory(
        problem, 0, (first, replace(second, is_carried=True), replace(second, is_carried=True))
    )
    given_answer = Trajectory(problem, 1, (first, replace(second, is_given=True), third))
    assert edit_metrics([stopped]) == {}
    found = edit_metrics([stopped, given_answer])
    assert {name: estimate.value for name, estimate in found.items()} == {
        "repeated_t2_t3": 0.0,
        "edit_ratio_t2_t3": 1.0,
        "repeated_wrong_t2_t3": 0.0,
        "near_repeated_wrong_t2_t3": 0.0,
    }


# -- errors --


@pytest.mark.parametrize(
    ("verdicts", "kind"),
    [
        ([Verdict(Status.PASSED)], None),
        ([Verdict(Status.PASSED), Verdict(Status.FAILED, "AssertionError")], "AssertionError"),
        ([Verdict(Status.ERROR, "NameError"), Verdict(Status.ERROR, "TypeError")], "NameError"),
        ([Verdict(Status.TIMEOUT), Verdict(Status.NOT_RUN)], "Timeout"),
        ([Verdict(Status.MEMORY)], "Memory"),
    ],
)
def test_the_error_type_is_that_of_the_first_test_that_did_not_pass(verdicts, kind):
    assert first_error(ExecutionResult(tuple(verdicts))) == kind


def test_fix_rates_say_how_many_of_an_error_were_right_a_turn_later():
    name_error, type_error = executed(1, error="NameError"), executed(0, error="TypeError")
    trajectories = [
        trajectory(name_error, 3, name_error),
        trajectory(type_error, 3, 3),
        trajectory(type_error, type_error, 3),
        trajectory(type_error, name_error, 0),
        trajectory(3, 3, 3),
        trajectory(type_error, 3, INFRA_FAILURE),
    ]
    rates = fix_rates(scored(trajectories))
    assert rates == {
        "t1_t2": {"TypeError": (3, 1), "NameError": (1, 1)},
        "t2_t3": {"TypeError": (1, 1), "NameError": (1, 0)},
    }
    assert list(rates["t1_t2"]) == ["TypeError", "NameError"]  # the commonest first
    assert error_counts(scored(trajectories)) == [
        {"TypeError": 3, "NameError": 1},
        {"TypeError": 1, "NameError": 1},
        {"NameError": 1, "AssertionError": 1},
    ]


def test_right_programs_are_counted_by_kind_of_bug():
    def of_kind(kind: str, *passed) -> Trajectory:
        played = trajectory(*passed)
        return replace(played, problem=replace(played.problem, bug_type=kind))

    rows = [of_kind("wrong operator", 3, 3), of_kind("off by one", 0, 3), of_kind("off by one", 0, 0)]
    rows += [of_kind("off by one", 3, INFRA_FAILURE), of_kind("", 3, 3)]
    found = summary(rows)["bug_rates"]
    accuracies = {kind: rate.pop("accuracy_T") for kind, rate in found.items()}
    assert found == {
        "off by one": {"num_scored": 2, "right_T": [0, 1]},
        "wrong operator": {"num_scored": 1, "right_T": [1, 1]},
    }
    # All these programs are of one problem, so however many there are, the interval is that of one.
    assert accuracies["off by one"][1][0] == 0.5
    assert accuracies["wrong operator"][1] == wilson(1, 1)
    assert list(bug_rates(rows)) == ["off by one", "wrong operator"]  # the most frequent first
    assert bug_rates(rows[-1:]) == {}


def test_right_programs_with_an_in_child_verdict_are_counted_per_turn():
    marked = Verdict(Status.PASSED, in_child_reason="the test awaits")
    partly = ExecutionResult((Verdict(Status.PASSED), marked))
    wrong = ExecutionResult((Verdict(Status.FAILED), marked))
    failed = trajectory(partly, INFRA_FAILURE)
    found = summary([trajectory(3, partly), trajectory(partly, partly), trajectory(wrong, wrong), failed])
    assert found["num_in_child"] == [1, 2]  # a wrong program does not count, nor does an unscored trajectory


def test_a_pass_that_the_program_made_forgeable_is_not_right():
    chosen = Verdict(Status.PASSED, in_child_reason="its __eq__ has decided", is_marked_by_program=True)
    forced = Verdict(Status.PASSED, in_child_reason="the test awaits")
    rows = [trajectory(ExecutionResult((verdict, Verdict(Status.PASSED)))) for verdict in (chosen, forced)]
    assert [turn.result.is_right for row in rows for turn in row.turns] == [False, True]
    assert summary(rows)["metrics"]["acc_t1"]["value"] == 0.5
    assert summary(rows)["num_in_child"] == [1]


def test_the_summary_counts_problems_cut_answers_and_samples():
    cut = trajectory(0, 3, task_id="b")
    turns = (Turn((1,), Completion((3,), "x", is_truncated=True), "x", executed(0)), cut.turns[1])
    trajectories = [trajectory(3, 3, task_id="a", sample=i) for i in range(2)]
    trajectories += [Trajectory(cut.problem, 0, turns), trajectory(0, 0, task_id="b", sample=1)]
    stopped = replace(turns[0], is_carried=True)  # carried on by early stop: the same answer, counted once
    trajectories[-1] = replace(trajectories[-1], turns=(trajectories[-1].turns[0], stopped))
    found = summary(trajectories)
    counts = {name: value for name, value in found.items() if name.startswith("num_")}
    assert counts == {
        "num_problems": 2,
        "num_trajectories": 4,
        "num_scored": 4,
        "num_infra_failures": 0,
        "num_timeouts": 0,
        "num_truncated": 1,
        "num_in_child": [0, 0],
    }
    assert found["metrics"]["acc_t1"]["value"] == 0.5 and found["metrics"]["i2c_t1_t2"]["value"] == 0.25
    assert found["pass_at_k"]["pass@2_t2"] == 1.0
    assert found["fix_rates"] == {"t1_t2": {"AssertionError": {"failed": 2, "fixed": 1}}}


def test_the_accuracy_on_the_visible_tests_is_beside_that_on_all_tests():
    # 3 tests, the first one or two visible: `executed(n)` passes the first n
    def shown(visible: int, *passed: int, task_id: str) -> Trajectory:
        tests = ("assert True",) * 3
        problem = Problem(task_id, "t", tests[:visible], hidden_test_list=tests[visible:])
        return replace(trajectory(*passed), problem=problem)

    rows = [
        *(shown(1, 0, 1, task_id="a"), shown(1, 1, 3, task_id="b"), shown(2, 1, 2, task_id="c")),
        shown(3, 2, 3, task_id="d"),
    ]
    found = summary(rows)["metrics"]
    assert found["acc_visible_t1"]["value"] == 0.25  # b; of d, two of three visible tests pass
    assert found["acc_visible_t2"]["value"] == 1.0 and found["acc_t2"]["value"] == 0.5  # b and d
    assert not [name for name in summary([rows[3]])["metrics"] if "visible" in name]  # nothing is hidden
    hidden = shown(0, 3, 3, task_id="e")
    assert not [name for name in summary([hidden])["metrics"] if "visible" in name]  # nothing is visible

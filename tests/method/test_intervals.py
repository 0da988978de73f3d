"""Paired comparisons, by hand and by enumeration."""

from itertools import product
from math import sqrt
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.intervals import bootstrap_mean, compare, mcnemar, smallest_difference


def test_mcnemars_exact_p_value_by_hand():
    assert mcnemar(1, 7) == pytest.approx(2 * (1 + 8) / 2**8)  # C(8,0) + C(8,1) of 2^8, both tails
    assert mcnemar(0, 5) == pytest.approx(2 / 2**5)
    assert mcnemar(3, 3) == 1.0  # twice the half with the middle would be above 1
    assert mcnemar(0, 0) == 1.0  # nothing differs
    assert mcnemar(2, 10) == pytest.approx(2 * (1 + 12 + 66) / 2**12)


@pytest.mark.parametrize("n", range(1, 9))
def test_mcnemars_p_value_is_the_share_of_coin_sequences_at_least_as_uneven(n):
    for gained in range(n + 1):
        uneven = abs(2 * gained - n)
        as_uneven = [flips for flips in product((0, 1), repeat=n) if abs(2 * sum(flips) - n) >= uneven]
        assert mcnemar(gained, n - gained) == pytest.approx(len(as_uneven) / 2**n)


@settings(max_examples=50, deadline=None, database=None)
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_does_not_care_which_is_the_baseline_and_stays_a_probability(gained, lost):
    assert mcnemar(gained, lost) == mcnemar(lost, gained)
    assert mcnemar(gained, lost) + 1e-300 > 0 and mcnemar(gained, lost) <= 1


def test_the_bootstrap_interval_of_ten_problems_by_hand():
    # Ten draws have Binomial(10, 1/2) ones: 0 or 1 of them with probability 11/1024 = 0.0107, up to 2 with 56/1024
    # = 0.0547. So the 2.5 % quantile is 2/10, and by symmetry the other is 8/10.
    assert bootstrap_mean([0.0, 1.0] * 5) == (0.5, 0.2, 0.8)


def test_few_problems_and_equal_ones_have_no_bootstrap_interval():
    assert bootstrap_mean([1.0]) == (1.0, None, None)
    assert bootstrap_mean([0.0, 1.0, 0.0]) == (pytest.approx(1 / 3), None, None)
    assert bootstrap_mean([0.0, 1.0] * 4 + [0.0]) == (pytest.approx(4 / 9), None, None)  # 10 are the minimum
    assert bootstrap_mean([0.25] * 40) == (0.25, None, None)  # every resample is 0.25


def test_the_exact_test_of_few_problems_keeps_its_p_value():
    found = compare({name: [False] for name in "abc"}, {name: [True] for name in "abc"})
    assert found.difference == (1.0, None, None)
    assert found.p_value == pytest.approx(2 / 2**3)  # three gained of three


def test_the_bootstrap_interval_of_many_problems_is_the_normal_one():
    # 60 gained, 20 lost of 200: mean 0.2, variance (80 / 200 - 0.04) / 200, so 0.2 -+ 1.96 * 0.04243
    found = bootstrap_mean([1.0] * 60 + [-1.0] * 20 + [0.0] * 120)
    half = 1.96 * sqrt((0.4 - 0.04) / 200)
    assert found == pytest.approx((0.2, 0.2 - half, 0.2 + half), abs=0.01)


def test_the_bootstrap_repeats_itself_and_its_seed_matters():
    values = [float(i % 7) for i in range(40)]
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    others = {bootstrap_mean(values, seed=seed, num_resamples=50) for seed in range(5)}
    assert len(others) > 1 and {estimate.value for estimate in others} == {sum(values) / 40}


def test_a_comparison_counts_what_was_gained_and_lost():
    baseline = {"a": [True], "b": [False], "c": [False], "d": [True], "e": [False]}
    other = {"e": [False], "d": [False], "c": [True], "b": [True], "a": [True]}
    found = compare(baseline, other)
    assert (found.num_problems, found.baseline, found.other) == (5, 0.4, 0.6)
    assert (found.gained, found.lost) == (("b", "c"), ("d",))
    assert found.difference.value == pytest.approx(0.2)  # (2 - 1) / 5
    assert found.p_value == 1.0  # 2 against 1
    assert (found.only_baseline, found.only_other) == ((), ())


def test_several_samples_count_by_their_share_and_have_no_mcnemar_test():
    baseline = {"a": [True, False], "b": [False, False], "c": [True, True]}
    other = {"a": [False, True], "b": [True, False], "c": [True]}
    found = compare(baseline, other)
    # shares 1/2, 0, 1 and 1/2, 1/2, 1: a as before though another sample was right, b gained half
    assert (found.gained, found.lost, found.p_value) == (("b",), (), None)
    assert found.difference.value == pytest.approx((2 / 3) - (1 / 2))


def test_problems_of_one_run_alone_are_left_out_and_named():
    found = compare({"a": [True], "b": [True], "c": [False]}, {"d": [True], "c": [True], "a": [True]})
    assert (found.num_problems, found.gained) == (2, ("c",))
    assert (found.only_baseline, found.only_other) == (("b",), ("d",))


def test_runs_without_a_common_problem_are_refused():
    with pytest.raises(ValueError, match="no problem is in both runs"):
        compare({"a": [True]}, {"b": [True]})


def test_the_smallest_difference_is_that_which_four_in_five_evaluations_tell_from_0():
    """30 gained, 10 lost of 100: standard error sqrt((0.4 - 0.04) / 100) = 0.06, times 1.96 + 0.8416."""
    differences = [1.0] * 30 + [-1.0] * 10 + [0.0] * 60
    assert smallest_difference(differences) == pytest.approx(0.06 * 2.801585)
    assert smallest_difference([0.5] * 100) is None and smallest_difference([1.0, 0.0] * 4) is None
    # Were the true difference so large, the estimate would exceed 1.96 errors with the chance of Z > -0.84.
    truth = NormalDist(0.06 * 2.801585, 0.06)
    assert 1 - truth.cdf(1.959964 * 0.06) == pytest.approx(0.8, abs=1e-4)

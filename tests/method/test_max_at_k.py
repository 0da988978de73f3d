"""max@k as an objective: its gradient is the analytic one, and its noise beside that of whole episodes.

A policy of single attempts writes one of four programs with rewards of any value. All groups are enumerated,
so expected gradients and variances are exact sums. The truth is written here from the distribution of the
largest of k rewards, without subsets.
"""

import math
from collections import Counter
from itertools import combinations, combinations_with_replacement, product
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocos.rewards import (
    Objective,
    Score,
    advantages,
    grouped_returns,
    leave_one_out,
    max_at_k,
    trained_advantages,
    zero_spread,
)
from tests.support.paths import ROOT

REWARDS = (-0.5, 0.3, 0.3, 1.0)
P = (0.4, 0.3, 0.2, 0.1)  # chance of each program: a softmax, so d log P[a] / d logit b = (a == b) - P[b]
REFERENCE = (0.1, 0.2, 0.3, 0.4)


def objective(group, k, beta=0.0):
    return Objective(1, group, "trajectory", 1.0, 0.0, None, [beta], max_at_k=k)


def true_gradient(k, beta):
    """Return d/d logit of sum_v v (F(v)^k - F(v-)^k), with F(v) = P(reward <= v), minus beta times that of KL."""
    gradient = []
    for logit in range(len(P)):
        slope = [p * ((a == logit) - P[logit]) for a, p in enumerate(P)]  # d P[a] / d logit
        value, below, slope_below = 0.0, 0.0, 0.0
        for v in sorted(set(REWARDS)):
            share = below + sum(p for p, r in zip(P, REWARDS, strict=True) if r == v)
            rise = slope_below + sum(s for s, r in zip(slope, REWARDS, strict=True) if r == v)
            value += v * k * (share ** (k - 1) * rise - below ** (k - 1) * slope_below)
            below, slope_below = share, rise
        kl = sum(s * math.log(p / q) for s, p, q in zip(slope, P, REFERENCE, strict=True))
        gradient.append(value - beta * kl)
    return gradient


@pytest.mark.parametrize(("group", "k"), [(2, 1), (3, 2), (4, 2), (4, 3), (5, 3)])
@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_the_expected_gradient_is_that_of_max_at_k_minus_the_kl_penalty(group, k, beta):
    found = [0.0] * len(P)
    for actions in product(range(len(P)), repeat=group):
        chance = math.prod(P[a] for a in actions)
        scores = [Score([REWARDS[a]], [math.log(P[a] / REFERENCE[a])]) for a in actions]
        advantages_G = trained_advantages(grouped_returns(scores, objective(group, k, beta)), scores)
        for a, [advantage] in zip(actions, advantages_G, strict=True):
            for logit in range(len(P)):
                found[logit] += chance * advantage * ((a == logit) - P[logit]) / group
    assert found == pytest.approx(true_gradient(k, beta), abs=1e-12)


rewards = st.floats(-10, 10, allow_subnormal=False)


@given(st.lists(rewards, min_size=3, max_size=7), st.integers(1, 3))
def test_an_advantage_is_the_best_of_the_subsets_with_the_attempt_minus_that_of_those_without(values, k):
    indices = range(len(values))
    if len(values) == k:
        assert max_at_k(values, k) == [None] * k
        return

    def best(of):
        return fmean(max(values[i] for i in subset) for subset in combinations(indices, k) if of(subset))

    found = leave_one_out(max_at_k(values, k))
    for i, advantage in enumerate(found):
        expected = k * (best(lambda subset, i=i: i in subset) - best(lambda subset, i=i: i not in subset))
        assert advantage == pytest.approx(expected, abs=1e-9)
    assert sum(found) == pytest.approx(0, abs=1e-9)


def test_the_rewards_of_the_docstring():
    assert max_at_k([0.0, 0.0, 0.5, 1.0], 2) == [1.5, 1.5, 2.0, 3.0]
    assert leave_one_out(max_at_k([0.0, 0.0, 0.5, 1.0], 2)) == pytest.approx([-2 / 3, -2 / 3, 0, 4 / 3])
    assert max_at_k([0.25, None, 0.5], 1) == [0.25, None, 0.5]


def test_an_executor_failure_makes_the_group_smaller_and_too_small_a_group_trains_nothing():
    assert max_at_k([0.0, None, 0.0, 0.5, 1.0], 2) == [1.5, None, 1.5, 2.0, 3.0]
    scores = [Score([reward], [0.0]) for reward in (0.0, None, 1.0, None)]
    returns = grouped_returns(scores, objective(4, 2))
    assert returns == [[[None]] * 4] and advantages(returns) == [[[0.0]] * 4]


def test_a_group_is_flat_if_every_subset_without_an_attempt_has_as_good_a_one():
    """Fractions such as 1/3 and 1/7 have no exact floats; equal values are equal all the same."""
    for values, is_flat in (
        ([1.0, 1.0, 1.0, 0.0, 1 / 3], True),  # k = 3: every three attempts contain a right one
        ([1.0, 1.0, 0.0, 1 / 7, 1 / 3], False),
        ([1 / 7] * 5, True),
    ):
        scores = [Score([value], [0.0]) for value in values]
        assert zero_spread(grouped_returns(scores, objective(5, 3))) == [float(is_flat)], values


# -- its noise beside that of whole episodes --


def noise_of_attempts(p, n, k):
    """Return (expected gradient, variance times attempts) by the logit of a right program, reward 0 or 1."""
    mean = square = 0.0
    for right in range(n + 1):
        chance = math.comb(n, right) * p**right * (1 - p) ** (n - right)
        outcomes = [1.0] * right + [0.0] * (n - right)
        advantages_G = leave_one_out(max_at_k(outcomes, k))
        value = sum(a * (outcome - p) for a, outcome in zip(advantages_G, outcomes, strict=True)) / n
        mean, square = mean + chance * value, square + chance * value**2
    return mean, (square - mean**2) * n


def noise_of_episodes(p, group, k):
    """Return the same for whole episodes of k turns, without the transcript and with early stop."""
    whole = Objective(k, group, "trajectory", 1.0, 0.0, None, [0.0] * k)
    kinds = [(p * (1 - p) ** t, t + 1, True) for t in range(k)] + [((1 - p) ** k, k, False)]
    mean = square = 0.0
    for siblings in combinations_with_replacement(kinds, group):
        orders = math.factorial(group) // math.prod(map(math.factorial, Counter(siblings).values()))
        chance = orders * math.prod(one for one, *_ in siblings)
        scores, states = [], []
        for _, length, is_right in siblings:
            sampled = [t < length for t in range(k)]
            outcomes = [float(is_right and t >= length - 1) for t in range(k)]
            scores.append(Score(outcomes, [0.0 if one else None for one in sampled]))
            states.append(["task" if one else None for one in sampled])
        found = trained_advantages(grouped_returns(scores, whole), scores, [states])
        value = 0.0
        for (_, length, is_right), advantages_T in zip(siblings, found, strict=True):
            for t in range(length):
                value += advantages_T[t] * ((is_right and t == length - 1) - p) / group
        mean, square = mean + chance * value, square + chance * value**2
    attempts = group * sum(chance * length for chance, length, _ in kinds)
    return mean, (square - mean**2) * attempts


def test_sixteen_attempts_and_six_episodes_have_one_expected_gradient_and_the_noise_of_docs_cocos():
    shares, ratios = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8), []
    for p in shares:
        gradient, noise = noise_of_attempts(p, 16, 3)
        of_episodes, noise_of = noise_of_episodes(p, 6, 3)
        assert gradient == pytest.approx(3 * (1 - p) ** 2 * p * (1 - p), abs=1e-12)  # of 1 - (1 - p)^3
        assert of_episodes == pytest.approx(gradient, abs=1e-12)
        ratios.append(noise_of / noise)
    shown = (ROOT / "docs/cocos.md").read_text()
    assert f"| solve rate | {' | '.join(f'{100 * p:g} %' for p in shares)} |" in shown
    assert f"| whole episodes | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |" in shown

"""The gradient that the advantages stand for: on a two-turn decision problem whose true gradient is known, it is unbiased."""

import math
from itertools import product

import pytest

from cocos.rewards import advantages, turn_returns

FIRST = (0.2, 0.7)  # r_1 of action 0 and 1
SECOND = ((0.1, 0.9), (0.5, 0.3))  # r_2 of action b after action a
THETA_1, THETA_2 = 0.4, (-0.3, 0.8)  # logits of action 1 at turn 1, and at turn 2 after a = 0, 1


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def true_gradient(credit, gamma):
    """By the chain rule: of E[R] by every parameter for `trajectory`, R = r_2 - (1 - gamma) r_1; for `turn`,
    d E[r_1 + gamma r_2] / d theta_1, and d E[r_2] / d theta_2[a] for a = 0, 1.
    """
    weight_1, weight_2 = (1, gamma) if credit == "turn" else (gamma - 1, 1)
    p, q = sigmoid(THETA_1), [sigmoid(theta) for theta in THETA_2]
    value = [(1 - q[a]) * SECOND[a][0] + q[a] * SECOND[a][1] for a in (0, 1)]
    slope = p * (1 - p)
    first = slope * (weight_1 * (FIRST[1] - FIRST[0]) + weight_2 * (value[1] - value[0]))
    reached = (1 - p, p)
    second = [reached[a] * q[a] * (1 - q[a]) * (SECOND[a][1] - SECOND[a][0]) for a in (0, 1)]
    return [first, *second]


def expected_estimate(credit, gamma, group):
    """The mean of the policy-gradient estimate over all groups of trajectories, each with its probability."""
    p, q = sigmoid(THETA_1), [sigmoid(theta) for theta in THETA_2]
    expected = [0.0, 0.0, 0.0]
    for actions in product(product((0, 1), repeat=2), repeat=group):
        probability = math.prod((p if a else 1 - p) * (q[a] if b else 1 - q[a]) for a, b in actions)
        returns_G_T = [turn_returns([FIRST[a], SECOND[a][b]], credit, gamma) for a, b in actions]
        [advantages_G_T] = advantages([returns_G_T])
        for (a, b), (advantage_1, advantage_2) in zip(actions, advantages_G_T, strict=True):
            # d log pi / d logit = action - probability
            expected[0] += probability * advantage_1 * (a - p) / group
            expected[1 + a] += probability * advantage_2 * (b - q[a]) / group
    return expected


@pytest.mark.parametrize("credit", ["turn", "trajectory"])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("group", [2, 4])
def test_the_estimate_is_unbiased(credit, gamma, group):
    truth = true_gradient(credit, gamma)
    assert expected_estimate(credit, gamma, group) == pytest.approx(truth, rel=1e-9)
    assert min(map(abs, truth)) > 1e-3, "an estimate of nothing proves nothing"

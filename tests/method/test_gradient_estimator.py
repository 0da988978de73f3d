"""The gradient that the advantages stand for: on a two-turn decision problem whose true gradient is known, it is unbiased."""

import math
import random

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


def estimates(credit, gamma, group, num_groups, seed):
    """One policy-gradient estimate per group of sampled trajectories, with our returns and baselines."""
    rng = random.Random(seed)
    p, q = sigmoid(THETA_1), [sigmoid(theta) for theta in THETA_2]
    for _ in range(num_groups):
        actions = []
        for _ in range(group):
            a = int(rng.random() < p)
            actions.append((a, int(rng.random() < q[a])))
        returns_G_T = [turn_returns([FIRST[a], SECOND[a][b]], credit, gamma) for a, b in actions]
        [advantages_G_T] = advantages([returns_G_T])
        gradient = [0.0, 0.0, 0.0]
        for (a, b), (advantage_1, advantage_2) in zip(actions, advantages_G_T, strict=True):
            gradient[0] += advantage_1 * (a - p) / group  # d log pi / d logit = action - probability
            gradient[1 + a] += advantage_2 * (b - q[a]) / group
        yield gradient


@pytest.mark.parametrize("credit", ["turn", "trajectory"])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("group", [2, 4])
def test_the_estimate_is_unbiased_within_four_standard_errors(credit, gamma, group):
    n = 15_000
    per_parameter = list(zip(*estimates(credit, gamma, group, n, seed=group), strict=True))
    for samples, truth in zip(per_parameter, true_gradient(credit, gamma), strict=True):
        mean = sum(samples) / n
        error = math.sqrt(sum((x - mean) ** 2 for x in samples) / n / n)
        assert abs(mean - truth) < 4 * error
        assert error < abs(truth) / 5, "an error this large could not tell a biased estimate from a right one"

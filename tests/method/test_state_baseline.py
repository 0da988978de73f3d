"""Siblings in one state as the baseline: the same expected gradient, with less variance.

Two turns with early stop. The first program solves the task (0) or fails one of two tests (1, 2). The second
prompt depends on the failed test (counterexamples) or not (nothing), and so does the chance of the second
program. All groups of siblings are enumerated, so expected gradients and variances are exact sums.
"""

import math
from itertools import product

import pytest

from cocos.rewards import Objective, Score, grouped_returns, trained_advantages

FIRST = {0: 0.4, 1: 0.4, 2: 0.2}  # probability of each first program
# Second programs are many, as a model's are, and equally likely: the number of right ones among them.
NUM_SECOND, NUM_RIGHT = 6, {"test 1": 1, "test 2": 4, "nothing": 1}
REWARDS = {0: 1.0, 1: 0.2, 2: 0.1}


def trajectories(carry):
    """Yield (probability, rewards_T, states_T, [(parameter, d log pi)] of each sampled turn)."""
    for action, chance in FIRST.items():
        first = [(("first", other), (other == action) - FIRST[other]) for other in FIRST]
        if action == 0:
            yield chance, [1.0, 1.0], ["start", None], [first]
            continue
        state = "nothing" if carry == "nothing" else f"test {action}"
        for program in range(NUM_SECOND):
            second = [((state, other), (other == program) - 1 / NUM_SECOND) for other in range(NUM_SECOND)]
            rewards = [REWARDS[action], float(program < NUM_RIGHT[state])]
            yield chance / NUM_SECOND, rewards, ["start", state], [first, second]


def moments(carry, group, has_states, credit):
    """Return the expected gradient by every parameter, and the sum of the variances of its entries."""
    objective = Objective(2, group, credit, 1.0, 0.0, None, [0.0, 0.0])
    mean, square = {}, 0.0
    for siblings in product(list(trajectories(carry)), repeat=group):
        probability = math.prod(p for p, *_ in siblings)
        scores = [Score(rewards, [0.0 if s else None for s in states]) for _, rewards, states, _ in siblings]
        states = [[states for _, _, states, _ in siblings]] if has_states else None
        found = trained_advantages(grouped_returns(scores, objective), scores, states)
        gradient = {}
        for (*_, turns), advantages_K in zip(siblings, found, strict=True):
            for turn, advantage in zip(turns, advantages_K, strict=False):
                for parameter, score in turn:
                    gradient[parameter] = gradient.get(parameter, 0.0) + advantage * score / group
        for parameter, value in gradient.items():
            mean[parameter] = mean.get(parameter, 0.0) + probability * value
            square += probability * value**2
    return mean, square - sum(value**2 for value in mean.values())


def expected(carry, credit):
    """Return the gradient of the expected return, by its definition: sums over trajectories, no baseline."""
    gradient = {}
    for probability, (r_1, r_2), _, turns in trajectories(carry):
        returns = [r_1 + r_2, r_2] if credit == "turn" else [r_2, r_2]
        for turn, value in zip(turns, returns, strict=False):
            for parameter, score in turn:
                gradient[parameter] = gradient.get(parameter, 0.0) + probability * value * score
    return gradient


@pytest.mark.parametrize("credit", ["turn", "trajectory"])
@pytest.mark.parametrize("carry", ["counterexamples", "nothing"])
@pytest.mark.parametrize("group", [2, 3])
def test_the_expected_gradient_is_the_true_one_with_and_without_states(group, carry, credit):
    truth = expected(carry, credit)
    (plain, _), (by_state, _) = (moments(carry, group, has_states, credit) for has_states in (False, True))
    assert plain.keys() == by_state.keys() == truth.keys() and max(map(abs, truth.values())) > 0.02
    for parameter, value in truth.items():
        assert plain[parameter] == pytest.approx(value, abs=1e-12), parameter
        assert by_state[parameter] == pytest.approx(value, abs=1e-12), parameter


def test_siblings_in_one_state_make_the_gradient_less_noisy():
    """Where siblings share a state: those that have stopped earn more, and are no baseline for the others."""
    (_, plain), (_, by_state) = (moments("nothing", 4, has_states, "turn") for has_states in (False, True))
    assert by_state < 0.96 * plain  # turn 1's noise, which stays, included: 0.953

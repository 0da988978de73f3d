"""Returns without the terms that a turn cannot influence: the same expected gradient, with less variance.

Three turns of two actions each; the policy repeats its last action more often than not, as models do. All
groups of siblings are enumerated, so expected gradients and variances are exact sums. The earlier estimators
are written here as the papers have them: the accumulated reward for every turn, and SCoRe's bonus on
r_t - r_{t-1}.
"""

import csv
import math
import re
from itertools import pairwise, product

import pytest

from cocos.rewards import advantages, kl_penalties, turn_returns
from tests.support.paths import ROOT

NUM_TURNS, GAMMA, BETAS = 3, 0.5, [0.1, 0.2, 0.1]
LOGITS = {(): 0.3, (0,): -1.5, (1,): 1.1, (0, 0): -1.0, (0, 1): 0.9, (1, 0): -0.4, (1, 1): 1.6}  # of action 1
REFERENCE = {state: logit + 0.4 * (-1) ** len(state) for state, logit in LOGITS.items()}


def chance(logits, state, action):
    p = 1 / (1 + math.exp(-logits[state]))
    return p if action else 1 - p


def trajectories():
    """Yield (probability, rewards_T, kl_T, {logit: d log pi}) of every sequence of actions."""
    for actions in product((0, 1), repeat=NUM_TURNS):
        probability, kls, scores = 1.0, [], []
        for t, action in enumerate(actions):
            state = actions[:t]
            p = chance(LOGITS, state, action)
            probability *= p
            kls.append(math.log(p / chance(REFERENCE, state, action)))
            scores.append((state, action - chance(LOGITS, state, 1)))
        rewards = [(0.2, 0.9)[action] - 0.05 * t for t, action in enumerate(actions)]
        yield probability, rewards, kls, scores


def accumulated_everywhere(rewards_T, penalties_T):
    steps = [now - before for before, now in pairwise([0.0, *rewards_T])]
    total = sum(GAMMA ** (NUM_TURNS - t) * step for t, step in enumerate(steps, start=1))
    return [total - sum(penalties_T)] * NUM_TURNS


def to_go_with_improvement(weights_T, bonus):
    def returns(rewards_T, penalties_T):
        found = []
        for t in range(NUM_TURNS):
            paid = sum(
                GAMMA ** (s - t) * (weights_T[s] * rewards_T[s] - penalties_T[s]) for s in range(t, NUM_TURNS)
            )
            found.append(paid + (bonus * (rewards_T[t] - rewards_T[t - 1]) if t else 0.0))
        return found

    return returns


def ours(credit, **options):
    return lambda rewards_T, penalties_T: turn_returns(
        rewards_T, credit, GAMMA, penalties_K=penalties_T, **options
    )


def moments(returns_of, group):
    """Return the expected gradient by every logit, and the sum of the variances of its entries."""
    mean, square = dict.fromkeys(LOGITS, 0.0), 0.0
    for siblings in product(list(trajectories()), repeat=group):
        probability = math.prod(p for p, *_ in siblings)
        returns_G_T = [returns_of(rewards, kl_penalties(kls, BETAS)) for _, rewards, kls, _ in siblings]
        [advantages_G_T] = advantages([returns_G_T])
        gradient = dict.fromkeys(LOGITS, 0.0)
        for (*_, scores), advantages_T in zip(siblings, advantages_G_T, strict=True):
            for (state, score), advantage in zip(scores, advantages_T, strict=True):
                gradient[state] += advantage * score / group
        for state, value in gradient.items():
            mean[state] += probability * value
            square += probability * value**2
    return mean, square - sum(value**2 for value in mean.values())


@pytest.mark.parametrize("group", [2, 3])
@pytest.mark.parametrize(
    ("former", "causal", "ratio"),
    [
        (accumulated_everywhere, ours("trajectory"), 1.1),
        (to_go_with_improvement((1, 1, 1), 1.0), ours("turn", bonus=1.0), 1.1),
        (to_go_with_improvement((1, 1, 1), 10.0), ours("turn", bonus=10.0), 1.7),
        # Paid for the change alone, and paid for the own reward (gamma and later weights aside): one objective.
        (to_go_with_improvement((1, 0, 0), 1.0), ours("turn", weights_T=(1, 0, 0), bonus=1.0), 1.5),
    ],
    ids=["trajectory", "bonus 1", "bonus 10", "the change alone"],
)
def test_the_expected_gradient_is_that_of_the_former_estimator_and_the_variance_falls(
    group, former, causal, ratio
):
    expected, variance_before = moments(former, group)
    found, variance = moments(causal, group)
    assert max(map(abs, expected.values())) > 0.01
    for state, value in expected.items():
        assert found[state] == pytest.approx(value, abs=1e-12), state
    assert variance_before > ratio * variance, variance_before / variance


FORMER_OF_TURN_2 = {  # as the papers have them, and the arguments of ours
    "trajectory": (lambda r_1, r_2: r_2 - 0.5 * r_1, {"credit": "trajectory"}),
    "bonus 1": (lambda r_1, r_2: r_2 + (r_2 - r_1), {"credit": "turn", "bonus": 1.0}),
    "bonus 10": (lambda r_1, r_2: r_2 + 10 * (r_2 - r_1), {"credit": "turn", "bonus": 10.0}),
    "the change alone": (lambda r_1, r_2: r_2 - r_1, {"credit": "turn"}),
}


def mean_square(returns_P_G):
    """Return the second moment of the leave-one-out advantages of turn 2, to which its noise is proportional."""
    found = [a for group in advantages([[[g] for g in group] for group in returns_P_G]) for [a] in group]
    return sum(a**2 for a in found) / len(found)


@pytest.mark.parametrize(
    ("model", "ratios"), [("Boost", (1.27, 1.27, 1.78, 1.92)), ("CoCoS, update 10", (1.22, 1.22, 1.82, 2.01))]
)
def test_on_the_laboratorys_real_rewards_the_advantages_are_smaller_as_docs_cocos_says(model, ratios):
    with (ROOT / "docs/results/study/rewards.csv").open() as file:
        rewards = [
            (float(row["r_1"]), float(row["r_2"])) for row in csv.DictReader(file) if row["model"] == model
        ]
    groups = [rewards[start : start + 4] for start in range(0, len(rewards), 4)]
    assert len(groups) == 128
    for (former, options), ratio in zip(FORMER_OF_TURN_2.values(), ratios, strict=True):
        before = mean_square([[former(*r) for r in group] for group in groups])
        now = mean_square([[turn_returns(r, gamma=0.5, **options)[1] for r in group] for group in groups])
        assert before / now == pytest.approx(ratio, abs=0.006)
    shown = " ".join((ROOT / "docs/cocos.md").read_text().split())
    first, _, third, last = (f"{ratio:.2f}" for ratio in ratios)  # the page has the first two in one number
    assert re.search(rf"{first}( times \([^)]*\))?, {third}( times \([^)]*\))? and {last} times", shown)

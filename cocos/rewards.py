"""From verdicts to advantages: the equations of CoCoS (arXiv 2505.23060), SCoRe (arXiv 2409.12917) and RLOO
(arXiv 2402.14740) as pure functions of numbers.

Read from top to bottom: verdicts -> r_t (`turn_reward`) -> returns of the trained turns (`turn_returns`), of
single attempts if desired for the best of k (`max_at_k`) -> advantages over the siblings' baseline
(`leave_one_out`) -> the weight of every row in the loss (`row_advantages`).

Notation: T turns, K trained turns, P prompts, G trajectories per prompt, B = P * G trajectories. The G
trajectories of a prompt are a *group*, and *siblings* of each other. r_t is the reward of turn t, r_0 = 0.
G_t is the return of turn t, G_i that of trajectory i. Nested lists are named by their axes: `rewards_P_G_T`.

None means that the executor failed, so there is no reward. It is never treated as 0: a return that depends on
it is None too, is excluded from the siblings' baselines, and gets advantage 0.

A trajectory that stops early carries its last program through the remaining turns (`Turn.is_carried`), which
have its reward and an empty row with advantage 0; docs/cocos.md says why ("Rules between turns").
A given turn (`Turn.is_given`) was not sampled either, so its row is empty, too.
"""

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, isfinite
from typing import NamedTuple

from cocos.executor import ExecutionResult
from cocos.literals import Credit


@dataclass(frozen=True)
class Objective:
    """Training objective: which turns are trained, and with which return."""

    num_turns: int  # T
    num_generations: int  # G, trajectories per prompt, at least 2
    # `trajectory` and `last` use the accumulated reward, `turn` the return-to-go (`turn_returns`). `last`
    # trains turn T only.
    credit: Credit
    gamma: float  # discount between turns, in [0, 1]
    improvement_bonus: float  # further weight of r_t in the return of turns t >= 2; credit `turn` only
    # w_1..w_T, the weight of each turn's reward, 0 or more; None: all 1. Credit `turn` only.
    turn_weights: Sequence[float] | None
    betas_T: Sequence[float]  # coefficient of the KL penalty of each turn, 0 or more
    max_at_k: int = 1  # k of the maximised best of k attempts, below G; above 1 only if T = 1

    @property
    def trained_turns(self) -> list[int]:
        """Numbers of the trained turns, from 1. Length K."""
        return trained_turns(self.credit, self.num_turns)

    @property
    def accumulated_text(self) -> str:
        """The accumulated reward in words. Example: `-0.5 E[r_1] + E[r_2]`."""
        weights = accumulated_weights(self.num_turns, self.gamma)
        return " + ".join(
            f"{'' if weight == 1 else f'{weight:g} '}E[r_{t}]" for t, weight in enumerate(weights, start=1)
        )


class Score(NamedTuple):
    """Measurements of one trajectory."""

    rewards_T: list[float | None]  # r_t of every turn
    # KL to the reference of each trained turn, as the sum of log(pi / pi_ref) over its tokens (k1);
    # None: the trajectory did not sample this turn, so its row is empty.
    kl_K: Sequence[float | None]


def turn_reward(
    result: ExecutionResult, kind: str = "fraction", reward_in_child: bool = False, num_unpaid: int = 0
) -> float | None:
    """Return r_t of one executed program; None where the executor failed.

    `fraction`: share of tests that pass, in [0, 1] (the paper's fine-grained reward).
    `binary`: 1 if all pass, else 0 (SCoRe). `mixed`: the mean of both, so that the last test pays most.
    `count`: number of tests that pass (the released code).
    Example: 2 of 3 tests pass -> 2/3, 0, 1/3, 2.

    Args:
        reward_in_child: Whether a test that passes with the verdict `in_child` counts as passed. By default
            it counts as failed: the program could have forged the verdict, and a reward for it would teach
            the model to do so.
        num_unpaid: Number of tests at the start that do not count: the visible ones if only hidden tests pay.
            At least one test must be left.

    """
    if result.is_infra_failure:
        return None
    paid = result.verdicts[num_unpaid:]
    num_tests = len(paid)
    passed = sum(verdict.passed and (reward_in_child or not verdict.in_child) for verdict in paid)
    if kind == "binary":
        reward = float(passed == num_tests)
    elif kind == "count":
        reward = float(passed)
    elif kind == "fraction":
        reward = passed / num_tests
    elif kind == "mixed":
        reward = (passed / num_tests + (passed == num_tests)) / 2
    else:
        raise ValueError(f"the verdicts give no reward {kind!r}; choose fraction, binary, mixed or count")
    assert isfinite(reward) and 0 <= reward <= num_tests
    return reward


def random_reward(result: ExecutionResult, key: str) -> float | None:
    """Return 0 or 1 by chance, whatever the program does; None where the executor failed.

    It is a control: what a policy gains from such rewards (arXiv 2506.10947), it does not owe to the tests.
    Every rank, and a resumed run, gets the same value for a key.

    Args:
        key: Text that names seed, problem, sample, turn and completion.

    """
    return None if result.is_infra_failure else float(random.Random(key).random() < 0.5)


def accumulated_weights(num_turns: int, gamma: float) -> list[float]:
    """Return the weight of r_1..r_T in CoCoS' accumulated reward R = sum_t gamma^(T-t) * (r_t - r_{t-1}).

    r_t stands in two terms, so its weight is gamma^(T-t) - gamma^(T-t-1) for t < T, and 1 for t = T.
    Example: T = 2, gamma = 0.5 -> (-0.5, 1), and r = (0.2, 1.0) accumulates 1.0 - 0.5 * 0.2 = 0.9.
    """
    powers = [gamma ** (num_turns - t) for t in range(1, num_turns + 1)]  # gamma^(T-t)
    return [now - later for now, later in zip(powers, [*powers[1:], 0.0], strict=True)]


def to_go_weights(
    num_turns: int, turn: int, gamma: float, bonus: float = 0.0, weights_T: Sequence[float] | None = None
) -> list[float]:
    """Return the weight of r_t..r_T in the return-to-go of turn t: gamma^(s-t) * w_s for r_s.

    For t >= 2, `bonus` is added to the weight of r_t. It stands for SCoRe's alpha * (r_t - r_{t-1}): given
    the prompt of turn t, r_{t-1} is a constant, so it changes the variance of the gradient, not its expected
    value. No weight is negative, so a turn is never rewarded for a worse attempt.

    Examples, all with r = (0.2, 1.0):
        gamma = 0.5, bonus = 1: G_1 = 0.2 + 0.5 * 1.0 = 0.7; G_2 = (1 + 1) * 1.0 = 2.
        SCoRe has gamma = 0, a turn's reward belongs to that turn alone (arXiv 2409.12917, appendix on reward
        design). Stage I (sec. 5.1), w = (0, 1): G_1 = 0, so only the KL penalty trains turn 1; G_2 = 1.
        Stage II (sec. 5.2), bonus = alpha = 10: G_1 = 0.2; G_2 = 11 * 1.0. So turn 2 counts eleven-fold
        against turn 1 and against its KL penalty.

    Args:
        turn: t, from 1 to T.
        bonus: Improvement bonus, 0 or more.
        weights_T: w_1..w_T, 0 or more; None: all 1.

    """
    weights_T = [1.0] * num_turns if weights_T is None else weights_T
    to_go = [gamma**s * weight for s, weight in enumerate(weights_T[turn - 1 :])]
    return [to_go[0] + (bonus if turn >= 2 else 0.0), *to_go[1:]]


def trained_turns(credit: Credit, num_turns: int) -> list[int]:
    """Return the numbers of the trained turns, from 1: all turns, or turn T alone for credit `last`."""
    return [num_turns] if credit == "last" else list(range(1, num_turns + 1))


def turn_returns(
    rewards_T: Sequence[float | None],
    credit: Credit,
    gamma: float,
    bonus: float = 0.0,
    weights_T: Sequence[float] | None = None,
    penalties_K: Sequence[float] | None = None,
) -> list[float | None]:
    """Return the return of each trained turn of one trajectory, minus its KL penalty.

    A turn gets the terms that it can influence: rewards and penalties from that turn on. Earlier ones are
    constants given its prompt. They would leave the expected gradient as it is, and raise its variance.

    `trajectory`: the terms of the accumulated reward, minus the sum of the penalties.
    `last`: the same for turn T alone.
    `turn`: the return-to-go, minus the penalties, discounted like the rewards.
    For T = 1 all three equal the return of TRL's RLOO.
    Example: r = (0.2, 1.0), gamma = 0.5, `trajectory` -> G_1 = 1.0 - 0.5 * 0.2 = 0.9, G_2 = 1.0.

    Args:
        bonus: See `to_go_weights`; credit `turn` only.
        weights_T: See `to_go_weights`; credit `turn` only.
        penalties_K: KL penalty of each trained turn (`kl_penalties`).

    Returns:
        One value per trained turn; None if a reward that it depends on is None.

    """
    if credit != "turn" and (bonus or weights_T is not None):
        raise ValueError(
            "an improvement bonus and turn weights need credit 'turn'; "
            "the accumulated reward has fixed weights"
        )
    num_turns = len(rewards_T)
    turns = trained_turns(credit, num_turns)
    penalties_K = [0.0] * len(turns) if penalties_K is None else penalties_K
    discount = gamma if credit == "turn" else 1.0
    returns = []
    for k, turn in enumerate(turns):
        if credit == "turn":
            weights = to_go_weights(num_turns, turn, gamma, bonus, weights_T)
        else:
            weights = accumulated_weights(num_turns, gamma)[turn - 1 :]
        penalty = sum(discount**s * p for s, p in enumerate(penalties_K[k:]))
        returns.append(_weighted_sum(rewards_T[turn - 1 :], weights, -penalty))
    return returns


def _weighted_sum(rewards: Sequence[float | None], weights: Sequence[float], start: float) -> float | None:
    """Return start + the weighted sum of rewards; None if a reward with a weight is None."""
    total = start
    for reward, weight in zip(rewards, weights, strict=True):
        if weight and reward is None:
            return None
        total += weight * (reward or 0.0)
    return total


def max_at_k(rewards_G: Sequence[float | None], k: int) -> list[float | None]:
    """Return each attempt's reward for max@k, the expected largest reward of k attempts (arXiv 2510.23393).

    m_i is the mean of the largest reward over all k-subsets of the group that contain attempt i. The mean of
    m over the group estimates max@k without bias; for rewards of 0 and 1 it is pass@k. With the group's mean
    as the baseline, the mean over i of k (m_i - mean m) grad log p_i is (1 - k/n) times the gradient of max@k
    in expectation, for n attempts: a baseline that contains attempt i takes away the share k/n. The returned
    k (n - 1) / (n - k) m_i makes up for it, since `leave_one_out` is n / (n - 1) times the distance from the
    mean. So A_i = k (m_i - mean of the largest reward over the k-subsets without i), which is unbiased, has
    mean 0 over the group, and for k = 1 is the advantage of RLOO.

    Example: k = 2, rewards (0, 0, 0.5, 1): m = (1/2, 1/2, 2/3, 1), estimate 2/3; returned, times 3:
    (1.5, 1.5, 2, 3); A = (-2/3, -2/3, 0, 4/3). A third best attempt is worth as much as no attempt.

    Returns:
        None for an attempt without a reward; for all if no more than k have one, as no subset is without i.

    """
    ranked = sorted((Fraction(reward), i) for i, reward in enumerate(rewards_G) if reward is not None)
    n = len(ranked)
    result: list[float | None] = [None] * len(rewards_G)
    if n <= k:
        return result
    above = Fraction(0)  # sum of the largest rewards of the subsets with attempt i whose largest is above it
    for rank, (reward, i) in reversed(list(enumerate(ranked))):  # rank: number of attempts below
        total = reward * comb(rank, k - 1) + above
        # Exact: attempts with equal values must have equal floats, or a flat group would not be known as one.
        result[i] = float(total * k * (n - 1) / (comb(n - 1, k - 1) * (n - k)))
        above += reward * comb(rank - 1, k - 2) if rank and k > 1 else 0
    return result


def kl_penalties(kl_K: Sequence[float | None], betas_K: Sequence[float]) -> list[float]:
    """Return beta_t * KL_t of each trained turn, 0 where there is no KL because the turn was not sampled.

    RLOO has one beta for all turns (arXiv 2402.14740), SCoRe one per turn (arXiv 2409.12917).

    Example: KL = (2, 4), betas = (0.25, 0.01) -> (0.5, 0.04).
    """
    return [0.0 if kl is None else beta * kl for beta, kl in zip(betas_K, kl_K, strict=True)]


def grouped_returns(scores_B: Sequence[Score], objective: Objective) -> list[list[list[float | None]]]:
    """Return the returns of all trajectories, group by group. Shape (P, G, K).

    A turn that no trajectory of a group sampled has the return None: it trains nothing.

    Args:
        scores_B: Scores of the trajectories. Siblings are consecutive.

    """
    betas_K = [objective.betas_T[turn - 1] for turn in objective.trained_turns]
    size = objective.num_generations
    groups: list[list[list[float | None]]] = []
    for start in range(0, len(scores_B), size):
        scores_G = scores_B[start : start + size]
        if objective.max_at_k > 1:  # before the penalties: what is maximised is max@k minus beta * KL
            values_G = max_at_k([score.rewards_T[0] for score in scores_G], objective.max_at_k)
            scores_G = [score._replace(rewards_T=[g]) for score, g in zip(scores_G, values_G, strict=True)]
        kl_K_G = zip(*(score.kl_K for score in scores_G), strict=True)
        is_sampled_K = [any(kl is not None for kl in kl_G) for kl_G in kl_K_G]
        group: list[list[float | None]] = []
        for score in scores_G:
            returns_K = turn_returns(
                score.rewards_T,
                objective.credit,
                objective.gamma,
                objective.improvement_bonus,
                objective.turn_weights,
                kl_penalties(score.kl_K, betas_K),
            )
            group.append([g if sampled else None for g, sampled in zip(returns_K, is_sampled_K, strict=True)])
        groups.append(group)
    return groups


def leave_one_out(
    returns_G: Sequence[float | None], states_G: Sequence[Hashable | None] | None = None
) -> list[float]:
    """Return A_i = G_i - mean_{j != i} G_j over the siblings that have a return (RLOO).

    A trajectory without a return, or without a sibling that has one, gets advantage 0. Without states, the
    advantages of a group sum to 0, so their mean says nothing about learning.
    Example: (1, 0, None) -> (1 - 0, 0 - 1, 0).

    Args:
        states_G: State in which each trajectory sampled the turn; None: it did not. A trajectory is then
            compared with the siblings in its own state, if there are any, else with all. Which ones they are
            depends on states, never on what was sampled in them, so the gradient stays unbiased; the
            advantages need not sum to 0. Example: returns (1, 0, 1, 1) in states (a, a, b, None) ->
            (1 - 0, 0 - 1, 1 - 2/3, 1 - 2/3).

    """
    known = {i: value for i, value in enumerate(returns_G) if value is not None}
    if len(known) < 2:
        return [0.0] * len(returns_G)
    result = []
    for i in range(len(returns_G)):
        peers = list(known.values())
        if states_G is not None and states_G[i] is not None:
            in_state = [value for j, value in known.items() if states_G[j] == states_G[i]]
            peers = in_state if len(in_state) > 1 else peers
        # (total - g) / (n - 1) is the mean of the other n - 1 siblings.
        result.append(known[i] - (sum(peers) - known[i]) / (len(peers) - 1) if i in known else 0.0)
    return result


def advantages(
    returns_P_G_K: Sequence[Sequence[Sequence[float | None]]],
    states_P_G_K: Sequence[Sequence[Sequence[Hashable | None]]] | None = None,
) -> list[list[list[float]]]:
    """Return leave-one-out advantages; siblings are compared at the same turn. Shape (P, G, K).

    Args:
        states_P_G_K: See `leave_one_out`; None: siblings are compared whatever their states are.

    """
    result = []
    for p, returns_G_K in enumerate(returns_P_G_K):
        per_turn = [  # (K, G)
            leave_one_out(returns_G, states_P_G_K and [states_K[k] for states_K in states_P_G_K[p]])
            for k, returns_G in enumerate(zip(*returns_G_K, strict=True))
        ]
        result.append([list(row) for row in zip(*per_turn, strict=True)])
    return result


def trained_advantages(
    returns_P_G_K: Sequence[Sequence[Sequence[float | None]]],
    scores_B: Sequence[Score],
    states_P_G_K: Sequence[Sequence[Sequence[Hashable | None]]] | None = None,
) -> list[list[float]]:
    """Return the advantages of all trajectories, 0 at the turns that they did not sample. Shape (B, K).

    Example: returns 1 and 0.25 of two siblings at turn 2, which only the second one sampled -> 0 and -0.75.
    """
    advantages_P_G_K = advantages(returns_P_G_K, states_P_G_K)
    advantages_B_K = [advantage_K for group in advantages_P_G_K for advantage_K in group]
    return [
        [0.0 if kl is None else advantage for advantage, kl in zip(advantage_K, score.kl_K, strict=True)]
        for advantage_K, score in zip(advantages_B_K, scores_B, strict=True)
    ]


def row_advantages(advantages_B_K: Sequence[Sequence[float]]) -> list[float]:
    """Return the advantage of each row of the loss, trajectory by trajectory. Shape (R,), R = B * K.

    TRL's loss averages over rows, one per trained turn. The objective sums over the turns of a trajectory, so
    every advantage is multiplied by K. Example: one trajectory with advantages (0.5, -1) -> (1, -2).
    """
    return [len(advantage_K) * advantage for advantage_K in advantages_B_K for advantage in advantage_K]


def zero_spread(returns_P_G_K: Sequence[Sequence[Sequence[float | None]]]) -> list[float]:
    """Return, for each trained turn, the share of groups whose returns are all equal. Shape (K,).

    All advantages of such a group are 0, so it contributes no gradient.

    Example: returns (1, 1) and (1.5, 0.5) of two groups at a turn -> 0.5.
    """
    equal_P_K = [
        [len({g for g in returns_G if g is not None}) < 2 for returns_G in zip(*returns_G_K, strict=True)]
        for returns_G_K in returns_P_G_K
    ]
    return [sum(equal_P) / len(equal_P) for equal_P in zip(*equal_P_K, strict=True)]

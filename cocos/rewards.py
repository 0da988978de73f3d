"""From verdicts to advantages: the equations of CoCoS (arXiv 2505.23060), SCoRe (arXiv 2409.12917) and RLOO
(arXiv 2402.14740) as pure functions of numbers.

Notation: T turns, G trajectories (a *group*) per prompt, P prompts; r_t is the reward of turn t and r_0 = 0.
`None` stands for "no reward": the executor itself failed. It is never 0, and whatever depends on it is left
out of baselines and of training. Nested lists carry their axes as a suffix: `rewards_P_G_T`.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Literal, NamedTuple

from cocos.executor import ExecutionResult

RewardKind = Literal["fraction", "binary", "count"]
Credit = Literal["turn", "trajectory", "last"]


class Score(NamedTuple):
    """What one trajectory brought: r_t of all T turns, and the KL to the reference (k1, summed over tokens)
    of each trained turn (K).
    """

    rewards_T: list[float | None]
    kl_K: list[float]


def turn_reward(result: ExecutionResult, kind: RewardKind = "fraction") -> float | None:
    """r_t of one executed program; None where the executor failed.

    `fraction`: share of tests that pass, in [0, 1] (the paper's fine-grained reward). `binary`: 1 if all
        pass, else 0 (SCoRe).
    `count`: number of tests that pass (the released code). Example: 2 of 3 tests pass -> 2/3, 0, 2.
    """
    passed = result.num_passed
    if passed is None:
        return None
    if kind == "binary":
        reward = float(result.all_passed)
    elif kind == "count":
        reward = float(passed)
    elif kind == "fraction":
        reward = passed / len(result.verdicts)
    else:
        raise ValueError(f"unknown reward kind {kind!r}; choose fraction, binary or count")
    assert isfinite(reward) and 0 <= reward <= len(result.verdicts)
    return reward


def accumulated_reward(rewards_T: Sequence[float], gamma: float) -> float:
    """R = sum_{t=1..T} gamma^(T-t) * (r_t - r_{t-1}), the trajectory's accumulated reward (CoCoS).

    Example: r = (0.2, 1.0), gamma = 0.5: 0.5 * 0.2 + (1.0 - 0.2) = 0.9.
    """
    num_turns = len(rewards_T)
    steps = zip([0.0, *rewards_T], rewards_T, strict=False)
    return sum(gamma ** (num_turns - t) * (now - before) for t, (before, now) in enumerate(steps, start=1))


def return_to_go(
    rewards_T: Sequence[float],
    turn: int,
    gamma: float,
    bonus: float = 0.0,
    weights_T: Sequence[float] | None = None,
) -> float:
    """G_t = sum_{s>=t} gamma^(s-t) * w_s * r_s, plus bonus * (r_t - r_{t-1}) on turns t >= 2 only.

    No term of turn t's own return falls when r_t rises, so nothing pays for a worse attempt.
    Example: r = (0.2, 1.0), gamma = 0.5, bonus = 1: G_1 = 0.2 + 0.5 * 1.0 = 0.7; G_2 = 1.0 + (1.0 - 0.2) =
        1.8.
    SCoRe's stage I (arXiv 2409.12917, sec. 5.1) pays for turn 2 alone, gamma = 1 and w = (0, 1): r = (0.2,
        1.0) gives G_1 = G_2 = 1.0. Its stage II (sec. 5.2) adds alpha as the bonus, gamma = 1, w = (1, 1),
        alpha = 10: G_1 = 1.2, G_2 = 1.0 + 10 * 0.8 = 9.0.

    Args:
        turn: t, from 1 to T.
        bonus: SCoRe's alpha, 0 or more.
        weights_T: w_1..w_T, 0 or more; all 1 where None.

    """
    weights_T = [1.0] * len(rewards_T) if weights_T is None else weights_T
    paid = [weight * reward for weight, reward in zip(weights_T, rewards_T, strict=True)]
    to_go = sum(gamma**s * reward for s, reward in enumerate(paid[turn - 1 :]))
    improvement = rewards_T[turn - 1] - rewards_T[turn - 2] if turn >= 2 else 0.0
    return to_go + bonus * improvement


def trained_turns(credit: Credit, num_turns: int) -> list[int]:
    """The turns, from 1, whose tokens are trained: all of them, or with credit `last` only turn T."""
    return [num_turns] if credit == "last" else list(range(1, num_turns + 1))


def turn_returns(
    rewards_T: Sequence[float | None],
    credit: Credit,
    gamma: float,
    bonus: float = 0.0,
    weights_T: Sequence[float] | None = None,
    penalties_K: Sequence[float] | None = None,
) -> list[float | None]:
    """The return of each trained turn of one trajectory, KL penalty subtracted.

    `last`, `trajectory`: R for every trained turn. `turn`: the return-to-go G_t.
    The penalties are summed over all trained turns for `trajectory` (and `last`), discounted like the rewards
    from turn t on for `turn`. For T = 1 all three are TRL's RLOO.

    Args:
        rewards_T: r_1..r_T.
        bonus: As in `return_to_go`; credit `turn` only.
        weights_T: As in `return_to_go`; credit `turn` only.
        penalties_K: For each *trained* turn, its coefficient (`kl_penalties`) times the k1 estimate of its KL
            to the reference, which is summed over its tokens.

    Returns:
        One value per trained turn; None where a reward that it depends on is None.

    """
    turns = trained_turns(credit, len(rewards_T))
    penalties_K = [0.0] * len(turns) if penalties_K is None else penalties_K
    if credit == "turn":
        weights_T = [1.0] * len(rewards_T) if weights_T is None else weights_T
        known = [0.0 if reward is None else reward for reward in rewards_T]
        returns: list[float | None] = []
        for turn in turns:
            needed = [r for s, r in enumerate(rewards_T, start=1) if s >= turn and weights_T[s - 1]]
            if bonus and turn >= 2:
                needed += rewards_T[turn - 2 : turn]
            penalty = sum(gamma**s * p for s, p in enumerate(penalties_K[turn - 1 :]))
            to_go = return_to_go(known, turn, gamma, bonus, weights_T)
            returns.append(None if None in needed else to_go - penalty)
        return returns
    if bonus or weights_T is not None:
        raise ValueError(
            "an improvement bonus and turn weights need credit 'turn'; "
            "the accumulated reward weighs the turns by itself"
        )
    if any(reward is None for reward in rewards_T):
        return [None] * len(turns)
    accumulated = accumulated_reward([reward for reward in rewards_T if reward is not None], gamma)
    return [accumulated - sum(penalties_K)] * len(turns)


def kl_penalties(kl_K: Sequence[float], betas_K: Sequence[float]) -> list[float]:
    """beta_t * KL_t of each trained turn: RLOO has one beta (arXiv 2402.14740, eq. 1), SCoRe one per turn.

    Example: KL = (2, 4), betas = (0.25, 0.01) -> (0.5, 0.04).
    """
    return [beta * kl for beta, kl in zip(betas_K, kl_K, strict=True)]


def leave_one_out(returns_G: Sequence[float | None]) -> list[float]:
    """A_i = G_i - mean_{j != i} G_j over the siblings that have a return (RLOO, arXiv 2402.14740, eq. 7).

    A trajectory without a return, or without a sibling that has one, gets advantage 0. The advantages of a
    group therefore always sum to 0: their mean says nothing about learning.
    Example: (1, 0, None) -> (1 - 0, 0 - 1, 0).
    """
    known = [value for value in returns_G if value is not None]
    if len(known) < 2:
        return [0.0] * len(returns_G)
    total = sum(known)
    return [0.0 if g is None else g - (total - g) / (len(known) - 1) for g in returns_G]


def advantages(returns_P_G_K: Sequence[Sequence[Sequence[float | None]]]) -> list[list[list[float]]]:
    """Leave-one-out advantages of K trained turns, siblings compared at the same turn. Shape (P, G, K)."""
    result = []
    for returns_G_K in returns_P_G_K:
        per_turn = [leave_one_out(returns_G) for returns_G in zip(*returns_G_K, strict=True)]  # (K, G)
        result.append([list(row) for row in zip(*per_turn, strict=True)])
    return result


def zero_spread(returns_P_G_K: Sequence[Sequence[Sequence[float | None]]]) -> list[float]:
    """For each trained turn, the share of groups whose returns are all equal: they teach nothing.

    Example: returns (1, 1) and (1.5, 0.5) of two groups at a turn -> 0.5.
    """
    equal_P_K = [
        [len({g for g in returns_G if g is not None}) < 2 for returns_G in zip(*returns_G_K, strict=True)]
        for returns_G_K in returns_P_G_K
    ]
    return [sum(equal_P) / len(equal_P) for equal_P in zip(*equal_P_K, strict=True)]

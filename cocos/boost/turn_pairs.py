"""Pairs of a first attempt and its correction, and the selection of pairs for Boost.

A right attempt is its own correction, so that the model learns to keep right programs. The correction of a
wrong attempt is a program that passes every test. Does not know models or files.

Relabelled pairs (muCODE, arXiv 2502.20380) have one target per problem instead, after right attempts too.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from cocos.boost.attempts import Attempt
from cocos.metrics import edit_ratio
from cocos.problems import Problem

CorrectionSource = Literal["any", "reference", "own", "relabelled"]


@dataclass(frozen=True)
class TurnPair:
    """A first attempt at a problem and the program of its second turn."""

    problem: Problem
    attempt: Attempt
    correction: str

    @property
    def is_kept(self) -> bool:
        """True if the second turn repeats the first."""
        return self.attempt.code == self.correction


def make_pairs(
    problems: Collection[Problem],
    attempts: Sequence[Attempt],
    verified: Collection[str],
    source: CorrectionSource,
) -> list[TurnPair]:
    """Return a pair for every attempt that is right or has a correction, in the order of the attempts.

    Args:
        attempts: The attempts. Those without a program, or whose `is_right` is unknown, are left out.
        verified: Ids of the problems whose reference passes its tests.
        source: `reference`: verified references only; `own`: the model's own programs that pass every test;
            `any`: the reference if it is verified, otherwise the model's own. Of the model's programs, one
            that it wrote after the attempt comes first, then the one that differs least from the attempt.
            `relabelled`: after every attempt, the right program that the model wrote most often.

    """
    by_id = {problem.task_id: problem for problem in problems}
    own: dict[str, list[str]] = defaultdict(list)  # the model's right programs by task_id
    for attempt in attempts:
        own[attempt.task_id] += [attempt.code] if attempt.is_right else attempt.corrections
    pairs = []
    for attempt in attempts:
        if attempt.is_right is None or not attempt.code.strip():
            continue
        problem, right = by_id[attempt.task_id], own[attempt.task_id]
        if source == "relabelled":
            candidates = [program for program, _ in Counter(right).most_common(1)]
        else:
            candidates = [attempt.code] if attempt.is_right else []
            if source != "own" and attempt.task_id in verified:
                candidates.append(problem.code)
            if source != "reference":
                candidates += [
                    *attempt.corrections,
                    *sorted(right, key=lambda program: edit_ratio(attempt.code, program)),
                ]
        if candidates:
            pairs.append(TurnPair(problem, attempt, candidates[0]))
    return pairs


def balance_pairs(
    pairs: Sequence[TurnPair], per_problem: int | None, keep_share: float | None, seed: int
) -> list[TurnPair]:
    """Select pairs so that neither a problem nor a kind of second turn dominates; keep their order.

    Args:
        per_problem: Largest number of pairs per problem. Pairs with different attempts are selected first.
            None: no limit.
        keep_share: Share of pairs whose second turn repeats the first, in [0, 1]. Pairs of the more frequent
            kind are dropped at random to reach it. None: no pair is dropped.

    """
    rng = random.Random(seed)
    chosen = list(range(len(pairs)))
    if per_problem is not None:
        chosen = _limit_per_problem(pairs, per_problem, rng)
    if keep_share is not None:
        chosen = _reach_keep_share(pairs, chosen, keep_share, rng)
    return [pairs[index] for index in sorted(chosen)]


def _limit_per_problem(pairs: Sequence[TurnPair], per_problem: int, rng: random.Random) -> list[int]:
    """Return the indices of at most `per_problem` pairs of each problem."""
    by_problem: dict[str, list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        by_problem[pair.problem.task_id].append(index)
    chosen = []
    for indices in by_problem.values():
        rng.shuffle(indices)
        first_of_program: dict[str, int] = {}
        for index in indices:
            first_of_program.setdefault(pairs[index].attempt.code, index)
        different = list(first_of_program.values())
        repeated = [index for index in indices if index not in different]
        chosen += (different + repeated)[:per_problem]
    return chosen


def _reach_keep_share(
    pairs: Sequence[TurnPair], chosen: Sequence[int], keep_share: float, rng: random.Random
) -> list[int]:
    """Return the chosen indices without the surplus of the more frequent kind of second turn.

    Example: with 6 kept and 2 changed programs and a share of 0.5, 2 * 0.5 / 0.5 = 2 kept and both changed
    ones remain.
    """
    kept = sorted(index for index in chosen if pairs[index].is_kept)
    changed = sorted(index for index in chosen if not pairs[index].is_kept)
    max_kept = len(kept) if keep_share == 1 else int(len(changed) * keep_share / (1 - keep_share))
    max_changed = len(changed) if keep_share == 0 else int(len(kept) * (1 - keep_share) / keep_share)
    return [*rng.sample(kept, min(len(kept), max_kept)), *rng.sample(changed, min(len(changed), max_changed))]

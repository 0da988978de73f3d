"""From attempts to pairs (first turn, second turn): which attempts are taught, and what each should become.

A right attempt is kept as it is: that is how the second turn learns to keep. A wrong one becomes a program
that passes every test. Pure: knows neither models nor files.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from boost.attempts import Attempt
from cocos.problems import Problem

Corrections = Literal["any", "reference", "own"]


@dataclass(frozen=True)
class Pair:
    """Two turns on one problem; equal where the first was right."""

    problem: Problem
    attempt: str
    correction: str

    @property
    def is_kept(self) -> bool:
        """Whether the second turn keeps the first."""
        return self.attempt == self.correction


def pair(
    problems: Collection[Problem], attempts: Sequence[Attempt], verified: Collection[str], source: Corrections
) -> list[Pair]:
    """Every attempt that is right or has a correction, in order.

    Args:
        problems: Those that were attempted.
        attempts: One that the executor could not decide, or that holds no program, is left out.
        verified: Ids of the problems whose reference passes the tests.
        source: `reference`: references alone; `own`: what the model wrote itself and the tests passed;
            `any`: the reference where there is one, else the model's own.

    """
    by_id = {problem.task_id: problem for problem in problems}
    own: dict[str, list[str]] = defaultdict(list)  # right programs of the model, by problem
    for one in attempts:
        own[one.task_id] += [one.code] if one.is_right else list(one.corrections)
    pairs = []
    for one in attempts:
        problem = by_id[one.task_id]
        if one.is_right is None or not one.code.strip():
            continue
        known: list[str] = [one.code] if one.is_right else []
        if source != "own" and one.task_id in verified:
            known.append(problem.code)
        if source != "reference":
            known += [*one.corrections, *own[one.task_id]]
        if known:
            pairs.append(Pair(problem, one.code, known[0]))
    return pairs


def balance(
    pairs: Sequence[Pair], per_problem: int | None, keep_share: float | None, seed: int
) -> list[Pair]:
    """Choose pairs so that no problem and neither kind outweighs the others, in order.

    Args:
        per_problem: Most pairs of one problem, pairs of different programs first; None: all.
        keep_share: Share of pairs whose second turn keeps the first, in [0, 1]; the more frequent kind is
            thinned out to reach it; None: as they come.
        seed: Draws which pairs stay.

    """
    rng = random.Random(seed)
    chosen = set(range(len(pairs)))
    if per_problem is not None:
        chosen = set()
        by_problem: dict[str, list[int]] = defaultdict(list)
        for number, one in enumerate(pairs):
            by_problem[one.problem.task_id].append(number)
        for numbers in by_problem.values():
            rng.shuffle(numbers)
            programs: dict[str, int] = {}
            for number in numbers:
                programs.setdefault(pairs[number].attempt, number)
            first = list(programs.values())
            rest = [number for number in numbers if number not in first]
            chosen |= set((first + rest)[:per_problem])
    if keep_share is not None:
        kept = sorted(number for number in chosen if pairs[number].is_kept)
        changed = sorted(number for number in chosen if not pairs[number].is_kept)
        most_kept = len(kept) if keep_share == 1 else int(len(changed) * keep_share / (1 - keep_share))
        most_changed = len(changed) if keep_share == 0 else int(len(kept) * (1 - keep_share) / keep_share)
        chosen = {
            *rng.sample(kept, min(len(kept), most_kept)),
            *rng.sample(changed, min(len(changed), most_changed)),
        }
    return [pairs[number] for number in sorted(chosen)]

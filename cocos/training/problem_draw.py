"""Draw of the training problems for dynamic sampling: passes in a seeded order, with rests.

Every problem has a pass in which it is due. Without rests, each pass contains every problem once. A problem
whose groups stay solved, or stay hopeless, skips passes. Does not know trajectories or rewards.
"""

import heapq
import random
from collections.abc import Collection
from functools import lru_cache
from typing import Literal

Outcome = Literal["solved", "hopeless"]

REST_AFTER = 2  # groups of one outcome in a row; with few siblings a single one may be chance
LONGEST_REST = 8  # passes; the policy changes, so every problem has to be tried again at some time


class ProblemDraw:
    """Seeded draw of problems. It depends on the seed and the observed outcomes only.

    After the n-th equal outcome in a row, n >= REST_AFTER, a problem is due again 2^(n - REST_AFTER + 1)
    passes later, but no more than LONGEST_REST. Example: a problem that stays solved is drawn in passes 0, 1,
    3, 7, 15, 23.

    Args:
        num_problems: Number of training problems.
        seed: Seed of the order of every pass.

    """

    def __init__(self, num_problems: int, seed: int) -> None:
        self._seed = seed
        self._due = [0] * num_problems  # the pass in which each problem is drawn next
        self._streaks = [0] * num_problems  # n: the last n groups were solved; -n: they were hopeless

    def choose(self, count: int, without: Collection[int] = ()) -> list[int]:
        """Return the problems that are due first, in the order of their passes. Changes no state.

        A resting problem is returned only if all others are in `without`.

        Args:
            count: Number of problems.
            without: Problems that are not drawn.

        Returns:
            Different problems, `count` of them unless fewer are left.

        """
        order = lru_cache(self._order)

        def when(problem: int) -> tuple[int, int]:
            return self._due[problem], order(self._due[problem])[problem]

        candidates = [problem for problem in range(len(self._due)) if problem not in without]
        return heapq.nsmallest(count, candidates, key=when)

    def observe(self, problem: int, outcome: Outcome | None) -> None:
        """Record that a problem was played, and decide in which pass it is due again.

        Args:
            problem: Index of the problem.
            outcome: What all programs of its group have in common; None if it is neither.

        """
        sign = {"solved": 1, "hopeless": -1, None: 0}[outcome]
        streak = self._streaks[problem]
        self._streaks[problem] = streak + sign if streak * sign > 0 else sign
        doublings = max(0, abs(self._streaks[problem]) - REST_AFTER + 1)
        self._due[problem] += min(2**doublings, LONGEST_REST)

    def state_dict(self) -> list[list[int]]:
        """Return the state to save in a checkpoint: [problem, due, streak] of every problem played so far."""
        return [
            [problem, due, streak]
            for problem, (due, streak) in enumerate(zip(self._due, self._streaks, strict=True))
            if due
        ]

    def load_state_dict(self, state: list[list[int]]) -> None:
        """Restore what `state_dict` returned."""
        for problem, due, streak in state:
            self._due[problem], self._streaks[problem] = due, streak

    def _order(self, number: int) -> list[int]:
        """Return the position of every problem within a pass."""
        positions = list(range(len(self._due)))
        random.Random(f"{self._seed}, pass {number}").shuffle(positions)
        return positions

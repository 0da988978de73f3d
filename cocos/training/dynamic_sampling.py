"""Dynamic sampling: groups without a gradient give way to groups of other problems (arXiv 2503.14476).

A group is *flat* if the returns of its siblings are equal at every trained turn: all its advantages are 0.
Returns are compared without KL penalties. Penalties differ between siblings even if their rewards are equal,
and they need log-probabilities, which only the groups of the final batch get.

Problems are drawn in passes of a seeded order. A problem whose groups stay solved, or stay hopeless, rests:
it skips passes.

The trainer plays the groups and computes the rewards (`play`), of all ranks. So every rank makes the same
decisions, and a group is decided as a whole wherever its trajectories were played.
"""

import heapq
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from cocos.rewards import Objective, Score, grouped_returns, zero_spread
from cocos.trajectories import Trajectory

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
        self._due, self._streaks = [0] * len(self._due), [0] * len(self._streaks)
        for problem, due, streak in state:
            self._due[problem], self._streaks[problem] = due, streak

    def _order(self, number: int) -> list[int]:
        """Return the position of every problem within a pass."""
        positions = list(range(len(self._due)))
        random.Random(f"{self._seed}, pass {number}").shuffle(positions)
        return positions


@dataclass(frozen=True)
class Group:
    """The trajectories of one prompt with their rewards.

    Attributes:
        index: Index of the prompt in the training data.
        trajectories: Siblings.
        rewards_G_T: r_t of every trajectory; None where the executor failed.
        binary_G_T: The same with `--reward binary`: 1 for a right program, 0 for a wrong one.
        objective: The training objective.

    """

    index: int
    trajectories: list[Trajectory]
    rewards_G_T: list[list[float | None]]
    binary_G_T: list[list[float | None]]
    objective: Objective

    @cached_property
    def is_flat(self) -> bool:
        """Return True if the returns without KL penalties are equal at every trained turn."""
        scores = []
        for trajectory, rewards_T in zip(self.trajectories, self.rewards_G_T, strict=True):
            turns = [trajectory.turns[turn - 1] for turn in self.objective.trained_turns]
            scores.append(Score(rewards_T, [0.0 if turn.is_sampled else None for turn in turns]))
        return min(zero_spread(grouped_returns(scores, self.objective))) == 1.0

    @property
    def is_flat_on_accuracy(self) -> bool:
        """Whether, at every turn, all programs are right or all are wrong."""
        return all(len(set(binary_G) - {None}) < 2 for binary_G in zip(*self.binary_G_T, strict=True))

    @property
    def outcome(self) -> Outcome | None:
        """`solved`: every program is right. `hopeless`: every program is wrong, and the group is flat.

        Given programs do not count.
        """
        values = {
            value
            for trajectory, binary_T in zip(self.trajectories, self.binary_G_T, strict=True)
            for turn, value in zip(trajectory.turns, binary_T, strict=True)
            if not turn.is_given
        }
        if values == {1.0}:
            return "solved"
        return "hopeless" if values == {0.0} and self.is_flat else None


@dataclass(frozen=True)
class Batch:
    """The groups of one generation batch of all ranks.

    Attributes:
        groups: Groups to train on.
        dropped: Groups that were played, too, but gave way or were flat themselves.
        num_draws: Further draws.

    """

    groups: list[Group]
    dropped: list[Group]
    num_draws: int

    @property
    def trajectories(self) -> list[Trajectory]:
        """Trajectories to train on, siblings next to each other. Length B of all ranks."""
        return [trajectory for group in self.groups for trajectory in group.trajectories]

    def metrics(self) -> dict[str, float]:
        """Return shares of flat groups among all played ones, and the numbers of draws and of problems."""
        played = [*self.groups, *self.dropped]
        return {
            "frac_groups_flat": sum(group.is_flat for group in played) / len(played),
            "frac_groups_flat_accuracy": sum(group.is_flat_on_accuracy for group in played) / len(played),
            "draws": self.num_draws,
            "prompts_drawn": len(played),
        }


def fill_batch(
    play: Callable[[Sequence[int]], list[Group]], draw: ProblemDraw, num_groups: int, max_draws: int
) -> Batch:
    """Play groups, and replace those that are flat by groups of other problems.

    Each further draw has as many problems as groups are still flat, so no group that could be trained on is
    sampled in vain. A group that is still flat after the last draw stays; its advantages are 0.

    Args:
        play: Returns one group per problem.
        draw: Chooses the problems; it is told the outcome of every group.
        num_groups: Groups of the batch, no more than there are problems.
        max_draws: Largest number of further draws.

    """
    groups = play(draw.choose(num_groups))
    played = {group.index: group for group in groups}
    num_draws = 0
    while num_draws < max_draws and (flat := [i for i, group in enumerate(groups) if group.is_flat]):
        problems = draw.choose(len(flat), without=played)
        if not problems:  # every problem has been played for this batch
            break
        drawn = play(problems)
        num_draws += 1
        played |= {group.index: group for group in drawn}
        useful = [group for group in drawn if not group.is_flat]
        for i, group in zip(flat, useful, strict=False):
            groups[i] = group
    for group in played.values():
        draw.observe(group.index, group.outcome)
    kept = {group.index for group in groups}
    return Batch(groups, [group for group in played.values() if group.index not in kept], num_draws)

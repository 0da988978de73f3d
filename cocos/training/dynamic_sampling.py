"""Dynamic sampling: groups without a gradient give way to groups of other problems (arXiv 2503.14476).

A group is *flat* if the returns of its siblings are equal at every trained turn: all its advantages are 0.
Returns are compared without KL penalties. Penalties differ between siblings even if their rewards are equal,
and they need log-probabilities, which only the groups of the final batch get.

The trainer plays the groups and computes the rewards (`play`), of all ranks. So every rank makes the same
decisions, and a group is decided as a whole wherever its trajectories were played.
"""

import heapq
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cocos.rewards import Objective, Score, grouped_returns, zero_spread
from cocos.trajectories import Trajectory


class ProblemDraw:
    """Seeded draw of problems, in passes over all of them, each in an order of its own.

    Args:
        num_problems: Number of training problems.
        seed: Seed of the order of every pass.

    Attributes:
        num_played: How often each problem was played: the number of the pass in which it is drawn next.

    """

    def __init__(self, num_problems: int, seed: int) -> None:
        self._seed = seed
        self.num_played = [0] * num_problems

    def choose(self, count: int, without: Collection[int] = ()) -> list[int]:
        """Return the next problems, `count` different ones unless fewer are left. Changes no state.

        Args:
            count: Number of problems.
            without: Problems that are not drawn.

        """
        order = lru_cache(self._order)

        def when(problem: int) -> tuple[int, int]:
            return self.num_played[problem], order(self.num_played[problem])[problem]

        candidates = [problem for problem in range(len(self.num_played)) if problem not in without]
        return heapq.nsmallest(count, candidates, key=when)

    def mark_played(self, problems: Iterable[int]) -> None:
        """Move problems on to the next pass."""
        for problem in problems:
            self.num_played[problem] += 1

    def _order(self, number: int) -> list[int]:
        """Return the position of every problem within a pass."""
        positions = list(range(len(self.num_played)))
        random.Random(f"{self._seed}, pass {number}").shuffle(positions)
        return positions


@dataclass(frozen=True)
class Group:
    """The trajectories of one prompt with their rewards."""

    index: int  # index of the prompt in the training data
    trajectories: list[Trajectory]  # siblings
    rewards_G_T: list[list[float | None]]  # r_t of every trajectory; None where the executor failed
    objective: Objective  # the training objective

    @property
    def is_flat(self) -> bool:
        """Return True if the returns without KL penalties are equal at every trained turn."""
        scores = []
        for trajectory, rewards_T in zip(self.trajectories, self.rewards_G_T, strict=True):
            turns = [trajectory.turns[turn - 1] for turn in self.objective.trained_turns]
            scores.append(Score(rewards_T, [0.0 if turn.is_sampled else None for turn in turns]))
        return min(zero_spread(grouped_returns(scores, self.objective))) == 1.0


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
        """Return the share of flat groups among all played ones, and the numbers of draws and of problems."""
        played = [*self.groups, *self.dropped]
        return {
            "frac_groups_flat": sum(group.is_flat for group in played) / len(played),
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
        draw: Chooses the problems, and counts those that were played.
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
    draw.mark_played(played)
    kept = {group.index for group in groups}
    return Batch(groups, [group for group in played.values() if group.index not in kept], num_draws)

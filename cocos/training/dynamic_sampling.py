"""Dynamic sampling: groups without a gradient give way to groups of other problems (arXiv 2503.14476).

A group is *flat* if the returns of its siblings are equal at every trained turn: all its advantages are 0.
Returns are compared without KL penalties. Penalties differ between siblings even if their rewards are equal,
and they need log-probabilities, which only the groups of the final batch get.

The trainer plays the groups and computes the rewards (`play`), of all ranks. So every rank makes the same
decisions, and a group is decided as a whole wherever its trajectories were played.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cocos.rewards import Objective, Score, grouped_returns, zero_spread
from cocos.training.problem_draw import Outcome, ProblemDraw
from cocos.trajectories import Trajectory


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

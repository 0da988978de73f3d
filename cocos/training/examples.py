"""Trajectories of a batch as text for a terminal: verdicts, rewards and advantages, and the last program."""

import textwrap
from collections.abc import Sequence

from cocos.rewards import Score
from cocos.training.monitor import verdicts_text
from cocos.trajectories import Trajectory

WIDTH = 96  # columns, for a terminal of 100
MAX_LINES = 12  # lines of a program


def example_text(trajectory: Trajectory, score: Score, advantage_K: Sequence[float]) -> str:
    """Return one trajectory in lines of at most 96 columns.

    Args:
        trajectory: A played trajectory.
        score: Its rewards.
        advantage_K: Advantages of the trained turns.

    """
    verdicts = [verdicts_text(turn.result) for turn in trajectory.turns]
    rewards = ["none" if reward is None else f"{reward:.2f}" for reward in score.rewards_T]
    advantages = [f"{value:+.2f}" for value in advantage_K]
    facts = f"tests {' -> '.join(verdicts)}; reward {' -> '.join(rewards)}; advantage {', '.join(advantages)}"
    program = trajectory.turns[-1].code.splitlines() or ["(no program)"]
    shown = program[:MAX_LINES] + ["..."] * (len(program) > MAX_LINES)
    task = f"{trajectory.problem.task_id}: {trajectory.problem.text}"
    return "\n".join(
        [
            f"  {textwrap.shorten(task, WIDTH - 2, placeholder=' ...')}",
            *(f"  {line}" for line in textwrap.wrap(facts, WIDTH - 2)),
            *(_cut(f"  | {line}") for line in shown),
        ]
    )


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..."

r"""A reward of your own: tests that pass, less a little for a long program.

    cd examples
    cocos train --reward own_reward:passed_and_short --model_name_or_path MODEL --train_data problems.jsonl \
        --output_dir OUTPUT

The function gets a played trajectory and returns one number per turn. A turn has the program as `code`, the
completion as `completion.text`, and the verdicts as `result`; the problem is `trajectory.problem`.
"""

from cocos.trajectories import Trajectory

FREE_LINES = 10  # a longer program costs 0.01 per line, at most 0.2


def passed_and_short(trajectory: Trajectory) -> list[float | None]:
    """Return the share of passed tests of each turn, less up to 0.2; None where the executor failed."""
    rewards: list[float | None] = []
    for turn in trajectory.turns:
        verdicts = turn.result.verdicts
        if not verdicts:
            rewards.append(None)
            continue
        share = sum(verdict.passed and not verdict.in_child for verdict in verdicts) / len(verdicts)
        extra_lines = max(0, len(turn.code.splitlines()) - FREE_LINES)
        rewards.append(share - min(0.2, 0.01 * extra_lines))
    return rewards

"""A trajectory as one row of samples.jsonl: every turn's answer, verdicts, tokens, reward and time.

Knows no files: the entry points write the rows as they are finished.
"""

from dataclasses import asdict
from typing import Any

from cocos.rewards import turn_reward
from cocos.rollout import Trajectory, Turn


def as_row(trajectory: Trajectory) -> dict[str, Any]:
    """Plain values for JSON; `reward` is the share of tests passed, null where the executor itself failed."""
    return {
        "task_id": trajectory.problem.task_id,
        "sample": trajectory.sample,
        "text": trajectory.problem.text,
        "turns": [_turn(turn) for turn in trajectory.turns],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "completion": turn.completion.text,
        "code": turn.code,
        "reward": turn_reward(turn.result),
        "is_right": turn.result.all_passed,
        "verdicts": [asdict(verdict) for verdict in turn.result.verdicts],
        "infra_error": turn.result.infra_error,
        "isolation": turn.result.isolation,
        "num_prompt_tokens": len(turn.prompt_ids),
        "num_completion_tokens": len(turn.completion.token_ids),
        "is_truncated": turn.completion.is_truncated,
        "generation_s": round(turn.completion.duration_s, 4),
        "execution_s": round(turn.result.duration_s, 4),
    }

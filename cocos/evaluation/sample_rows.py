"""What is written beside and into results: a trajectory as a row of samples.jsonl, a run as run.json."""

from dataclasses import asdict
from typing import Any

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.metrics import error_type
from cocos.problems import Problem
from cocos.rewards import turn_reward
from cocos.trajectories import Trajectory, Turn


def trajectory_to_row(trajectory: Trajectory, **conditions: object) -> dict[str, Any]:
    """Plain values for JSON; `reward` is the share of tests passed, null where the executor itself failed.

    `tests` are the sources of the tests that the verdicts are about; those after the first
    `num_visible_tests` were never shown to the model. `error_type` is that of the first that did not pass.

    Args:
        conditions: What the row was made under and can only be compared under (see `EvalConfig.conditions`).

    """
    return {
        "task_id": trajectory.problem.task_id,
        "sample": trajectory.sample,
        **conditions,
        "text": trajectory.problem.text,
        "tests": list(trajectory.problem.scored_tests),
        "num_visible_tests": len(trajectory.problem.test_list),
        "turns": [_turn(turn) for turn in trajectory.turns],
    }


def trajectory_from_row(row: dict[str, Any], problem: Problem) -> Trajectory:
    """The trajectory of a row, but for its token ids: `trajectory_to_row` makes the same row of it again."""
    turns = []
    for turn in row["turns"]:
        verdicts = tuple(Verdict(**v | {"status": Status(v["status"])}) for v in turn["verdicts"])
        completion = Completion(
            (),
            turn["completion"],
            is_truncated=turn["is_truncated"],
            duration_s=turn["generation_s"],
            num_prompt_tokens=turn["num_prompt_tokens"],
            num_completion_tokens=turn["num_completion_tokens"],
        )
        result = ExecutionResult(verdicts, turn["infra_error"], turn["isolation"], turn["execution_s"])
        flags = {name: turn[name] for name in ("told", "is_given", "is_resampled", "is_carried")}
        turns.append(Turn((), completion, turn["code"], result, **flags))
    return Trajectory(problem, row["sample"], tuple(turns))


def _turn(turn: Turn) -> dict[str, Any]:
    completion = turn.completion
    num_prompt_tokens, num_completion_tokens = completion.num_prompt_tokens, completion.num_completion_tokens
    if num_prompt_tokens is None:
        num_prompt_tokens = len(turn.prompt_ids)
    if num_completion_tokens is None:
        num_completion_tokens = len(completion.token_ids)
    return {
        "told": turn.told,
        "completion": completion.text,
        "code": turn.code,
        "reward": turn_reward(turn.result),
        "is_right": turn.result.all_passed,
        "is_given": turn.is_given,
        "is_carried": turn.is_carried,
        "is_resampled": turn.is_resampled,
        "error_type": error_type(turn.result),
        "verdicts": [asdict(verdict) for verdict in turn.result.verdicts],
        "infra_error": turn.result.infra_error,
        "isolation": turn.result.isolation,
        "num_prompt_tokens": num_prompt_tokens,
        "num_completion_tokens": num_completion_tokens,
        "is_truncated": completion.is_truncated,
        "generation_s": round(completion.duration_s, 4),
        "execution_s": round(turn.result.duration_s, 4),
    }

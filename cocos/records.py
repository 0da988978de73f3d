"""What is written beside and into results: a trajectory as a row of samples.jsonl, a run as run.json."""

import importlib.metadata
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cocos.metrics import error_type
from cocos.rewards import turn_reward
from cocos.rollout import Trajectory, Turn

PACKAGES = ("torch", "transformers", "trl", "accelerate", "peft", "datasets", "deepspeed", "wandb")


def as_row(trajectory: Trajectory) -> dict[str, Any]:
    """Plain values for JSON; `reward` is the share of tests passed, null where the executor itself failed.

    `tests` are the sources of the tests that the verdicts are about; those after the first
    `num_visible_tests` were never shown to the model. `error_type` is that of the first that did not pass.
    """
    return {
        "task_id": trajectory.problem.task_id,
        "sample": trajectory.sample,
        "text": trajectory.problem.text,
        "tests": list(trajectory.problem.scored_tests),
        "num_visible_tests": len(trajectory.problem.test_list),
        "turns": [_turn(turn) for turn in trajectory.turns],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "completion": turn.completion.text,
        "code": turn.code,
        "reward": turn_reward(turn.result),
        "is_right": turn.result.all_passed,
        "error_type": error_type(turn.result),
        "verdicts": [asdict(verdict) for verdict in turn.result.verdicts],
        "infra_error": turn.result.infra_error,
        "isolation": turn.result.isolation,
        "num_prompt_tokens": len(turn.prompt_ids),
        "num_completion_tokens": len(turn.completion.token_ids),
        "is_truncated": turn.completion.is_truncated,
        "generation_s": round(turn.completion.duration_s, 4),
        "execution_s": round(turn.result.duration_s, 4),
    }


def resolved(*configs: Any, **facts: object) -> dict[str, object]:
    """What a result was made with: options, versions, and further facts (data sha256, isolation level)."""
    options: dict[str, object] = {}
    for config in configs:
        options |= config.to_dict() if hasattr(config, "to_dict") else asdict(config)
    versions = {name: importlib.metadata.version(name) for name in PACKAGES if _installed(name)}
    return {"options": options, "versions": versions | {"python": sys.version.split()[0]}, **facts}


def save_json(value: object, path: str | Path) -> None:
    """Write JSON for people: indented, NaN refused, everything else as text."""
    Path(path).write_text(json.dumps(value, indent=2, default=str, allow_nan=False) + "\n", encoding="utf-8")


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

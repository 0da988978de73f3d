"""Tables of sampled trajectories with their rewards and advantages, for wandb and TensorBoard.

A run writes at most MAX_TABLES tables of MAX_ROWS trajectories each, however long it is.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformers import TrainerCallback
from transformers.integrations import TensorBoardCallback

from cocos.rewards import Score
from cocos.training.monitor import verdicts_text
from cocos.trajectories import Trajectory

MAX_TABLES = 50  # of a run
MAX_ROWS = 16  # trajectories of a table, whole groups first
NAME = "completions"


def sample_table(
    trajectories: Sequence[Trajectory],
    prompts: Sequence[str],
    scores: Sequence[Score],
    advantages_B_K: Sequence[Sequence[float]],
    turns: Sequence[int],
) -> list[dict[str, Any]]:
    """Return a row per trajectory: prompt, texts of its turns, rewards, verdicts and advantages.

    Args:
        trajectories: Played trajectories.
        prompts: The message of turn 1 of each.
        scores: Their rewards. A reward is None where the executor failed.
        advantages_B_K: Their advantages.
        turns: Numbers of the trained turns, from 1.

    """
    return [
        {
            "prompt": prompt,
            "completion": "\n".join(_turn_texts(trajectory)),
            **{f"reward_t{t + 1}": reward for t, reward in enumerate(score.rewards_T)},
            **{
                f"verdicts_t{t}": verdicts_text(turn.result)
                for t, turn in enumerate(trajectory.turns, start=1)
            },
            **{f"advantage_t{turn}": a for turn, a in zip(turns, advantage_K, strict=True)},
        }
        for trajectory, prompt, score, advantage_K in zip(
            trajectories, prompts, scores, advantages_B_K, strict=True
        )
    ]


def table_markdown(table: Iterable[Mapping[str, Any]]) -> str:
    """Return a table as Markdown: per trajectory a line of its numbers, and its text as a block of code."""
    parts = []
    for row in table:
        texts = (row["prompt"], row["completion"])
        numbers = [
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in row.items()
            if name not in ("prompt", "completion")
        ]
        block = "\n".join(f"    {line}" for text in texts for line in text.splitlines())
        parts.append(f"{', '.join(numbers)}\n\n{block}")
    return "\n\n---\n\n".join(parts)


class SampleTables(TrainerCallback):
    """Writer of the trainer's last table, at equal distances over the run.

    Args:
        trainer: The trainer; its `last_table` is written.

    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        distance = math.ceil(state.max_steps / MAX_TABLES)
        if not state.is_world_process_zero or "loss" not in (logs or {}) or state.global_step % distance:
            return
        table = self._trainer.last_table
        if "wandb" in args.report_to:
            import wandb  # takes a second

            shown = wandb.Table(columns=list(table[0]), data=[list(row.values()) for row in table])
            wandb.log({NAME: shown, "train/global_step": state.global_step})
        for callback in self._trainer.callback_handler.callbacks:
            if isinstance(callback, TensorBoardCallback):
                callback.tb_writer.add_text(NAME, table_markdown(table), state.global_step)


def _turn_texts(trajectory: Trajectory) -> list[str]:
    """Return the feedback and the answer in each turn that was played."""
    played = [turn for turn in trajectory.turns if not turn.is_carried]
    return [text for turn in played for text in (turn.feedback, turn.completion.text) if text]

"""Progress of a training run in the terminal: one line per log entry, and examples of trajectories.

Loggers receive all metrics.
"""

import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from cocos.rewards import Score
from cocos.training.monitor import verdicts_text
from cocos.trajectories import Trajectory

SHOWN = ("reward_t", "acc_t", "i2c_t", "c2i_t")
SHOWN_OTHERWISE = ("loss", "mean_token_accuracy")  # for supervised training, which has no turns
WIDTH = 96  # columns of an example, for a terminal of 100
MAX_LINES = 12  # lines of an example's program


def show_lines(trainer: Trainer) -> None:
    """Print one line per log entry, above a progress bar if the terminal can show one."""
    has_bar = not trainer.args.disable_tqdm and sys.stderr.isatty()
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(LineWithBar() if has_bar else LineCallback())


class LineCallback(PrinterCallback):
    """Lines with the most important metrics, without a progress bar."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Print the line on the main process."""
        if state.is_world_process_zero and (line := format_line(logs or {})):
            self.write(f"step {state.global_step:>4} {line}")

    def write(self, line: str) -> None:
        """Print a line."""
        print(line, flush=True)


class LineWithBar(LineCallback, ProgressCallback):
    """Progress bar with the most important metrics printed above it."""

    def write(self, line: str) -> None:
        """Print a line above the bar."""
        if self.training_bar is not None:
            self.training_bar.write(line)


def format_line(logs: dict[str, Any]) -> str:
    """Return the shown metrics as `name=value`, with `dev` in front for an evaluation; "" for no metrics."""
    is_dev = any(key.startswith("eval_") for key in logs)
    numbers = {key.removeprefix("eval_"): v for key, v in logs.items() if isinstance(v, (int, float))}
    shown = {k: v for k, v in numbers.items() if k.startswith(SHOWN)} or {
        k: v for k, v in numbers.items() if k in SHOWN_OTHERWISE
    }
    return ("dev " if is_dev and shown else "") + " ".join(f"{k}={v:.3f}" for k, v in shown.items())


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

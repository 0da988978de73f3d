"""Progress of a training run in the terminal: one line per log entry. Loggers receive all metrics."""

import sys
from typing import Any

from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

SHOWN = ("reward_t", "acc_t", "i2c_t", "c2i_t")
SHOWN_OTHERWISE = ("loss", "mean_token_accuracy")  # for supervised training, which has no turns


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
            print(f"step {state.global_step:>4}  {line}", flush=True)


class LineWithBar(ProgressCallback):
    """Progress bar with the most important metrics printed above it."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Print the line above the bar; only the main process has a bar."""
        line = format_line(logs or {})
        if line and self.training_bar is not None:
            self.training_bar.write(f"step {state.global_step:>4}  {line}")


def format_line(logs: dict[str, Any]) -> str:
    """Return the shown metrics as `name value`, with `dev` in front for an evaluation; "" for no metrics."""
    is_dev = any(key.startswith("eval_") for key in logs)
    numbers = {key.removeprefix("eval_"): v for key, v in logs.items() if isinstance(v, (int, float))}
    shown = {k: v for k, v in numbers.items() if k.startswith(SHOWN)} or {
        k: v for k, v in numbers.items() if k in SHOWN_OTHERWISE
    }
    return ("dev  " if is_dev and shown else "") + "  ".join(f"{k} {v:.3f}" for k, v in shown.items())

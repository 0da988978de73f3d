"""Progress of a training run in the terminal: one line per log entry. Loggers receive all metrics."""

from typing import Any

from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ProgressCallback

SHOWN = ("reward_t", "acc_t", "i2c_t", "c2i_t")
SHOWN_OTHERWISE = ("loss", "mean_token_accuracy")  # for supervised training, which has no turns


def show_lines(trainer: Trainer) -> None:
    """Print one line per log entry above the progress bar, unless progress bars are off."""
    if not trainer.args.disable_tqdm:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(LineCallback())


class LineCallback(ProgressCallback):
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

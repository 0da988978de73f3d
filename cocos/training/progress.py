"""Training as one readable line per log; the full record goes to the loggers and to trainer_state.json."""

from typing import Any

from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ProgressCallback

SHOWN = ("reward_t", "acc_t", "i2c_t", "c2i_t")
SHOWN_OTHERWISE = ("loss", "mean_token_accuracy")  # supervised training has no turns


def show_lines(trainer: Trainer) -> None:
    """Print lines above the progress bar in place of dictionaries; nothing changes where bars are off."""
    if not trainer.args.disable_tqdm:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(LineCallback())


class LineCallback(ProgressCallback):
    """A progress bar, and above it the metrics that a person follows."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the line above the bar, on the main process."""
        line = format_line(logs or {})
        if line and self.training_bar is not None:
            self.training_bar.write(f"step {state.global_step:>4}  {line}")


def format_line(logs: dict[str, Any]) -> str:
    """The shown metrics of one log as `name value`, evaluation marked by `dev`; "" where there are none."""
    is_dev = any(key.startswith("eval_") for key in logs)
    numbers = {key.removeprefix("eval_"): v for key, v in logs.items() if isinstance(v, (int, float))}
    shown = {k: v for k, v in numbers.items() if k.startswith(SHOWN)} or {
        k: v for k, v in numbers.items() if k in SHOWN_OTHERWISE
    }
    return ("dev  " if is_dev and shown else "") + "  ".join(f"{k} {v:.3f}" for k, v in shown.items())

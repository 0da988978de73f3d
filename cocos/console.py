"""Training as one readable line per log; the full record goes to the loggers and to trainer_state.json."""

from typing import Any

from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ProgressCallback

SHOWN = ("loss", "kl", "reward_t", "acc_t", "delta_t", "i2c_t", "c2i_t", "truncated_t")


class LineCallback(ProgressCallback):
    """Replaces the dictionary that transformers prints by the metrics that a person follows."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the line above the bar, on the main process."""
        if (
            state.is_world_process_zero
            and self.training_bar is not None
            and (line := format_line(logs or {}))
        ):
            self.training_bar.write(f"step {state.global_step:>4}  {line}")


def format_line(logs: dict[str, Any]) -> str:
    """The shown metrics of one log as `name value`, evaluation marked by `dev`; "" where there are none."""
    is_dev = any(key.startswith("eval_") for key in logs)
    values = {key.removeprefix("eval_"): value for key, value in logs.items()}
    shown = [f"{k} {v:.3f}" for k, v in values.items() if k.startswith(SHOWN) and isinstance(v, (int, float))]
    return ("dev  " if is_dev and shown else "") + "  ".join(shown)

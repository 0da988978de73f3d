"""Warning about a training that has collapsed."""

import logging
from typing import Any

from transformers import TrainerCallback

logger = logging.getLogger(__name__)

COLLAPSED_SHARE, COLLAPSED_EVALUATIONS = 0.5, 2  # of the best dev accuracy; evaluations in a row
NO_ENTROPY, COLLAPSED_LOGS = 1e-3, 10  # nats a token; log entries in a row


class CollapseWarning(TrainerCallback):
    """Warning about a training that has collapsed. The end of the run and the model card repeat it.

    A training has collapsed if the dev accuracy of the last turn is below half of its best value in two
    evaluations in a row; or if, in ten log entries in a row, the policy has hardly any entropy, or every
    program repeats the one before it although some did not earlier in the run.

    Args:
        trainer: The trainer; its `collapsed` is set.

    """

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self._in_a_row = {"low": 0, "certain": 0, "repeating": 0}  # evaluations, and log entries
        self._has_varied = False

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save in a checkpoint, as plain values."""
        return self._in_a_row | {"has_varied": self._has_varied, "collapsed": self.trainer.collapsed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._in_a_row = {name: state[name] for name in self._in_a_row}
        self._has_varied, self.trainer.collapsed = state["has_varied"], state["collapsed"]

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any
    ) -> None:
        name = args.metric_for_best_model
        value, best = metrics.get(name), state.best_metric
        if value is not None and best is not None:
            short = name.removeprefix("eval_")
            reason = f"dev {short} is {value:.3f}, below half of its best value {best:.3f}"
            self._count("low", value < COLLAPSED_SHARE * best, COLLAPSED_EVALUATIONS, reason)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **kwargs: Any) -> None:
        if "loss" not in logs or "entropy" not in logs:
            return
        repeats = [v for name, v in logs.items() if name.startswith("repeated_t") and v is not None]
        is_repeating = bool(repeats) and min(repeats) == 1.0
        self._has_varied |= bool(repeats) and not is_repeating
        reason = f"the policy's entropy is {logs['entropy']:.2g} nats a token"
        self._count("certain", logs["entropy"] < NO_ENTROPY, COLLAPSED_LOGS, reason)
        reason = "every program repeats the one before it"
        self._count("repeating", is_repeating and self._has_varied, COLLAPSED_LOGS, reason)

    def _count(self, name: str, is_seen: bool, most: int, reason: str) -> None:
        """Count how often something was seen in a row; warn, once in a run, when that is often enough."""
        self._in_a_row[name] = self._in_a_row[name] + 1 if is_seen else 0
        if self._in_a_row[name] >= most and not self.trainer.collapsed:
            step = self.trainer.state.global_step
            self.trainer.collapsed = f"the training has collapsed at update {step}: {reason}"
            logger.warning(f"{self.trainer.collapsed}; stop the run, or lower --learning_rate")

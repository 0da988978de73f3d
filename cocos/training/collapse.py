"""Warning about a training that has collapsed."""

import logging
from typing import Any

from transformers import TrainerCallback, TrainerState

logger = logging.getLogger(__name__)

COLLAPSED_SHARE, COLLAPSED_EVALUATIONS = 0.5, 2  # of the best dev accuracy; evaluations in a row
NO_ENTROPY, COLLAPSED_LOGS = 1e-3, 10  # nats a token; log entries in a row


class CollapseWarning(TrainerCallback):
    """Warning about a training that has collapsed. The end of the run and the model card repeat it.

    Args:
        trainer: The trainer; its `collapsed` is set.

    """

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        if not self.trainer.collapsed and (reason := collapse(state, str(args.metric_for_best_model))):
            self.trainer.collapsed = f"the training has collapsed at update {state.global_step}: {reason}"
            logger.warning(f"{self.trainer.collapsed}; stop the run, or lower --learning_rate")


def collapse(state: TrainerState, metric: str) -> str:
    """Return what shows, in the log entries so far, that the training has collapsed; "" if nothing does.

    The dev accuracy of the last turn is below half of its best value in two evaluations in a row; or, in ten
    log entries in a row, the policy has hardly any entropy, or every program repeats the one before it
    although some did not earlier in the run.
    """
    dev = [log[metric] for log in state.log_history if metric in log][-COLLAPSED_EVALUATIONS:]
    updates = [log for log in state.log_history if "loss" in log and "entropy" in log]
    entropies = [log["entropy"] for log in updates][-COLLAPSED_LOGS:]
    shares = [[v for name, v in log.items() if name.startswith("repeated_t")] for log in updates]
    repeated = [min(of_turns) for of_turns in shares if of_turns]
    best = state.best_metric
    if best is not None and len(dev) == COLLAPSED_EVALUATIONS and max(dev) < COLLAPSED_SHARE * best:
        return f"dev {metric.removeprefix('eval_')} is {dev[-1]:.3f}, below half of its best value {best:.3f}"
    if len(entropies) == COLLAPSED_LOGS and max(entropies) < NO_ENTROPY:
        return f"the policy's entropy is {entropies[-1]:.2g} nats a token"
    if len(repeated) > COLLAPSED_LOGS and min(repeated) < 1.0 == min(repeated[-COLLAPSED_LOGS:]):
        return "every program repeats the one before it"
    return ""

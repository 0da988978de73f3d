"""Callbacks of a training run: first and last updates, update times, counters of checkpoints, collapse."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState

from cocos.executor import Executor
from cocos.training.monitor import PhaseTimer, RunWarnings

logger = logging.getLogger(__name__)

NUM_FIRST_UPDATES = 5
COLLAPSED_SHARE, COLLAPSED_EVALUATIONS = 0.5, 2  # of the best dev accuracy; evaluations in a row
NO_ENTROPY, COLLAPSED_LOGS = 1e-3, 10  # nats a token; log entries in a row


class FirstUpdates(TrainerCallback):
    """Log entries of the first updates whatever logging_steps is, so that a fault is seen early."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if state.global_step <= NUM_FIRST_UPDATES:
            control.should_log = True
        return control


class LastStep(TrainerCallback):
    """Evaluation and checkpoint at the last step, so that the last weights can be the best checkpoint."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if state.global_step >= state.max_steps:
            control.should_evaluate = args.eval_strategy != "no"
            control.should_save = args.save_strategy != "no"
        return control


class Clock(TrainerCallback):
    """Time that an update takes, evaluations and checkpoints included, and that the run still takes."""

    def __init__(self) -> None:
        self._start_s, self._first_step = time.perf_counter(), 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._start_s, self._first_step = time.perf_counter(), state.global_step

    def metrics(self, state: TrainerState) -> dict[str, float]:
        """Return the mean seconds per update of this process so far, and the seconds left at that rate."""
        if (done := state.global_step - self._first_step) < 1:
            return {}
        each_s = (time.perf_counter() - self._start_s) / done
        return {"time/each_s": each_s, "time/left_s": each_s * (state.max_steps - state.global_step)}


class SaveByTime(TrainerCallback):
    """Checkpoint after the update at which the last one is older than a number of minutes.

    Args:
        minutes: Longest time between checkpoints.

    """

    def __init__(self, minutes: float) -> None:
        self._seconds = 60 * minutes
        self._saved_s = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._saved_s = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        # The clocks of the ranks differ, but all of them save or none does.
        if any(gather_object([time.monotonic() - self._saved_s >= self._seconds])):
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._saved_s = time.monotonic()


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
        self, args: Any, state: Any, control: Any, metrics: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        name = args.metric_for_best_model
        value, best = (metrics or {}).get(name), state.best_metric
        if value is not None and best is not None:
            short = name.removeprefix("eval_")
            reason = f"dev {short} is {value:.3f}, below half of its best value {best:.3f}"
            self._count("low", value < COLLAPSED_SHARE * best, COLLAPSED_EVALUATIONS, reason)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        logs = logs or {}
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


class UpdateTime(TrainerCallback):
    """Logger of the seconds that an update spends on the loss, the backward pass and the optimizer."""

    def __init__(self, timer: PhaseTimer, record: Callable[[dict[str, float]], None]):
        self.timer = timer
        self.record = record

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.timer.begin_update()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.record({"time/update_s": self.timer.end_update()})


class RunCounters(TrainerCallback, ExportableState):
    """State that transformers does not save: micro-steps, warnings, collapse, executor, draw, sampled tokens.

    transformers writes `state()` of an ExportableState to trainer_state.json and reads it back on resume.
    """

    def __init__(self, trainer: Any, run_warnings: RunWarnings, executor: Executor):
        self.trainer = trainer
        self.run_warnings = run_warnings
        self.executor = executor

    def state(self) -> dict[str, dict]:
        counters = {
            "warnings": self.run_warnings.state_dict(),
            "collapse": self.trainer.collapse.state_dict(),
            "executor": asdict(self.executor.stats),
            "draw": self.trainer.player.draw.num_played,
            "sampled_tokens": self.trainer.num_sampled_tokens,
        }
        return {"args": {}, "attributes": counters}

    def restore(self, state: dict[str, dict]) -> None:
        """Restore what `state` has returned."""
        counters = state["attributes"]
        self.run_warnings.load_state_dict(counters["warnings"])
        self.trainer.collapse.load_state_dict(counters["collapse"])
        self.trainer.player.draw.num_played = counters["draw"]
        self.trainer.num_sampled_tokens = counters["sampled_tokens"]
        vars(self.executor.stats).update(counters["executor"])

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        counters = state.stateful_callbacks[type(self).__name__]
        if not state.is_world_process_zero:  # a checkpoint has the statistics of the first rank's executor
            counters["attributes"]["executor"] = {}
        self.restore(counters)
        # TRL generates at every n-th micro-step, but its own counter starts at 0 in a resumed run.
        self.trainer._step = state.global_step * args.gradient_accumulation_steps

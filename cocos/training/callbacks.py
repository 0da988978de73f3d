"""Callbacks of a training run: first and last updates, update times, counters of checkpoints."""

import time
from dataclasses import asdict
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import ExportableState

from cocos.executor import Executor

NUM_FIRST_UPDATES = 5


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


class RunCounters(TrainerCallback, ExportableState):
    """State that transformers does not save: micro-steps, warnings, collapse, executor, draw, sampled tokens.

    transformers writes `state()` of an ExportableState to trainer_state.json and reads it back on resume.
    """

    def __init__(self, trainer: Any, executor: Executor):
        self.trainer = trainer
        self.executor = executor

    def state(self) -> dict[str, dict]:
        counters = {
            "warnings": self.trainer.run_warnings.state_dict(),
            "collapsed": self.trainer.collapsed,
            "executor": asdict(self.executor.stats),
            "draw": self.trainer.player.draw.num_played,
            "sampled_tokens": self.trainer.num_sampled_tokens,
        }
        return {"args": {}, "attributes": counters}

    def restore(self, state: dict[str, dict]) -> None:
        """Restore what `state` has returned."""
        counters = state["attributes"]
        self.trainer.run_warnings.load_state_dict(counters["warnings"])
        self.trainer.collapsed = counters.get("collapsed", "")  # not in checkpoints before 1.2
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

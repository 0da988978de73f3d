"""Callbacks of a training run: first and last updates, update times, and counters for checkpoints."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from cocos.executor import Executor
from cocos.training.monitor import PhaseTimer, RunWarnings

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
    """State that transformers does not save: micro-steps, warnings, executor, problem draw, sampled tokens.

    transformers writes `state()` of an ExportableState to trainer_state.json and reads it back on resume.
    """

    def __init__(self, trainer: Any, run_warnings: RunWarnings, executor: Executor):
        self.trainer = trainer
        self.run_warnings = run_warnings
        self.executor = executor

    def state(self) -> dict[str, dict]:
        counters = {
            "warnings": self.run_warnings.state_dict(),
            "executor": asdict(self.executor.stats),
            "draw": self.trainer.draw.state_dict(),
            "sampled_tokens": self.trainer.num_sampled_tokens,
        }
        return {"args": {}, "attributes": counters}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        counters = state.stateful_callbacks[type(self).__name__]["attributes"]
        self.run_warnings.load_state_dict(counters["warnings"])
        self.trainer.draw.load_state_dict(counters["draw"])
        self.trainer.num_sampled_tokens = counters["sampled_tokens"]
        if state.is_world_process_zero:  # the checkpoint contains the statistics of this rank's executor only
            vars(self.executor.stats).update(counters["executor"])
        # TRL generates at every n-th micro-step, but its own counter starts at 0 in a resumed run.
        self.trainer._step = state.global_step * args.gradient_accumulation_steps

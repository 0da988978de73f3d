"""Signals to a training run: Ctrl-C, SIGTERM and SIGHUP save a checkpoint and end it on all ranks."""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState

from cocos.config.ranks import is_launched
from cocos.files.durable import LOCK_FILE
from cocos.training.callbacks import RunCounters

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
SAME_CTRL_C_S = 2.0  # torchrun forwards the Ctrl-C that its ranks have already received from the terminal


class LastUpdate:
    """Random state and counters of this rank after the last update, without those of the next one.

    The weights need no copy, because they change only at the end of an update.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._random = random.getstate(), np.random.get_state(), torch.get_rng_state()
        self._random_cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        self._tokens_seen, self._flos = trainer.state.num_input_tokens_seen, trainer.current_flos
        callbacks = trainer.callback_handler.callbacks
        self._counters = [(one, one.state()) for one in callbacks if isinstance(one, RunCounters)]

    def restore(self) -> None:
        """Undo what an unfinished update has drawn and counted."""
        of_python, of_numpy, of_torch = self._random
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch.set_rng_state(of_torch)
        if self._random_cuda:
            torch.cuda.set_rng_state_all(self._random_cuda)
        self._trainer.state.num_input_tokens_seen = self._tokens_seen
        self._trainer.current_flos = self._flos
        for callback, state in self._counters:
            callback.restore(state)


class StopOnSignal(TrainerCallback):
    """Handler of Ctrl-C, SIGTERM and SIGHUP: all ranks stop sampling, or end the micro-batch, save and exit.

    An update may take minutes, longer than a cluster waits before it kills. So the checkpoint is that of the
    last whole update; samples and micro-batches of the next one are made again when the run continues.

    The exit status is that of a shell for a process killed by the signal: 130 for Ctrl-C, 143 for SIGTERM.

    Args:
        trainer: The trainer.

    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._last: LastUpdate | None = None  # None: this process has made no update yet
        self._saved_step = -1  # of the last checkpoint of this process
        self._received = 0  # number of the first signal; 0: none
        self._received_s = 0.0  # when it came, on the monotonic clock
        self._stopping_signal = 0  # the same for all ranks
        self._is_main = False
        self._lock = Path()
        self._pid = os.getpid()
        self._previous: dict[int, Any] = {}

    @property
    def has_signal(self) -> bool:
        """True if a signal has reached this rank."""
        return self._received != 0

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        self._is_main = state.is_world_process_zero
        self._lock = Path(str(args.output_dir)) / LOCK_FILE
        self._previous = {number: signal.signal(number, self._handle) for number in SIGNALS}

    def on_substep_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        if not self._is_signalled(state):
            return
        control.should_training_stop = True
        if self._last is not None and self._saved_step != state.global_step:
            self._last.restore()
            control.should_save = True

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        self._end_update(state, control)

    def on_evaluate(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        self._end_update(state, control)  # an evaluation may take as long as many updates

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        self._saved_step = state.global_step

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
        if not self._stopping_signal:
            return
        if self._is_main:
            has_saved = self._saved_step == state.global_step
            how = "continue with --resume_from_checkpoint last" if has_saved else "start it again as before"
            print(
                f"stopped by {SIGNALS[signal.Signals(self._stopping_signal)]} after update "
                f"{state.global_step} of {state.max_steps}; {how}",
                file=sys.stderr,
                flush=True,
            )
        PartialState().wait_for_everyone()  # launchers kill the other ranks as soon as one has exited
        raise SystemExit(128 + self._stopping_signal)

    def _end_update(self, state: TrainerState, control: TrainerControl) -> None:
        self._last = LastUpdate(self._trainer)
        if self._is_signalled(state):
            control.should_save = control.should_training_stop = True

    def _is_signalled(self, state: TrainerState) -> bool:
        """Return whether a signal ends the run, the same on all ranks."""
        if state.global_step >= state.max_steps or not self._previous:
            return False  # the run ends anyway, or is not training
        # Signals reach the ranks at different times, but all ranks must stop after the same micro-batch.
        self._stopping_signal = max(gather_object([self._received]))
        return self._stopping_signal != 0

    def _handle(self, number: int, frame: Any) -> None:
        if os.getpid() != self._pid:
            return  # a data loader's worker inherits the handler, and the main process ends it
        if not self._received:
            self._received, self._received_s = number, time.monotonic()
            if number == signal.SIGINT:
                self._say("stopping and saving a checkpoint; Ctrl-C again stops at once")
        elif number == signal.SIGINT:
            if is_launched() and time.monotonic() - self._received_s < SAME_CTRL_C_S:
                return
            self._say("stopped at once; updates since the last checkpoint are lost")
            if self._is_main:
                self._lock.unlink(missing_ok=True)
            # Not an exception: the main thread may be anywhere, also in code that catches everything.
            # Executor workers end with this process.
            os._exit(128 + number)

    def _say(self, line: str) -> None:
        """Write a line to stderr below the progress bar; print() is not safe in a signal handler."""
        if self._is_main:
            os.write(sys.stderr.fileno(), f"\n{line}\n".encode())

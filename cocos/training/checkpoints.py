"""Stopping and resuming: which checkpoint a run continues from, what it meets there, how it stops when asked.

A checkpoint is whole once its trainer_state.json is there: transformers writes that file last, and
`ResumableTrainer` sees to it that no rank is still writing then. Does not know what is trained.
"""

import json
import logging
import shutil
import signal
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import gather_object
from safetensors import SafetensorError, safe_open
from torch.utils.data import Sampler
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from trl.trainer.utils import RepeatSampler

logger = logging.getLogger(__name__)

STOPPED = 128 + signal.SIGTERM  # the exit status that a shell gives a process ended by this signal


def resume_point(wanted: str | None, output_dir: str) -> str | None:
    """The checkpoint that a run continues from.

    Args:
        wanted: `last` (or, as transformers has it, `True`) for the newest whole checkpoint of `output_dir`;
            else the path of one; None starts at step 0.

    Raises:
        ValueError: There is none, or the one that was named is not whole.

    """
    if wanted is None or wanted.lower() == "false":
        return None
    if wanted.lower() not in ("last", "true"):
        if fault := _fault(Path(wanted)):
            raise ValueError(f"--resume_from_checkpoint {wanted}: {fault}; name another one, or `last`")
        return wanted
    checkpoints = [path for path in Path(output_dir).glob("checkpoint-*") if path.name[11:].isdigit()]
    faults = []
    for checkpoint in sorted(checkpoints, key=lambda path: int(path.name[11:]), reverse=True):
        fault = _fault(checkpoint)
        if fault is None:
            return str(checkpoint)
        logger.warning(f"{checkpoint} is passed over: {fault}")
        faults.append(f" ({checkpoint.name}: {fault})")
    raise ValueError(
        f"--resume_from_checkpoint {wanted}: no whole checkpoint in {output_dir}{''.join(faults)}; "
        f"leave the option out to start at step 0"
    )


def _fault(checkpoint: Path) -> str | None:
    """What keeps a run from continuing from a checkpoint; None where nothing does. Reads no weights."""
    if not checkpoint.is_dir():
        return "no such folder"
    try:
        json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"it has no {TRAINER_STATE_NAME}, so it was never finished"
    except ValueError:
        return f"{TRAINER_STATE_NAME} is damaged"
    if not any(path.name.startswith(("optimizer", "global_step")) for path in checkpoint.iterdir()):
        return "it holds weights without the optimizer's state (--save_only_model?)"
    for path in sorted(checkpoint.rglob("*")):
        if path.suffix in (".pt", ".pth", ".bin") and not zipfile.is_zipfile(path):
            return f"{path.relative_to(checkpoint)} is damaged"
        if path.suffix == ".safetensors":
            try:
                with safe_open(path, "pt"):
                    pass
            except (SafetensorError, OSError):
                return f"{path.relative_to(checkpoint)} is damaged"
    return None


class ResumableTrainer(Trainer):
    """A Trainer whose checkpoints are whole once they have a trainer_state.json, and which trains nothing
    when a finished run is resumed.
    """

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """An unfinished checkpoint of the same step, or one of an earlier run, lends nothing to the new."""
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial)) / f"checkpoint-{self.state.global_step}"
            shutil.rmtree(folder, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        super()._save_checkpoint(model, trial)

    def _save_rng_state(self, output_dir: str) -> None:
        """The last part that every rank writes: trainer_state.json comes after all of them."""
        super()._save_rng_state(output_dir)
        self.accelerator.wait_for_everyone()

    def _run_epoch(self, **epoch: Any) -> None:
        """The parent looks at max_steps only after an update: a finished run would take one more."""
        if self.state.global_step < self.state.max_steps:
            super()._run_epoch(**epoch)


class EpochSampler(Sampler):
    """A RepeatSampler that draws epoch e from seed + e; on its own it would start over when resumed."""

    def __init__(self, sampler: RepeatSampler, epoch: Callable[[], int]) -> None:
        self.sampler = sampler
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(self.sampler.seed + self.epoch())
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class LastStepCounts(TrainerCallback):
    """Evaluate and save at the last step too, so that the best checkpoint is chosen among all that were
    trained.
    """

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if state.global_step >= state.max_steps:
            control.should_evaluate = args.eval_strategy != "no"
            control.should_save = args.save_strategy != "no"
        return control


class StopOnSigterm(TrainerCallback):
    """A job that is taken away ends with a checkpoint: on SIGTERM to any rank, all finish the update, save,
    and end with status 143.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._stops = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        signal.signal(signal.SIGTERM, self._note)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # Signals reach the ranks at different times; all must stop after the same update.
        if any(gather_object([self._is_asked])) and state.global_step < state.max_steps:
            self._stops = control.should_save = control.should_training_stop = True

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if not self._stops:
            return
        if state.is_world_process_zero:
            print(
                f"stopped by SIGTERM after update {state.global_step} of {state.max_steps}; continue with "
                f"--resume_from_checkpoint last",
                file=sys.stderr,
                flush=True,
            )
        PartialState().wait_for_everyone()  # a launcher ends the other ranks as soon as one has ended
        raise SystemExit(STOPPED)

    def _note(self, number: int, frame: Any) -> None:
        self._is_asked = True

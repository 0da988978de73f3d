"""Trainer whose runs can be stopped and resumed exactly, and whose saved models can be used elsewhere.

Does not know what is trained. `run_training` is the part of a training command after its inputs are loaded.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from accelerate.utils import gather_object
from huggingface_hub.errors import HfHubHTTPError
from transformers import Trainer, TrainerControl
from transformers.utils.logging import disable_progress_bar

from cocos.config.schedule import new_schedule, rate_before
from cocos.config.trl_configs import HALF_WEIGHTS
from cocos.files.durable import FolderLock, save_json
from cocos.files.output_folder import check_training_folder, run_kind
from cocos.generation import GenerationStopped
from cocos.training.callbacks import Clock, FirstUpdates, SaveByTime
from cocos.training.changes import (
    accepted_changes,
    all_changes,
    apply_options,
    change_evaluation,
    group_options,
)
from cocos.training.checkpoints import (
    checkpoint_fault,
    evaluation_at,
    faults_named,
    follow_umask,
    save_generation_config,
    saved_step,
    wins_tie,
    write_checksums,
)
from cocos.training.console import StartLines, end_lines, show_lines
from cocos.training.model_card import ModelCard
from cocos.training.monitor import peak_memory_mb
from cocos.training.run_log import RunLog, start_wandb_run
from cocos.training.signals import StopOnSignal


class BatchRecord(NamedTuple):
    """Texts that log and console keep of a batch of all ranks."""

    examples: Sequence[str] = ()  # some trajectories as text, for the log
    shown: Sequence[str] = ()  # trajectories as text, for the console


class ResumableTrainer(Trainer):
    """Trainer with crash-safe checkpoints. A finished run that is resumed makes no further update.

    Attributes:
        card: Model card of every folder that is saved; None: no card.
        last_batch: What the log keeps of the last batch.
        clock: Measures the time that the run still takes.
        collapsed: What has shown that the training has collapsed; "": nothing has.
        stop_on_signal: Ends the run on Ctrl-C, SIGTERM and SIGHUP; None before the run.
        has_other_evaluation: The evaluations of the run that is continued are not comparable with this one's.

    """

    card: ModelCard | None = None
    last_batch: BatchRecord = BatchRecord()
    clock: Clock | None = None
    collapsed: str = ""
    stop_on_signal: StopOnSignal | None = None
    has_other_evaluation: bool = False
    control: TrainerControl
    lr_scheduler: Any

    def remarks(self) -> list[str]:
        """Return what a finished run says about itself, one line each."""
        return [self.collapsed] if self.collapsed else []

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics, those of updates with the memory they took and the time that the run still takes."""
        if "loss" in logs or "train_runtime" in logs:  # an entry of updates, or the last one of the run
            logs["peak_memory_mb"] = peak_memory_mb()
        if "loss" in logs and self.clock:
            logs |= self.clock.metrics(self.state)
        super().log(logs, start_time)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model so that plain transformers can use it, with its card and the usual permissions."""
        super().save_model(output_dir, _internal_call=True)  # uploads nothing yet: files are missing
        if self.args.should_save:
            self._complete(output_dir)
        if self.args.push_to_hub and not _internal_call:
            self.push_to_hub(commit_message="Model save", revision=self.args.hub_revision)

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Upload the saved model; if that fails, say where the model is and how to upload it later."""
        try:
            return super().push_to_hub(commit_message, blocking, token, revision, private, **kwargs)
        except (HfHubHTTPError, OSError) as error:
            folder, name = self.args.output_dir, self.hub_model_id
            raise ValueError(
                f"the model is saved in {folder}, but its upload to {name} failed ({error}); upload it "
                f"later: hf upload {name} {folder}"
            ) from None

    def _complete(self, output_dir: str | None) -> None:
        """Add what the model needs elsewhere to a folder into which it is saved."""
        folder = output_dir or self.args.output_dir
        # TRL's copy of an adapter that is trained further. A resumed run makes it again from the same start.
        shutil.rmtree(Path(folder) / "ref", ignore_errors=True)
        assert self.processing_class is not None
        stop_strings = self.card.stop_strings if self.card else None
        model = self.accelerator.unwrap_model(self.model)
        save_generation_config(folder, model, self.processing_class, stop_strings)
        follow_umask(folder)
        if self.card:
            loads_best = self.args.load_best_model_at_end and output_dir is None
            self.card.save(folder, self.state, saved_step(self.state, loads_best), self.collapsed)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Write nothing: TRL's card does not know the method; `save_model` writes ours."""

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Return whether the weights are the best so far, and have them saved, whatever --save_steps is."""
        is_best = super()._determine_best_metric(metrics, trial)
        if not is_best and metrics[str(self.args.metric_for_best_model)] == self.state.best_metric:
            best = evaluation_at(self.state, self.state.best_global_step or 0)
            is_best = wins_tie(metrics, best)
        if is_best:
            self.state.best_global_step = self.state.global_step
            self.control.should_save = self.args.save_strategy != "no"
        return is_best

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save a checkpoint, after deleting an incomplete one of the same step so that no file mixes in."""
        folder = Path(self._get_output_dir(trial)) / f"checkpoint-{self.state.global_step}"
        if self.args.should_save:
            shutil.rmtree(folder, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        try:
            with faults_named(self.args, folder):
                super()._save_checkpoint(model, trial)
            if self.args.should_save:
                write_checksums(folder)
        except OSError:
            if checkpoint_fault(folder):  # the space is needed more than half a checkpoint
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def _save_rng_state(self, output_dir: str) -> None:
        """Save the random state, then wait for all ranks.

        It is the last file that every rank writes. The main process writes trainer_state.json next, and that
        file must not exist before all others are complete.
        """
        super()._save_rng_state(output_dir)
        self.accelerator.wait_for_everyone()

    def _run_epoch(self, **epoch: Any) -> None:
        """Run an epoch unless the run is finished: transformers checks max_steps only after an update.

        A signal that stops sampling has the effect of one in the micro-batch that the samples are for.
        """
        if self.state.global_step >= self.state.max_steps:
            return
        try:
            super()._run_epoch(**epoch)
        except GenerationStopped:
            self.control = self.callback_handler.on_substep_end(self.args, self.state, self.control)
            names = ("model", "trial", "epoch", "ignore_keys_for_eval", "start_time")
            self._maybe_log_save_evaluate(self._tr_loss, None, *(epoch[name] for name in names))

    def _finalize_training(self, trial: Any, num_train_samples: int, start_time: float) -> Any:
        """Finish training; a run that a signal has stopped keeps its last checkpoint and loads no other.

        transformers would load the best checkpoint, and delete the last one with --save_total_limit 1.
        """
        is_early = self.control.should_training_stop and self.state.global_step < self.state.max_steps
        if is_early:
            self.callback_handler.on_train_end(self.args, self.state, self.control)  # exits
        return super()._finalize_training(trial, num_train_samples, start_time)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Create the schedule without updates at rate 0, and note what options decide for the optimizer."""
        optimizer = optimizer or self.optimizer
        if self.lr_scheduler is None:
            self.lr_scheduler = new_schedule(self.args, optimizer, num_training_steps)
            self._created_lr_scheduler = True  # as transformers notes it
        self._group_options = group_options(optimizer)
        return self.lr_scheduler

    def _get_learning_rate(self) -> float:
        """Return the rate of the update; a schedule that DeepSpeed steps is already at the next one."""
        stepped = getattr(self.lr_scheduler, "scheduler", None)
        return rate_before(stepped) if stepped else super()._get_learning_rate()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Load the states of a checkpoint; rates and other options are those of this run."""
        super()._load_optimizer_and_scheduler(checkpoint)
        schedule = getattr(self.lr_scheduler, "scheduler", self.lr_scheduler)  # DeepSpeed wraps it
        apply_options(self.optimizer, schedule, self._group_options)

    def _init_training_state(self, max_steps: int, *more: Any) -> Any:
        """Load the state of a checkpoint, but not how often its run logged, evaluated and saved."""
        trained = super()._init_training_state(max_steps, *more)
        self.state.compute_steps(self.args, max_steps)
        if self.has_other_evaluation and self.state.global_step < max_steps:
            self.state.best_metric = self.state.best_global_step = self.state.best_model_checkpoint = None
        return trained

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Warn about missing keys, but not about tied weights, which are saved once under another name."""
        tied = getattr(self.accelerator.unwrap_model(self.model), "all_tied_weights_keys", {})
        missing = [key for key in load_result.missing_keys if key not in tied]
        super()._issue_warnings_after_load(load_result._replace(missing_keys=missing))


def run_training(trainer: ResumableTrainer, card: ModelCard, checkpoint: str | None) -> None:
    """Train, save the model with its card in output_dir, and print what was done.

    Args:
        trainer: Trainer of the run.
        card: Facts of the run; its record becomes run.json.
        checkpoint: Path of the checkpoint to continue from; None: start at step 0.

    Raises:
        DataError: Another run is writing to the folder.
        ValueError: The folder has become another run's, the weights would be trained in half precision, data
            or options of a continued run have changed, or the memory is full.
        OSError: The disk is full.

    """
    out, args = Path(trainer.args.output_dir), trainer.args
    is_half = any(p.requires_grad and p.dtype.itemsize < 4 for p in trainer.model.parameters())
    if is_half and not (trainer.is_deepspeed_enabled or args.use_peft):
        raise ValueError(f"--dtype auto, with the weights of this model in half precision, {HALF_WEIGHTS}")
    with locked(out) if trainer.is_world_process_zero() else nullcontext():
        if trainer.is_world_process_zero():  # another run may have written there since the first check
            check_training_folder(out, run_kind(vars(args)), checkpoint is not None)
        record = dict(card.record)
        if checkpoint and trainer.is_world_process_zero():
            changes = accepted_changes(args, record, Path(checkpoint).parent)
            record["changes"] = all_changes(changes, Path(checkpoint))
            trainer.has_other_evaluation = change_evaluation(args, changes)
            card = replace(card, record=record)
        [trainer.has_other_evaluation, *_] = gather_object([trainer.has_other_evaluation])
        if "wandb" in args.report_to and trainer.is_world_process_zero():
            record["wandb_run_id"] = start_wandb_run(args, Path(checkpoint).parent if checkpoint else None)
        _add_callbacks(trainer, card, checkpoint)
        with faults_named(args, out, checkpoint):
            if trainer.is_world_process_zero():
                save_json(record, out / "run.json")
            trainer.train(resume_from_checkpoint=checkpoint)
            trainer.save_model()
        if trainer.is_world_process_zero():
            print(end_lines(card, args, trainer.state, trainer.remarks()), flush=True)
        trainer.end()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder inside the context.

    Raises:
        DataError: Another run is writing there.

    """
    with closing(FolderLock(folder)) as lock:
        lock.lock_exclusive()
        try:
            yield
        finally:
            lock.discard()


def _add_callbacks(trainer: ResumableTrainer, card: ModelCard, checkpoint: str | None) -> None:
    trainer.card = card
    trainer.add_callback(StartLines(card, checkpoint))
    disable_progress_bar()  # transformers shows one for the weights of every checkpoint
    show_lines(trainer)
    trainer.add_callback(FirstUpdates())
    trainer.clock = Clock()
    trainer.add_callback(trainer.clock)
    if trainer.args.save_minutes and trainer.args.save_strategy != "no":
        trainer.add_callback(SaveByTime(trainer.args.save_minutes))
    trainer.add_callback(RunLog(lambda: trainer.last_batch.examples))
    trainer.stop_on_signal = StopOnSignal(trainer)
    trainer.add_callback(trainer.stop_on_signal)

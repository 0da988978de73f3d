"""Checkpoints and saved models: selection and validation, the best one, the order of the data in a resumed
run, generation config, permissions, and the errors of a full disk and a full memory.

A checkpoint is complete once it contains trainer_state.json. transformers writes that file last, and
`ResumableTrainer` waits for all ranks before it is written. Does not know what is trained.
"""

import json
import logging
import os
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch.utils.data import Sampler
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import TRAINER_STATE_NAME
from trl.trainer.utils import RepeatSampler

from cocos.files.durable import DISK_FULL, save_json
from cocos.files.run_record import sha256
from cocos.generation.checkpoint_files import weight_file_fault
from cocos.generation.tokenizer import eos_token_ids

logger = logging.getLogger(__name__)


def find_checkpoint(requested: str | None, output_dir: str) -> str | None:
    """Return the path of the checkpoint to resume from; None to start at step 0.

    Args:
        requested: `last` (or `True`, as in transformers) for the newest complete checkpoint in `output_dir`;
            the path of a checkpoint; None or `False` to start at step 0.
        output_dir: Output folder of the run.

    Raises:
        ValueError: There is no complete checkpoint, or the named one is incomplete or damaged.

    """
    if requested is None or requested.lower() == "false":
        return None
    if requested.lower() not in ("last", "true"):
        if fault := checkpoint_fault(Path(requested)):
            raise ValueError(f"--resume_from_checkpoint {requested}: {fault}; name another one, or `last`")
        return requested
    # path.name[11:] is the step after "checkpoint-".
    checkpoints = [path for path in Path(output_dir).glob("checkpoint-*") if path.name[11:].isdigit()]
    skipped = []
    for checkpoint in sorted(checkpoints, key=lambda path: int(path.name[11:]), reverse=True):
        fault = checkpoint_fault(checkpoint)
        if fault is None:
            return str(checkpoint)
        logger.warning(f"skipping {checkpoint}: {fault}")
        skipped.append(f" ({checkpoint.name}: {fault})")
    raise ValueError(
        f"--resume_from_checkpoint {requested}: no complete checkpoint in {output_dir}{''.join(skipped)}; "
        f"leave the option out and choose another --output_dir to start anew"
    )


def checkpoint_fault(checkpoint: Path) -> str | None:
    """Return why a run cannot resume from a checkpoint; None if it can."""
    if not checkpoint.is_dir():
        return "no such folder"
    try:
        json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"it has no {TRAINER_STATE_NAME}, so it was never finished"
    except ValueError:
        return f"{TRAINER_STATE_NAME} is damaged"
    if not any(path.name.startswith(("optimizer", "global_step")) for path in checkpoint.iterdir()):
        return "it contains weights without the optimizer's state (--save_only_model?)"
    for path in sorted(checkpoint.rglob("*")):
        is_cut = path.suffix in (".pt", ".pth", ".bin") and not zipfile.is_zipfile(path)  # of torch.save
        if is_cut or (path.suffix == ".safetensors" and weight_file_fault(path)):
            return f"{path.relative_to(checkpoint)} is damaged"
    return _checksum_fault(checkpoint)


CHECKSUMS = "checksums.json"  # size and SHA-256 of every other file of a checkpoint


def write_checksums(checkpoint: Path) -> threading.Thread:
    """Write the checksums of a complete checkpoint into it, in a thread: no rank waits for them."""

    def write() -> None:
        with suppress(FileNotFoundError):  # --save_total_limit has deleted the checkpoint meanwhile
            files = [path for path in sorted(checkpoint.rglob("*")) if path.is_file()]
            sums = {str(p.relative_to(checkpoint)): [p.stat().st_size, sha256(p)] for p in files}
            save_json(sums, checkpoint / CHECKSUMS)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def _checksum_fault(checkpoint: Path) -> str | None:
    """Return which file is not the one that was saved; None without checksums (of a killed run)."""
    try:
        sums = json.loads((checkpoint / CHECKSUMS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return f"{CHECKSUMS} is damaged"
    for name, (size, digest) in sums.items():
        path = checkpoint / name
        if not path.is_file() or path.stat().st_size != size or sha256(path) != digest:
            return f"{name} is damaged"
    return None


def evaluation_at(state: TrainerState, step: int) -> dict[str, float]:
    """Return the dev metrics of a step without their prefix `eval_`; empty if there was no evaluation."""
    for log in reversed(state.log_history):
        metrics = {k.removeprefix("eval_"): v for k, v in log.items() if k.startswith("eval_")}
        if log["step"] == step and metrics:
            return metrics
    return {}


def mean_accuracy(metrics: Mapping[str, float]) -> float:
    """Return the mean of acc_t1, acc_t2, ... among dev metrics; NaN without turns."""
    values = [value for name, value in metrics.items() if name.removeprefix("eval_").startswith("acc_t")]
    return sum(values) / len(values) if values else float("nan")


def wins_tie(metrics: Mapping[str, float], best: Mapping[str, float]) -> bool:
    """Return whether a checkpoint replaces the best one, whose last turn is as accurate on the dev problems.

    A small dev set cannot tell good checkpoints apart by the last turn alone. So a tie goes to the higher
    mean accuracy over the turns, whose model needs fewer corrections, and then to the later update, whose
    model has learnt from more samples. Runs without turns have no ties to break.
    """
    return mean_accuracy(metrics) >= mean_accuracy(best)


def saved_step(state: TrainerState, loads_best: bool) -> int:
    """Return the step whose weights a finished run saves: the best one if it is loaded, or the last."""
    return (state.best_global_step if loads_best else None) or state.global_step


class EpochSampler(Sampler):
    """RepeatSampler that shuffles epoch e with seed + e.

    TRL's sampler starts with the order of the first epoch again when a run is resumed.
    """

    def __init__(self, sampler: RepeatSampler, epoch: Callable[[], int]) -> None:
        self.sampler = sampler
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(self.sampler.seed + self.epoch())
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


CPU_ALLOCATOR = "DefaultCPUAllocator"  # named in its error, which has no type of its own
MAX_ERROR_CHARS = 200  # torch's message names the sizes first, then gives advice
# torch and safetensors report a full disk without its error number.
DISK_FULL_WORDS = (
    *("No space left", "Disk quota exceeded"),
    *("PytorchStreamWriter failed", "inline_container.cc"),  # torch's writer of archives
)
MISFITS = ("size mismatch", "match the size of optimizer's group", "different number of parameter groups")


def save_generation_config(
    folder: str | Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    stop_strings: list[str] | None,
) -> None:
    """Write a generation config with which `model.generate` decodes greedily and stops after an answer.

    The base model's sampling parameters are left out: the model was trained on unchanged probabilities.

    Args:
        folder: Folder of the saved model.
        model: The model; its end-of-sequence ids are kept.
        tokenizer: Its tokenizer.
        stop_strings: Texts that end an answer; None: only the end-of-sequence ids. `generate` needs
            `tokenizer=` if there are any.

    """
    eos_ids = sorted(eos_token_ids(model.generation_config, tokenizer))
    config = GenerationConfig(
        do_sample=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=eos_ids[0] if len(eos_ids) == 1 else eos_ids or None,
        pad_token_id=tokenizer.pad_token_id,
        stop_strings=stop_strings,
    )
    config.save_pretrained(folder)


def follow_umask(folder: str | Path) -> None:
    """Give weight files the permissions of other new files; safetensors writes them with mode 600."""
    mask = os.umask(0)
    os.umask(mask)
    for path in Path(folder).glob("*.safetensors"):
        path.chmod(0o666 & ~mask)


@contextmanager
def faults_named(
    args: TrainingArguments, folder: str | Path, checkpoint: str | None = None
) -> Iterator[None]:
    """Raise one line with the remedy if disk or memory is full, or a checkpoint is that of another model.

    Args:
        args: Options of the run.
        folder: Folder that the context writes to.
        checkpoint: Checkpoint that the context loads, if any.

    Raises:
        OSError: The disk is full.
        ValueError: The memory of the GPU or the machine is full, or the checkpoint does not fit.

    """
    try:
        yield
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        text = " ".join(str(error).split())
        if getattr(error, "errno", None) in DISK_FULL or any(words in text for words in DISK_FULL_WORDS):
            raise OSError(
                f"{folder}: the disk is full, so this was not saved; free some space, then continue with "
                "--resume_from_checkpoint last"
            ) from error
        if checkpoint and any(words in text for words in MISFITS):
            raise ValueError(
                f"--resume_from_checkpoint {checkpoint}: its tensors are not those of this model; give the "
                "model and the LoRA options with which the run began"
            ) from None
        is_gpu = isinstance(error, torch.OutOfMemoryError)
        if not is_gpu and not (CPU_ALLOCATOR in text and isinstance(error, RuntimeError)):
            raise
        remedies = "lower --per_device_train_batch_size"
        if hasattr(args, "rollout_batch_size"):
            remedies += ", or --rollout_batch_size if it was full while sampling"
        if any(Path(str(args.output_dir)).glob(f"checkpoint-*/{TRAINER_STATE_NAME}")):
            remedies += "; continue with --resume_from_checkpoint last --accept_changes true"
        memory = f"the memory of the {'GPU' if is_gpu else 'machine'} is full"
        raise ValueError(f"{memory} ({text[:MAX_ERROR_CHARS]}); {remedies}") from None

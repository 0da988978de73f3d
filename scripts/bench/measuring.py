"""Tools of the measurements: device, clock, memory, trainers and rows of a shape.

On a GPU, seconds are those of the clock until the device has finished. On a processor they are processor
seconds of one thread, which other processes disturb less.
"""

import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from batches import Shape, load_model, make_rows, our_trainer

from cocos.generation.tokenizer import load_tokenizer

MIB, GIB = 2**20, 2**30
TOY = "data/toy/base"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def save_checkpoint(model: str, folder: Path) -> None:
    """Save a random model with the laboratory's tokenizer, whose ids are among the model's."""
    load_model(model).save_pretrained(folder)
    load_tokenizer(TOY).save_pretrained(folder)


@contextmanager
def open_trainer(shape: Shape, **options: Any) -> Iterator[Any]:
    """Yield a CoCoSTrainer for a shape, on this device in the data type of a training run."""
    is_cuda = DEVICE == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        trainer, executor = our_trainer(folder, shape, use_cpu=not is_cuda, bf16=is_cuda, **options)
        with executor:
            yield trainer


def rows_of(shape: Shape) -> dict[str, Any]:
    """Return rows of a shape, on the device."""
    return {name: values.to(DEVICE) for name, values in make_rows(shape).items()}


def prompts_of(shape: Shape) -> list[list[int]]:
    """Return the prompts of the first turn of all trajectories."""
    rows = make_rows(replace(shape, num_turns=1))
    pairs = zip(rows["prompt_ids"], rows["prompt_mask"].bool(), strict=True)
    return [ids[mask].tolist() for ids, mask in pairs]


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of a call: by the clock until the GPU has finished, or those of this process."""
    if DEVICE == "cpu":
        started = time.process_time()
        call()
        return time.process_time() - started
    torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def peak_mib() -> float:
    """Return the largest memory so far: of the GPU since the last reset, or of this process."""
    if DEVICE == "cuda":
        return torch.cuda.max_memory_allocated() / MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # from KiB


def output_of(command: Sequence[str]) -> str:
    """Run a command and return its output; if it fails, end with its last lines."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... failed:\n{run.stderr[-2000:]}")
    return run.stdout

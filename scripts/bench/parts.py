"""Measurements of bench.py. Each returns plain figures; all also run on a processor, at small sizes.

    python scripts/bench/parts.py '{"part": "passes", "shape": {...}}'     # measure one part, print JSON

Whole updates are measured by the clock, on all processors. `gpu_parts.py` has what only `gpu` measures.
"""

import json
import platform
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from itertools import cycle, islice
from statistics import median
from typing import Any

import gpu_parts
import torch
from batches import RANDOM_MODELS, Shape, operations, sample_rows, trl_trainer
from measuring import DEVICE, open_trainer, peak_mib, rows_of, seconds_of
from transformers import GenerationConfig

from cocos.generation import Completion, Generator
from cocos.generation.huggingface import HuggingFaceGenerator, resolve_dtype
from cocos.generation.huggingface import load_model as load_evaluated
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids, load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import DONE, PromptProtocol, named_protocol

PHASES = ("rollout", "logprobs", "update")
ROUNDS = 3


def machine() -> dict[str, Any]:
    """Return what the figures depend on: device, its matrix rate, and versions."""
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else f"{platform.machine()} processor"
    versions = {name: version(name) for name in ("torch", "transformers", "trl")}
    return {"device": name, "matrix_rate": matrix_rate(), "versions": versions}


def matrix_rate() -> float:
    """Return the operations per second of large matrix products in the data type of `--dtype auto`."""
    size = 8192 if DEVICE == "cuda" else 2048
    left = torch.randn(size, size, device=DEVICE, dtype=getattr(torch, resolve_dtype("auto")))
    return 2 * size**3 / min(seconds_of(lambda: left @ left) for _ in range(10))


def turns(
    model: str,
    data: Sequence[str],
    protocol: str,
    num_problems: int,
    batch_size: int,
    max_completion_length: int,
) -> dict[str, Any]:
    """Compare the generation of two turns with plain calls of `model.generate`, on the same batches.

    No program is executed, because that would take the same time in both. The two alternate over the rounds.

    Returns:
        Median seconds of `ours` and `plain`, our tokens, and the number of trajectories whose ids differ.

    """
    tokenizer, loaded, words = load_tokenizer(model), load_evaluated(model), named_protocol(protocol)
    problems = list(islice(cycle(p for path in data for p in load_problems(path)), num_problems))
    kinds = {"ours": HuggingFaceGenerator, "plain": PlainGenerator}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    played: dict[str, list[list[Completion]]] = {}
    for name in [*kinds] * ROUNDS:
        generator = kinds[name](loaded, tokenizer, max_completion_length)
        played[name] = []
        with torch.inference_mode():
            spent_s = seconds_of(partial(_play, generator, words, problems, batch_size, played[name]))
        seconds[name].append(spent_s)
    ids = [[[turn.token_ids for turn in turns] for turns in of_kind] for of_kind in played.values()]
    return {
        "seconds": {name: median(times) for name, times in seconds.items()},
        "tokens": sum(len(turn) for turns in ids[0] for turn in turns),
        "differ": sum(ours != plain for ours, plain in zip(*ids, strict=True)),
    }


class PlainGenerator(TokenTranscripts):
    """Generator of a short script: pads a batch, calls `model.generate`, and truncates the completions."""

    def __init__(self, model: Any, tokenizer: Any, max_completion_length: int):
        super().__init__(tokenizer, eos_token_ids(model.generation_config, tokenizer))
        self.model = model
        self.config = GenerationConfig(
            max_new_tokens=max_completion_length,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=sorted(self.eos_ids),
            stop_strings=[DONE],
        )

    def generate(self, prompts: Sequence[Sequence[int]], temperature: float, seeds=None) -> list[Completion]:
        batch = self.tokenizer.pad({"input_ids": [list(p) for p in prompts]}, return_tensors="pt")
        ids = self.model.generate(
            **batch.to(self.model.device), generation_config=self.config, tokenizer=self.tokenizer
        )
        return [self.completion(row, 0.0) for row in ids[:, batch["input_ids"].shape[1] :].tolist()]


def _play(
    generator: Generator,
    words: PromptProtocol,
    problems: Sequence[Problem],
    batch_size: int,
    played: list[list[Completion]],
) -> None:
    """Generate two turns of all problems greedily, batch by batch; append the turns of each problem."""
    for start in range(0, len(problems), batch_size):
        batch = problems[start : start + batch_size]
        prompts = [generator.start(words.first_turn(p), words.is_chat) for p in batch]
        first = generator.generate(prompts, temperature=0.0)
        messages = [words.later_turn(DONE in c.text) for c in first]
        parts = zip(prompts, first, messages, strict=True)
        second = generator.generate([generator.extend(*part, words.is_chat) for part in parts], 0.0)
        played += map(list, zip(first, second, strict=True))


def passes(shape: Shape, other: str = "plain", rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure old log-probabilities, loss and gradient of trees and of another layout, `plain` or `trl`.

    The layouts alternate over the rounds. Trees come first, so that on a processor the peak memory of the
    process after them is theirs.

    Returns:
        Per layout the median seconds (None if it does not fit into the GPU's memory) and the peak memory in
        MiB; the layouts' operations; and the matrix rate.

    """
    seconds: dict[str, list[float] | None] = {"shared": [], other: []}
    peaks: dict[str, float] = {}
    with open_trainer(shape, num_iterations=2) as trainer:
        rows = rows_of(shape) if shape.model in RANDOM_MODELS else sample_rows(trainer, shape)
        with tempfile.TemporaryDirectory() as folder:
            trainers = {"shared": trainer, "plain": trainer}
            if other == "trl":
                trainers["trl"] = trl_trainer(folder, shape.model)
        _pass(trainer, rows)  # compares trees with plain rows, compiles kernels; not measured
        for layout in [*seconds] * rounds:
            trainer.args.share_prefixes = layout == "shared"
            if DEVICE == "cuda":
                torch.cuda.reset_peak_memory_stats()
            try:
                spent_s = seconds_of(partial(_pass, trainers[layout], rows))
            except torch.OutOfMemoryError:
                trainer.model.zero_grad()
                torch.cuda.empty_cache()
                seconds[layout] = None
                continue
            peaks.setdefault(layout, peak_mib())
            seconds[layout].append(spent_s)
        return {
            "seconds": {layout: times and median(times) for layout, times in seconds.items()},
            "peaks_mib": peaks,
            "operations": operations(trainer.model, {name: rows[name].cpu() for name in rows}),
            "matrix_rate": matrix_rate(),
        }


def _pass(trainer: Any, rows: dict[str, Any]) -> None:
    """Compute old log-probabilities, loss and gradient."""
    with torch.no_grad():
        log_probs, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            rows["completion_ids"].size(1),
            batch_size=256,
        )
    old_logps = (log_probs * rows["completion_mask"]).sum(1)
    trainer.compute_loss(trainer.model, rows | {"old_logps": old_logps}).backward()
    trainer.model.zero_grad()


def updates(shape: Shape, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure whole updates of the laboratory. The first one, with the comparison, is not measured."""
    seconds, peaks = {}, {}
    for layout in ("shared", "plain"):
        # With this learning rate both layouts sample alike.
        options = {"share_prefixes": layout == "shared", "max_steps": rounds + 1, "learning_rate": 1e-6}
        with open_trainer(shape, **options) as trainer:
            trainer.train()
        logs = [log for log in trainer.state.log_history if "time/update_s" in log]
        seconds[layout] = median(sum(log[f"time/{phase}_s"] for phase in PHASES) for log in logs[1:])
        peaks[layout] = peak_mib()
    return {"seconds": seconds, "peaks_mib": peaks}


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Measure a part in this process."""
    arguments = {name: value for name, value in job.items() if name not in ("part", "shape")}
    if "shape" in job:
        arguments["shape"] = Shape(**job["shape"])
    found: dict[str, Any] = (vars(gpu_parts) | globals())[job["part"]](**arguments)
    return found


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    if DEVICE == "cpu" and job["part"] != "updates":
        torch.set_num_threads(1)
    print(json.dumps(measure(job)))

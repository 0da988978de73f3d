"""Measurements of bench.py. Each returns plain figures; all also run on a processor, at small sizes.

    python scripts/bench/parts.py '{"part": "passes", "shape": {...}}'     # measure one part, print JSON

On a GPU, seconds are those of the clock until the device has finished. On a processor they are processor
seconds of one thread, which other processes disturb less; whole updates are measured by the clock, on all
processors.
"""

import json
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from batches import (
    RANDOM_MODELS,
    Shape,
    load_model,
    make_rows,
    operations,
    our_trainer,
    sample_rows,
    trl_trainer,
)
from transformers import GenerationConfig

from cocos.generation import Completion, Generator
from cocos.generation.huggingface import HuggingFaceGenerator, resolve_dtype
from cocos.generation.huggingface import load_model as load_evaluated
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids, load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import DONE, PromptProtocol, named_protocol

MIB, GIB = 2**20, 2**30
TOY = "data/toy/base"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
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
    return 2 * size**3 / min(_seconds(lambda: left @ left) for _ in range(10))


def equality(shape: Shape) -> dict[str, Any]:
    """Compare log-probabilities and gradients of prefix trees with those of plain rows.

    Plain rows in passes of two sizes differ by rounding alone; this is the yardstick of all differences.

    Returns:
        For plain rows in passes of one row, and for trees: mean and largest absolute difference of a token's
        log-probability, in nats; for trees also the length of the difference of the gradients, divided by
        that of the gradient.

    """
    with _trainer(shape) as trainer:
        rows = _rows(shape)
        mask = rows["completion_mask"].bool()
        layouts = {"plain": (False, 256), "plain, passes of 1": (False, 1), "shared": (True, 256)}
        logps, gradients = {}, {}
        for name, (is_shared, batch) in layouts.items():
            trainer.args.share_prefixes, trainer.args.rollout_batch_size = is_shared, batch
            with torch.no_grad():
                logps[name] = trainer.row_logps(trainer.model, rows)[mask]
            assert not is_shared or trainer.tree_logps.is_used, "the model does not attend along trees"
            if batch > 1:  # the loss is always one pass
                trainer.compute_loss(trainer.model, rows).backward()
                gradients[name] = _take_gradient(trainer.model)
    plain = gradients.pop("plain")
    relative = {name: ((values - plain).norm() / plain.norm()).item() for name, values in gradients.items()}
    return {
        name: {
            "logps_mean": (logps[name] - logps["plain"]).abs().mean().item(),
            "logps_max": (logps[name] - logps["plain"]).abs().max().item(),
        }
        | ({"gradient": relative[name]} if name in relative else {})
        for name in list(layouts)[1:]
    }


def cached_decoding(shape: Shape) -> dict[str, Any]:
    """Compare greedy decoding with cached keys and values with a pass over each finished transcript.

    Returns:
        Share of sampled ids that the pass would choose too, and the largest logit gap of one that it would
        not: by how much its logit is below the highest.

    """
    model = load_model(shape.model).to(DEVICE, getattr(torch, resolve_dtype("auto"))).eval()
    prompts = _prompts(shape)
    generator = HuggingFaceGenerator(model, load_tokenizer(TOY), shape.answer)
    completions = generator.generate(prompts, 0.0)
    chosen, gaps = [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        ids = torch.tensor(completion.token_ids, device=DEVICE)
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *completion.token_ids]], device=DEVICE)).logits[0].float()
        logits = logits[len(prompt) - 1 : -1]  # (C, V)
        gap = logits.max(-1).values - logits.gather(1, ids[:, None])[:, 0]
        chosen.append(gap == 0)
        gaps.append(gap)
    return {"same": torch.cat(chosen).float().mean().item(), "largest_gap": torch.cat(gaps).max().item()}


def decoding(shape: Shape, engine: str) -> dict[str, Any]:
    """Measure sampling with transformers or vLLM: tokens of all rows, and seconds.

    CUDA graphs over a static cache would go between the two: a third engine here, and the cache of
    `HuggingFaceGenerator` that it needs in cocos/generation/kv_cache.py.
    """
    prompts, tokenizer = _prompts(shape), load_tokenizer(TOY)
    dtype = resolve_dtype("auto")
    with tempfile.TemporaryDirectory() as folder:
        if engine == "vllm":
            from cocos.generation.vllm_offline import VLLMGenerator

            save_checkpoint(shape.model, Path(folder))
            generator: Any = VLLMGenerator(folder, tokenizer, [], dtype, shape.answer)
        else:
            model = load_model(shape.model).to(DEVICE, getattr(torch, dtype)).eval()
            generator = HuggingFaceGenerator(model, tokenizer, shape.answer)
        generator.generate([ids[:8] for ids in prompts], 1.0)  # compiles kernels; not measured
        completions = []
        seconds = _seconds(lambda: completions.extend(generator.generate(prompts, 1.0)))
    return {"seconds": seconds, "tokens": sum(len(completion.token_ids) for completion in completions)}


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
            spent_s = _seconds(partial(_play, generator, words, problems, batch_size, played[name]))
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
    with _trainer(shape, num_iterations=2) as trainer:
        rows = _rows(shape) if shape.model in RANDOM_MODELS else sample_rows(trainer, shape)
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
                spent_s = _seconds(partial(_pass, trainers[layout], rows))
            except torch.OutOfMemoryError:
                trainer.model.zero_grad()
                torch.cuda.empty_cache()
                seconds[layout] = None
                continue
            peaks.setdefault(layout, _peak_mib())
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
        with _trainer(shape, **options) as trainer:
            trainer.train()
        logs = [log for log in trainer.state.log_history if "time/update_s" in log]
        seconds[layout] = median(sum(log[f"time/{phase}_s"] for phase in PHASES) for log in logs[1:])
        peaks[layout] = _peak_mib()
    return {"seconds": seconds, "peaks_mib": peaks}


def training(
    shape: Shape, launcher: Sequence[str] = (sys.executable,), options: Sequence[str] = ()
) -> dict[str, Any]:
    """Train three updates with train.py; compare the peak memory with the estimate of its dry run.

    Returns:
        Estimated and measured peak in GiB, and the seconds of the last update.

    """
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, output = Path(folder, "model"), Path(folder, "run")
        save_checkpoint(shape.model, checkpoint)
        batch = str(shape.num_problems * shape.num_generations)
        command = [
            *launcher,
            "train.py",
            *options,
            "--model_name_or_path",
            str(checkpoint),
            "--credit",
            "turn",
        ]
        command += [
            "--train_data",
            "data/toy/train.jsonl",
            "--output_dir",
            str(output),
            "--report_to",
            "none",
        ]
        command += ["--num_turns", str(shape.num_turns), "--num_generations", str(shape.num_generations)]
        command += ["--global_batch_size", batch, "--per_device_train_batch_size", batch]
        command += ["--max_completion_length", str(shape.answer), "--max_steps", "3", "--save_steps", "3"]
        # Random weights never end an answer: every one is truncated.
        command += ["--max_truncated_share", "1", "--logging_steps", "1"]
        estimate = re.search(r"needs ([\d.]+) GiB per", _output([*command, "--dry_run"]))
        assert estimate, "the dry run states no memory"
        _output(command)
        state = json.loads((output / "checkpoint-3/trainer_state.json").read_text())
    logs = [log for log in state["log_history"] if "peak_memory_mb" in log]
    return {
        "estimated_gib": float(estimate[1]),
        "peak_gib": max(log["peak_memory_mb"] for log in logs) * MIB / GIB,
        "seconds": logs[-1]["step_time"],
    }


def save_checkpoint(model: str, folder: Path) -> None:
    """Save a random model with the laboratory's tokenizer, whose ids are among the model's."""
    load_model(model).save_pretrained(folder)
    load_tokenizer(TOY).save_pretrained(folder)


@contextmanager
def _trainer(shape: Shape, **options: Any) -> Iterator[Any]:
    """Yield a CoCoSTrainer for a shape, on this device in the data type of a training run."""
    is_cuda = DEVICE == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        trainer, executor = our_trainer(folder, shape, use_cpu=not is_cuda, bf16=is_cuda, **options)
        with executor:
            yield trainer


def _rows(shape: Shape) -> dict[str, Any]:
    return {name: values.to(DEVICE) for name, values in make_rows(shape).items()}


def _prompts(shape: Shape) -> list[list[int]]:
    """Return the prompts of the first turn of all trajectories."""
    rows = make_rows(replace(shape, num_turns=1))
    pairs = zip(rows["prompt_ids"], rows["prompt_mask"].bool(), strict=True)
    return [ids[mask].tolist() for ids, mask in pairs]


def _take_gradient(model: torch.nn.Module) -> torch.Tensor:
    gradient = torch.cat([parameter.grad.flatten().float() for parameter in model.parameters()])
    model.zero_grad()
    return gradient


def _seconds(call: Callable[[], object]) -> float:
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


def _peak_mib() -> float:
    """Return the largest memory so far: of the GPU since the last reset, or of this process."""
    if DEVICE == "cuda":
        return torch.cuda.max_memory_allocated() / MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # from KiB


def _output(command: Sequence[str]) -> str:
    """Run a command and return its output; if it fails, end with its last lines."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... failed:\n{run.stderr[-2000:]}")
    return run.stdout


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Measure a part in this process."""
    arguments = {name: value for name, value in job.items() if name not in ("part", "shape")}
    if "shape" in job:
        arguments["shape"] = Shape(**job["shape"])
    found: dict[str, Any] = globals()[job["part"]](**arguments)
    return found


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    if DEVICE == "cpu" and job["part"] != "updates":
        torch.set_num_threads(1)
    print(json.dumps(measure(job)))

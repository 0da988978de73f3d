"""Measurements of gpu.py. Each returns plain figures; all of them also run on a processor, at small sizes.

Models have random weights. Their rows have the lengths of a `Shape` (update_batches.py).
"""

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from update_batches import Shape, load_model, make_rows, operations, our_trainer

from cocos.generation.huggingface import HuggingFaceGenerator, resolve_dtype
from cocos.generation.tokenizer import load_tokenizer

MIB, GIB = 2**20, 2**30
TOY = "data/toy/base"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def matrix_rate(size: int) -> float:
    """Return the operations per second of square matrix products in the data type of `--dtype auto`."""
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


def decoding(shape: Shape, engine: str, folder: Path) -> dict[str, Any]:
    """Measure sampling: tokens per second of all rows, and seconds, with transformers or vLLM.

    CUDA graphs over a static cache would go between the two: a third engine here, and the cache of
    `HuggingFaceGenerator` that it needs in cocos/generation/kv_cache.py.
    """
    prompts, tokenizer = _prompts(shape), load_tokenizer(TOY)
    dtype = resolve_dtype("auto")
    if engine == "vllm":
        from cocos.generation.vllm_offline import VLLMGenerator

        save_checkpoint(shape.model, folder)
        generator: Any = VLLMGenerator(str(folder), tokenizer, [], dtype, shape.answer)
    else:
        model = load_model(shape.model).to(DEVICE, getattr(torch, dtype)).eval()
        generator = HuggingFaceGenerator(model, tokenizer, shape.answer)
    generator.generate([ids[:8] for ids in prompts], 1.0)  # compiles kernels; not measured
    completions = []

    def sample() -> None:
        completions[:] = generator.generate(prompts, 1.0)

    seconds = _seconds(sample)
    tokens = sum(len(completion.token_ids) for completion in completions)
    return {"seconds": seconds, "tokens": tokens, "tokens_per_s": tokens / seconds}


def update(shape: Shape, layouts: Sequence[str], rounds: int = 3) -> dict[str, Any]:
    """Measure loss, gradient and AdamW's step, in the layouts `shared` (trees) and `plain`.

    Returns:
        Per layout the median seconds, the rows' tokens per second (without padding, so that layouts compare),
        the operations of this layout per second, and the peak memory in MiB (on a GPU); or the error of a
        layout that does not fit into the GPU's memory.

    """
    found: dict[str, Any] = {}
    with _trainer(shape) as trainer:
        rows = _rows(shape)
        num_tokens = int(rows["prompt_mask"].sum() + rows["completion_mask"].sum())
        of_forward = operations(trainer.model, {name: rows[name].cpu() for name in rows})
        optimizer = torch.optim.AdamW(trainer.model.parameters(), lr=1e-6, fused=DEVICE == "cuda")

        def step() -> None:
            trainer.compute_loss(trainer.model, rows).backward()
            optimizer.step()
            optimizer.zero_grad()

        for layout in layouts:
            trainer.args.share_prefixes = layout != "plain"
            if DEVICE == "cuda":
                torch.cuda.reset_peak_memory_stats()
            try:
                step()  # compares trees with plain rows, compiles kernels; not measured
                seconds = sorted(_seconds(step) for _ in range(rounds))[rounds // 2]
            except torch.OutOfMemoryError:
                optimizer.zero_grad()
                torch.cuda.empty_cache()
                found[layout] = {"error": "out of memory"}
                continue
            # A forward pass, and a backward pass of twice as many operations.
            rate = 3 * of_forward["plain" if layout == "plain" else "shared"] / seconds
            found[layout] = {
                "seconds": seconds,
                "tokens_per_s": num_tokens / seconds,
                "operations_per_s": rate,
                "peak_mib": torch.cuda.max_memory_allocated() / MIB if DEVICE == "cuda" else None,
            }
    return found | {"packing_ratio": of_forward["packing_ratio"], "tokens": num_tokens}


def training(
    shape: Shape, launcher: Sequence[str], folder: Path, options: Sequence[str] = ()
) -> dict[str, Any]:
    """Train three updates with train.py; compare the peak memory with the estimate of its dry run.

    Returns:
        Estimated and measured peak in GiB, and the seconds of the last update.

    """
    checkpoint, output = folder / "model", folder / "run"
    save_checkpoint(shape.model, checkpoint)
    batch = str(shape.num_problems * shape.num_generations)
    command = [*launcher, "train.py", *options, "--model_name_or_path", str(checkpoint), "--credit", "turn"]
    command += ["--train_data", "data/toy/train.jsonl", "--output_dir", str(output), "--report_to", "none"]
    command += ["--num_turns", str(shape.num_turns), "--num_generations", str(shape.num_generations)]
    command += ["--global_batch_size", batch, "--per_device_train_batch_size", batch]
    command += ["--max_completion_length", str(shape.answer), "--max_steps", "3", "--save_steps", "3"]
    # Random weights never end an answer: every one is truncated.
    command += ["--max_truncated_share", "1", "--logging_steps", "1"]
    estimate = re.search(r"needs ([\d.]+) GiB per GPU", _output([*command, "--dry_run"]))
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
def _trainer(shape: Shape) -> Iterator[Any]:
    """Yield a CoCoSTrainer for a shape, on this device in the data type of a training run."""
    is_cuda = DEVICE == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        trainer, executor = our_trainer(folder, shape, use_cpu=not is_cuda, bf16=is_cuda)
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
    """Return the seconds of a call, until the device has finished."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def _output(command: Sequence[str]) -> str:
    """Run a command and return its output; if it fails, end with its last lines."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... failed:\n{run.stderr[-2000:]}")
    return run.stdout

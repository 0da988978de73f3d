"""Measurements of `bench.py gpu`: what a GPU computes, how fast, and in how much memory."""

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from batches import Shape, load_model, make_rows
from measuring import (
    DEVICE,
    GIB,
    MIB,
    TOY,
    open_trainer,
    output_of,
    prompts_of,
    rows_of,
    save_checkpoint,
    seconds_of,
)
from torch.nn.functional import scaled_dot_product_attention

from cocos.generation.huggingface import HuggingFaceGenerator, resolve_dtype
from cocos.generation.tokenizer import load_tokenizer
from cocos.training.prefix_tree import Segments, pack
from cocos.training.tree_attention import SegmentedAttention, tree_attention

LOGGED = (
    "reward_t1",
    "reward_t2",
    "kl_t1",
    "kl_t2",
    "engine/kl",
    "engine/limited",
    "step_time",
    "peak_memory_mb",
)
HEADS, KV_HEADS, CHANNELS = 12, 2, 128  # of Qwen2.5-1.5B


def laboratory(launcher: Sequence[str] = (sys.executable,), options: Sequence[str] = ()) -> dict[str, Any]:
    """Train three updates of the laboratory with train.py; return what its log says of each."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*launcher, "train.py", *options, "--config", "configs/toy/cocos.yaml"]
        command += ["--model_name_or_path", TOY, "--output_dir", folder, "--disable_tqdm", "true"]
        # The base model's first programs are often cut off.
        command += [
            "--max_steps",
            "3",
            "--eval_steps",
            "3",
            "--save_steps",
            "3",
            "--max_truncated_share",
            "1",
        ]
        output_of(command)
        state = json.loads(Path(folder, "checkpoint-3/trainer_state.json").read_text())
    logs = [log for log in state["log_history"] if "reward_t1" in log]
    return {"updates": [{name: log[name] for name in LOGGED if name in log} for log in logs]}


def attention(shape: Shape, rounds: int = 3) -> dict[str, Any]:
    """Measure one layer's attention along the trees of a shape, forward and backward.

    Returns:
        Tokens of the trees; median seconds by segment and with a dense mask (None if it does not fit into the
        memory); and the largest difference of their outputs and gradients, divided by the largest value.

    """
    rows = make_rows(shape)
    ids = torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1)
    mask = torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1)
    trees, _ = pack(ids, mask, rows["completion_ids"].size(1))
    segments, chance = trees.segments(), torch.Generator().manual_seed(0)
    dtype = getattr(torch, resolve_dtype("auto"))
    states = [
        torch.randn(1, heads, len(trees), CHANNELS, generator=chance).to(DEVICE, dtype).requires_grad_()
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    ]
    seconds: dict[str, list[float] | None] = {"segments": [], "dense": []}
    values: dict[str, list[torch.Tensor]] = {}

    def call(layout: str) -> None:
        if layout == "segments":
            shared = SegmentedAttention(segments)
            output, _ = tree_attention(torch.nn.Module(), *states, None, segments=shared)
        else:
            visible = dense_mask(segments, len(trees)).to(DEVICE)
            output = scaled_dot_product_attention(*states, visible, enable_gqa=True).transpose(1, 2)
        output.square().sum().backward()
        values[layout] = [output.detach().float(), *(state.grad.float() for state in states)]
        for state in states:
            state.grad = None

    for layout in ["segments", "dense"] * (rounds + 1):  # the first ones compile kernels
        try:
            spent_s = seconds_of(partial(call, layout))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            seconds[layout] = None
        if (times := seconds[layout]) is not None:
            times.append(spent_s)
    pairs = zip(values["segments"], values.get("dense", []), strict=False)
    return {
        "tokens": len(trees),
        "seconds": {layout: times and median(times[1:]) for layout, times in seconds.items()},
        "difference": max(
            [((ours - dense).abs().max() / dense.abs().max()).item() for ours, dense in pairs], default=None
        ),
    }


def dense_mask(segments: Segments, num_tokens: int) -> torch.Tensor:
    """Return which token (row) attends to which (column). Shape (n, n)."""
    bounds = [0]
    for length in segments.lengths:
        bounds.append(bounds[-1] + length)
    visible = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for number, path in enumerate(segments.paths):
        own = slice(bounds[number], bounds[number + 1])
        for other in path[:-1]:
            visible[own, bounds[other] : bounds[other + 1]] = True
        visible[own, own] = torch.ones(
            segments.lengths[number], segments.lengths[number], dtype=torch.bool
        ).tril()
    return visible


def equality(shape: Shape) -> dict[str, Any]:
    """Compare log-probabilities and gradients of prefix trees with those of plain rows.

    Plain rows in passes of two sizes differ by rounding alone; this is the yardstick of all differences.

    Returns:
        For plain rows in passes of one row, and for trees: mean and largest absolute difference of a token's
        log-probability, in nats; for trees also the length of the difference of the gradients, divided by
        that of the gradient.

    """
    with open_trainer(shape) as trainer:
        rows = rows_of(shape)
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
    prompts = prompts_of(shape)
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
    prompts, tokenizer = prompts_of(shape), load_tokenizer(TOY)
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
        seconds = seconds_of(lambda: completions.extend(generator.generate(prompts, 1.0)))
    return {"seconds": seconds, "tokens": sum(len(completion.token_ids) for completion in completions)}


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
        estimate = re.search(r"needs ([\d.]+) GiB per", output_of([*command, "--dry_run"]))
        assert estimate, "the dry run states no memory"
        output_of(command)
        state = json.loads((output / "checkpoint-3/trainer_state.json").read_text())
    logs = [log for log in state["log_history"] if "peak_memory_mb" in log]
    return {
        "estimated_gib": float(estimate[1]),
        "peak_gib": max(log["peak_memory_mb"] for log in logs) * MIB / GIB,
        "seconds": logs[-1]["step_time"],
    }


def _take_gradient(model: torch.nn.Module) -> torch.Tensor:
    gradient = torch.cat([parameter.grad.flatten().float() for parameter in model.parameters()])
    model.zero_grad()
    return gradient

"""Estimate of the memory that a training run needs on each GPU.

Model states follow ZeRO (arXiv 1910.02054, sec. 3.1 and 5): P parameters trained with AdamW in bfloat16 need
2 P (weights) + 2 P (gradients) + 12 P (float32 copy 4, two moments 8) bytes. N GPUs share the last term under
stage 1, the gradients too under stage 2, the weights too under stage 3. During the optimizer step, DeepSpeed
adds a float32 copy of a GPU's share of the gradients: 4 P / N. Example without that copy, P = 1e9 and N = 8:
stage 1 needs 2 + 2 + 12 / 8 = 5.5 GB, stage 2 needs 2 + 14 / 8 = 3.75 GB, stage 3 needs 16 / 8 = 2 GB.

Does not know options or models. Sizes are bytes on one GPU, or in the memory of one process on a CPU. They
are estimates, not measurements, with an intended error of at most 20 %. Fragmentation, communication buckets
and padding beyond the assumed lengths are not counted.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

import torch

from cocos.planning.shapes import Layout, ModelShape
from cocos.planning.workload import Workload

GIB = 2**30
GPU_OVERHEAD = 1.5 * GIB  # CUDA context, workspaces of cuBLAS and NCCL: assumed
CPU_OVERHEAD = 0.6 * GIB  # Python and its libraries: measured
USABLE = 0.95  # share of a card's memory that a run can use: assumed
HEAD_TILE_TOKENS, HEAD_TILE_VOCAB = 4096, 32768  # trl 1.16 computes logits in tiles of this size
HEAD_TILE_VOCAB_CPU = 256  # on a CPU, training/trl_patches.py makes them this narrow


class Memory(NamedTuple):
    """Bytes on one GPU: what stays, and what each phase of an update adds to it."""

    weights: float
    reference: float
    optimizer: float
    overhead: float
    sampling: float  # cache and logits, or the passes for old and reference log-probabilities
    update: float  # gradients, and activations or the optimizer's step

    @property
    def peak(self) -> float:
        """Sum of the parts that stay and of the larger phase."""
        return sum(self[:4]) + max(self.sampling, self.update)


def estimate(shape: ModelShape, layout: Layout, workload: Workload) -> Memory:
    """Return the memory of a run. Under an adapter, the base model is the reference, and frozen."""
    precision = layout.precision
    frozen = shape.parameters * layout.frozen if shape.adapter_parameters else 0.0
    shared = (shape.trained * precision.weights + frozen) * layout.share(3)
    has_own_reference = layout.has_reference and not shape.adapter_parameters
    return Memory(
        # Under stage 3, every GPU gathers the module that it computes; the embedding is the largest.
        weights=shared + (4 * shape.vocab * shape.hidden if layout.zero_stage >= 3 else 0),
        reference=shape.parameters * precision.weights * layout.share(3) if has_own_reference else 0.0,
        optimizer=shape.trained * precision.optimizer * layout.share(1),
        overhead=CPU_OVERHEAD if layout.is_cpu else GPU_OVERHEAD,
        sampling=max(_rollout(shape, layout, workload, shared), _scoring(shape, layout, workload)),
        update=_update(shape, layout, workload),
    )


def _rollout(shape: ModelShape, layout: Layout, workload: Workload, shared_weights: float) -> float:
    """Return the bytes that sampling adds; an engine's are not the run's (see `fits`).

    Under stage 3 every GPU gathers the other GPUs' shares of the weights.
    """
    if not workload.rollout_rows or layout.engine_share:
        return 0.0
    gathered = shared_weights * (layout.num_gpus - 1) if layout.zero_stage >= 3 else 0.0
    cache = cache_bytes(shape, workload.rollout_rows * (workload.prompt + workload.answer), layout.compute)
    # Logits; scaled logits and their exponentials, in float32 (generation/sampling.py).
    logits = workload.rollout_rows * shape.vocab * (layout.compute + 2 * 4)
    return gathered + cache + logits + _forward(shape, layout, workload.rollout_rows * workload.prompt)


def _scoring(shape: ModelShape, layout: Layout, workload: Workload) -> float:
    tile = _head_tile(shape, layout, workload.scoring.scored)
    return _forward(shape, layout, workload.scoring.tokens) + tile


def _update(shape: ModelShape, layout: Layout, workload: Workload) -> float:
    """Return the bytes of the gradients, and of a forward and backward pass or of the optimizer's step.

    DistributedDataParallel (several GPUs, no ZeRO) keeps a second copy of the gradients in its buckets.
    """
    precision = layout.precision
    copies = 2 if layout.zero_stage == 0 and layout.num_gpus > 1 else 1
    passes = activation_bytes(shape, layout, workload.update.tokens)
    passes += _head(shape, layout, workload.update.scored) + shape.trained * precision.cast
    step = shape.trained * precision.step * layout.share(1)
    return shape.trained * precision.gradients * copies * layout.share(2) + max(passes, step)


def cache_bytes(shape: ModelShape, tokens: float, element: float = 2) -> float:
    """Return the bytes of the attention keys and values of `tokens` tokens in all layers.

    Example: Qwen2.5-1.5B, 28 layers of 2 key-value heads of 128: 2 * 28 * 2 * 128 * 2 = 28,672 per token.
    """
    return 2 * shape.layers * shape.keys * tokens * element


def activation_bytes(shape: ModelShape, layout: Layout, tokens: int) -> float:
    """Return the bytes of the activations of a forward and backward pass over `tokens` tokens.

    A layer keeps per token: of each RMSNorm its input in float32 and two tensors in the computing precision;
    queries, keys, values and the output of attention, whose scores are assumed not to be kept; of the MLP the
    gate, its activation, the up projection and their product. With checkpointing (arXiv 1604.06174) all
    layers keep their input, and one layer its activations and gradients.
    """
    kept = 6 * shape.hidden + 2 * shape.keys + 4 * shape.intermediate
    layer = kept * layout.compute + 2 * shape.hidden * 4
    if not layout.checkpoints_activations:
        return tokens * shape.layers * layer
    return tokens * (shape.layers * shape.hidden * layout.compute + 2 * layer)


def _forward(shape: ModelShape, layout: Layout, tokens: int) -> float:
    """Return the bytes of a forward pass without gradients: residual stream, norm and MLP of one layer."""
    return tokens * (2 * shape.hidden + 3 * shape.intermediate) * layout.compute


def _head(shape: ModelShape, layout: Layout, tokens: int) -> float:
    """Return the bytes of the output layer's forward and backward pass over `tokens` answer tokens.

    Counted are one tile of logits, one of their gradients, the float32 gradients of the hidden states, and
    those of the layer's weight if it is trained.
    """
    weight = 0 if shape.adapter_parameters else shape.vocab * shape.hidden * 4
    return 2 * _head_tile(shape, layout, tokens) + tokens * shape.hidden * 4 + weight


def _head_tile(shape: ModelShape, layout: Layout, tokens: int) -> float:
    width = HEAD_TILE_VOCAB_CPU if layout.is_cpu else HEAD_TILE_VOCAB
    return min(tokens, HEAD_TILE_TOKENS) * min(shape.vocab, width) * layout.compute


def fits(needed: float, available: float, engine_share: float = 0.0) -> bool:
    """Return whether a card of `available` bytes has room for `needed` bytes beside the share of an engine.

    Example: on a card of 80 GiB, an engine with a share of 0.3 leaves (0.95 - 0.3) * 80 = 52 GiB.
    """
    return needed <= (USABLE - engine_share) * available


SHARDING = ("nothing sharded", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3 or FSDP")


def model_text(name: str | None, shape: ModelShape, layout: Layout) -> str:
    """Return the model's size, and the bytes per trained parameter."""
    adapter = f", {shape.adapter_parameters:,} of adapters are trained" if shape.adapter_parameters else ""
    precision = layout.precision
    return (
        f"model: {name}, {shape.parameters:,} parameters{adapter}, context {shape.context} tokens\n"
        f"states: {layout.num_gpus} process(es), {SHARDING[layout.zero_stage]}; bytes per trained parameter: "
        f"weights {precision.weights:g}, gradients {precision.gradients:g}, "
        f"optimizer {precision.optimizer:g}"
    )


def memory_text(shape: ModelShape, layout: Layout, workload: Workload, rows: str) -> str:
    """Return the parts of a run's memory, and its peak compared with this machine's, if it is known.

    Args:
        rows: Layout of the update's rows. Example: `prefix trees of rows`.

    """
    memory = estimate(shape, layout, workload)
    place, machine = ("process", "machine") if layout.is_cpu else ("GPU", "GPU")
    parts = [f"{name} {size / GIB:.2f}" for name, size in memory._asdict().items()]
    verdict = f"needs {memory.peak / GIB:.1f} GiB per {place}"
    if layout.engine_share:
        verdict += f" beside vLLM's {layout.engine_share:.0%} of its memory"
    if available := _available_bytes(layout):
        room = "fits" if fits(memory.peak, available, layout.engine_share) else "does NOT fit"
        verdict += f", {room} in this {machine}'s {available / GIB:.1f} GiB"
    return (
        f"memory, estimated for {rows} of {workload.prompt + workload.answer} tokens, the longest possible, "
        f"in GiB: {', '.join(parts[:4])}, and {parts[4]} or {parts[5]}\n{verdict}"
    )


def _available_bytes(layout: Layout) -> int:
    """Return the memory of this machine, or of its first GPU; 0 if a run on GPUs is planned without one."""
    if layout.is_cpu:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else 0


def too_many_passes(passes: float, most: int) -> list[str]:
    """Return the warning about a run with more passes over its data than `most`; [] if it has fewer."""
    if passes <= most:
        return []
    return [
        f"{passes:.0f} passes over the data, more than {most}: the model may learn it by heart; lower "
        "--max_steps, or give --num_train_epochs"
    ]


def warnings_text(warnings: Sequence[str]) -> str:
    """Return one line per warning."""
    return "\n".join(f"warning: {warning}" for warning in warnings) or "no warnings"

"""Estimate of the memory that a training run needs on each GPU.

Model states follow ZeRO (arXiv 1910.02054, sec. 3.1 and 5): P parameters trained with AdamW in bfloat16 need
2 P (weights) + 2 P (gradients) + 12 P (float32 copy 4, two moments 8) bytes. N GPUs share the last term under
stage 1, the gradients too under stage 2, the weights too under stage 3. During the optimizer step, DeepSpeed
adds a float32 copy of a GPU's share of the gradients: 4 P / N. Example without that copy, P = 1e9 and N = 8:
stage 1 needs 2 + 2 + 12 / 8 = 5.5 GB, stage 2 needs 2 + 14 / 8 = 3.75 GB, stage 3 needs 16 / 8 = 2 GB.
DeepSpeed's own estimators cover stages 2 and 3 in bfloat16 without adapters; tests compare these with them.

Does not know options or models. Sizes are bytes on one GPU, or in the memory of one process on a processor.
They are estimates, not measurements, with an intended error of at most 20 %. Fragmentation, ZeRO's
communication buckets and padding beyond the assumed lengths are not counted.
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
HEAD_TILE_VOCAB_CPU = 256  # on a processor, training/trl_patches.py makes them this narrow


class Memory(NamedTuple):
    """Bytes on one GPU at the worst moment of a phase."""

    weights: float
    reference: float
    optimizer: float
    gradients: float
    cache: float
    activations: float
    logits: float
    overhead: float

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return sum(self)


def phases(shape: ModelShape, layout: Layout, workload: Workload) -> dict[str, Memory]:
    """Return the memory of each phase of an update. The run needs that of the largest phase.

    Returns:
        Memory of `rollout` (sampling), `scoring` (old and reference log-probabilities), `update` (forward and
        backward pass) and `step` (optimizer step). A run without sampling has only the last two.

    """
    weights, optimizer = weight_bytes(shape, layout), optimizer_bytes(shape, layout)
    gradients, reference = gradient_bytes(shape, layout), reference_bytes(shape, layout)
    overhead = CPU_OVERHEAD if layout.is_cpu else GPU_OVERHEAD
    resident = Memory(weights, reference, optimizer, 0, 0, 0, 0, overhead)
    update = resident._replace(
        weights=weights + shape.trained * layout.precision.cast,
        gradients=gradients,
        activations=activation_bytes(shape, layout, workload.update.tokens),
        logits=head_bytes(shape, layout, workload.update.scored),
    )
    step = shape.trained * layout.precision.step * layout.share(1)
    memory = {"update": update, "step": resident._replace(gradients=gradients + step)}
    if workload.rollout_rows:
        longest = workload.prompt + workload.answer
        memory["rollout"] = resident._replace(
            weights=weights + gathered_bytes(shape, layout),
            cache=cache_bytes(shape, workload.rollout_rows * longest, layout.cached),
            activations=forward_bytes(shape, layout, workload.rollout_rows * workload.prompt),
            # Logits; scaled logits and their exponentials, in float32 (generation/sampling.py).
            logits=workload.rollout_rows * shape.vocab * (layout.compute + 2 * 4),
        )
        if layout.engine_share:  # the engine's memory is not the run's; see `fits`
            memory["rollout"] = resident
        memory["scoring"] = resident._replace(
            reference=reference + _whole_reference_bytes(shape, layout),
            activations=forward_bytes(shape, layout, workload.scoring.tokens),
            logits=_head_tile_bytes(shape, layout, workload.scoring.scored),
        )
    return {name: memory[name] for name in ("rollout", "scoring", "update", "step") if name in memory}


def fits(needed: float, available: float, engine_share: float = 0.0) -> bool:
    """Return whether a card of `available` bytes has room for `needed` bytes beside the share of an engine.

    Example: on a card of 80 GiB, an engine with a share of 0.3 leaves (0.95 - 0.3) * 80 = 52 GiB.
    """
    return needed <= (USABLE - engine_share) * available


def weight_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes of the policy's weights: trained parameters, and the frozen base under an adapter.

    Under stage 3 they include the module that every GPU gathers to compute it; see `_whole_module_bytes`.
    """
    weights = shape.trained * layout.precision.weights
    if shape.adapter_parameters:
        in_layers = shape.layers * shape.layer_parameters
        each = layout.base_weights if layout.layer_weights is None else layout.layer_weights
        weights += in_layers * each + (shape.parameters - in_layers) * layout.base_weights
    return weights * layout.share(3) + _whole_module_bytes(shape, layout)


def gathered_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes that sampling adds under stage 3: the other GPUs' shares of the weights."""
    share = weight_bytes(shape, layout) - _whole_module_bytes(shape, layout)
    return share * (layout.num_gpus - 1) if layout.zero_stage >= 3 else 0.0


def gradient_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes of the gradients.

    DistributedDataParallel (several GPUs, no ZeRO) keeps a second copy in its communication buckets.

    Example: 1e9 parameters in float32 on 2 GPUs without ZeRO take 4 GB and 4 GB of buckets.
    """
    copies = 2 if layout.zero_stage == 0 and layout.num_gpus > 1 else 1
    return shape.trained * layout.precision.gradients * copies * layout.share(2)


def optimizer_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes of AdamW's moments and of the float32 copy.

    Example: 1e9 parameters in bfloat16 under stage 1 on 8 GPUs take 12e9 / 8 = 1.5 GB.
    """
    return shape.trained * (layout.precision.master + layout.precision.moments) * layout.share(1)


def reference_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes of the reference model.

    They are 0 without a KL penalty. They are also 0 under an adapter, whose base serves as the reference.
    """
    if not layout.has_reference or shape.adapter_parameters:
        return 0.0
    return shape.parameters * layout.precision.weights * layout.share(3)


def cache_bytes(shape: ModelShape, tokens: float, element: float = 2) -> float:
    """Return the bytes of the attention keys and values of `tokens` tokens in all layers.

    Example: Qwen2.5-1.5B, 28 layers of 2 key-value heads of 128: 2 * 28 * 2 * 128 * 2 = 28,672 per token.
    """
    return 2 * shape.layers * shape.keys * tokens * element


def layer_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes per token that one decoder layer keeps for its backward pass.

    Each of the two RMSNorms keeps its input in float32 and two tensors in the computing precision. Attention
    keeps queries, keys, values and its output; its implementation is assumed to keep no scores. The gated MLP
    keeps the gate, its activation, the up projection and their product.
    """
    kept = 4 * shape.hidden + 2 * shape.queries + 2 * shape.keys + 4 * shape.intermediate
    return kept * layout.compute + 2 * shape.hidden * 4


def activation_bytes(shape: ModelShape, layout: Layout, tokens: int) -> float:
    """Return the bytes of the activations of a forward and backward pass over `tokens` tokens.

    Without checkpointing these are the activations of all layers. With it (arXiv 1604.06174) they are the
    input of every layer, and the activations and gradients of one layer.
    """
    layer = layer_bytes(shape, layout)
    if not layout.checkpoints_activations:
        return tokens * shape.layers * layer
    return tokens * (shape.layers * shape.hidden * layout.compute + 2 * layer)


def forward_bytes(shape: ModelShape, layout: Layout, tokens: int) -> float:
    """Return the bytes of a forward pass without gradients: residual stream, norm and MLP of one layer."""
    return tokens * (2 * shape.hidden + 3 * shape.intermediate) * layout.compute


def head_bytes(shape: ModelShape, layout: Layout, tokens: int) -> float:
    """Return the bytes of the output layer's forward and backward pass over `tokens` answer tokens.

    Counted are one tile of logits, one of their gradients, the float32 gradients of the hidden states, and
    those of the layer's weight if it is trained.
    """
    weight = 0 if shape.adapter_parameters else shape.vocab * shape.hidden * 4
    return 2 * _head_tile_bytes(shape, layout, tokens) + tokens * shape.hidden * 4 + weight


def _head_tile_bytes(shape: ModelShape, layout: Layout, tokens: int) -> float:
    width = HEAD_TILE_VOCAB_CPU if layout.is_cpu else HEAD_TILE_VOCAB
    return min(tokens, HEAD_TILE_TOKENS) * min(shape.vocab, width) * layout.compute


def _whole_module_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes of the largest module under stage 3, else 0.

    Every GPU gathers the current and the next module in bfloat16: 4 bytes per parameter, as in DeepSpeed's
    estimator. FSDP2 gathers in float32, and keeps the embedding and the output layer between the layers'
    passes.
    """
    if layout.zero_stage < 3:
        return 0.0
    if layout.is_fsdp:
        return 4 * shape.vocab * shape.hidden + 8 * shape.layer_parameters
    return 4 * max(shape.vocab * shape.hidden, shape.layer_parameters)


def _whole_reference_bytes(shape: ModelShape, layout: Layout) -> float:
    """Return the bytes that a pass of the reference adds under FSDP2, which gathers it in one piece."""
    if not layout.is_fsdp:
        return 0.0
    return reference_bytes(shape, layout) * (layout.num_gpus - 1)


SHARDING = ("nothing sharded", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3 or FSDP")


def model_text(name: str | None, shape: ModelShape, layout: Layout) -> str:
    """Return the model's size, and the bytes per trained parameter."""
    adapter = f", {shape.adapter_parameters:,} of adapters are trained" if shape.adapter_parameters else ""
    precision = layout.precision
    return (
        f"model: {name}, {shape.parameters:,} parameters{adapter}, context {shape.context} tokens\n"
        f"states: {layout.num_gpus} process(es), {SHARDING[layout.zero_stage]}; bytes per trained parameter: "
        f"weights {precision.weights:g}, gradients {precision.gradients:g}, "
        f"optimizer {precision.master + precision.moments:g}"
    )


def memory_text(shape: ModelShape, layout: Layout, workload: Workload, rows: str) -> str:
    """Return a table of the memory of every phase, and its peak compared with this machine's, if it is known.

    Args:
        rows: Layout of the update's rows. Example: `prefix trees of rows`.

    """
    memory = phases(shape, layout, workload)
    place, machine = ("process", "machine") if layout.is_cpu else ("GPU", "GPU")
    head, longest = f"GiB per {place}", workload.prompt + workload.answer
    lines = [
        f"memory, estimated for {rows} of {longest} tokens, the longest possible",
        f"{head:<16}" + "".join(f"{name:>12}" for name in (*Memory._fields, "total")),
    ]
    for name, parts in memory.items():
        lines.append(f"{name:<16}" + "".join(f"{size / GIB:>12.2f}" for size in (*parts, parts.total)))
    needed = max(phase.total for phase in memory.values())
    verdict = f"needs {needed / GIB:.1f} GiB per {place}"
    if layout.engine_share:
        verdict += f" beside vLLM's {layout.engine_share:.0%} of its memory"
    if available := _available_bytes(layout):
        room = "fits" if fits(needed, available, layout.engine_share) else "does NOT fit"
        verdict += f", {room} in this {machine}'s {available / GIB:.1f} GiB"
    return "\n".join([*lines, verdict])


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

"""How much memory a training run needs on each GPU, worked out on paper before a GPU is touched.

Model states follow ZeRO (arXiv 1910.02054, sec. 3.1 and 5): P parameters trained with AdamW in bfloat16 need
2 P (weights) + 2 P (gradients) + 12 P (float32 copy 4, two moments 8) bytes, and N GPUs share the last term
(stage 1), the gradients too (stage 2), the weights too (stage 3). DeepSpeed adds a float32 copy of its share
of the gradients while it steps: 4 P / N. Worked example, P = 1e9 and N = 8, without that copy: stage 1
2 + 2 + 12 / 8 = 5.5 GB, stage 2 2 + 14 / 8 = 3.75 GB, stage 3 16 / 8 = 2 GB.

Standard library only; knows neither configurations nor models (`sizes.py` reads those). Sizes are bytes on
one GPU: estimates, not measured, meant to be right within a fifth. Not counted: fragmentation, communication
buckets, batches that are padded further than assumed.
"""

from dataclasses import dataclass
from typing import NamedTuple

GIB = 2**30
OVERHEAD = 1.5 * GIB  # context of CUDA, workspaces of cuBLAS and NCCL: assumed
USABLE = 0.95  # share of a card that a run can fill before the allocator starts to fail: assumed
HEAD_TILE_TOKENS, HEAD_TILE_VOCAB = 4096, 32768  # trl 1.16: logits exist in tiles of this size, never whole
NF4 = 0.5 + 4 / 64  # bytes per parameter: 4 bits, and a float32 scale per 64 of them (arXiv 2305.14314)


@dataclass(frozen=True)
class ModelShape:
    """What decides about the memory and the time of a decoder-only model.

    Attributes:
        parameters: All of them, tied ones counted once.
        layer_parameters: Those of one decoder layer.
        adapter_parameters: Those that LoRA adds; 0 where every parameter is trained.
        context: Longest transcript in tokens that the model was made for.

    """

    parameters: int
    layer_parameters: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int
    adapter_parameters: int = 0

    @property
    def trained(self) -> int:
        """Parameters that have gradients."""
        return self.adapter_parameters or self.parameters


@dataclass(frozen=True)
class Precision:
    """Bytes per trained parameter.

    Attributes:
        weights: As the forward pass reads them.
        gradients: As they are accumulated.
        master: A float32 copy that the optimizer updates, where the weights are of a lower precision.
        moments: AdamW's two.
        step: A float32 copy of the gradients that lives while the optimizer steps.
        cast: bfloat16 copies of float32 weights that autocast keeps during a forward and backward pass.

    """

    weights: float
    gradients: float
    master: float = 0.0
    moments: float = 8.0
    step: float = 0.0
    cast: float = 0.0


ZERO_BF16 = Precision(weights=2, gradients=2, master=4, step=4)  # DeepSpeed, bf16
ZERO_FLOAT32 = Precision(weights=4, gradients=4, master=4)  # DeepSpeed keeps its copy even so
AUTOCAST = Precision(weights=4, gradients=4, cast=2)  # float32 weights, bf16 arithmetic: no DeepSpeed
FLOAT32 = Precision(weights=4, gradients=4)
PURE_BF16 = Precision(weights=2, gradients=2, moments=4)  # small updates are rounded away


@dataclass(frozen=True)
class Setting:
    """How a run lays its states out.

    Attributes:
        precision: Of what is trained.
        zero_stage: 0 keeps everything on every GPU; FSDP's full shard counts as 3.
        num_gpus: N, over all machines.
        base_weights: Bytes per frozen parameter under an adapter.
        layer_weights: Likewise in the decoder layers, where those are quantized (QLoRA): `NF4`, or 1 for 8
            bits. None: as `base_weights`.
        has_reference: A second model, for the KL penalty. With an adapter the base is the reference.
        checkpoints_activations: Only each layer's input is kept for the backward pass.
        compute: Bytes per activation.

    """

    precision: Precision = ZERO_BF16
    zero_stage: int = 0
    num_gpus: int = 1
    base_weights: float = 2.0
    layer_weights: float | None = None
    has_reference: bool = True
    checkpoints_activations: bool = True
    compute: int = 2

    def share(self, stage: int) -> float:
        """1 / N for what this ZeRO stage shards, else 1."""
        return 1 / self.num_gpus if self.zero_stage >= stage else 1.0


@dataclass(frozen=True)
class Load:
    """What passes through the model at a time on one GPU; 0 rows where a phase does not exist.

    Attributes:
        rollout_rows: Sequences that are sampled at a time.
        scoring_rows: Rows that policy and reference score at a time.
        update_rows: Rows of one forward and backward pass.
        prompt: Longest transcript before an answer, in tokens.
        answer: Longest answer, in tokens.

    """

    rollout_rows: int
    scoring_rows: int
    update_rows: int
    prompt: int
    answer: int


class Memory(NamedTuple):
    """Bytes on one GPU at the worst moment of a phase."""

    weights: float
    reference: float
    optimizer: float
    gradients: float
    cache: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        """With what CUDA itself takes."""
        return sum(self) + OVERHEAD


def phases(shape: ModelShape, setting: Setting, load: Load) -> dict[str, Memory]:
    """Memory of each phase of an update; the run needs the largest.

    Returns:
        `rollout` (sampling), `scoring` (old and reference log-probabilities), `update` (forward and backward)
        and `step` (the optimizer).

    """
    weights, optimizer = weight_bytes(shape, setting), optimizer_bytes(shape, setting)
    gradients, reference = gradient_bytes(shape, setting), reference_bytes(shape, setting)
    resident = Memory(weights, reference, optimizer, 0, 0, 0, 0)
    tokens = load.prompt + load.answer
    update = resident._replace(
        weights=weights + shape.trained * setting.precision.cast,
        gradients=gradients,
        activations=activation_bytes(shape, setting, load.update_rows * tokens),
        logits=head_bytes(shape, setting, load.update_rows * load.answer),
    )
    step = shape.trained * setting.precision.step * setting.share(1)
    found = {"update": update, "step": resident._replace(gradients=gradients + step)}
    if load.rollout_rows:
        found["rollout"] = resident._replace(
            weights=weights + gathered_bytes(shape, setting),
            cache=cache_bytes(shape, load.rollout_rows * tokens, setting.compute),
            activations=forward_bytes(shape, setting, load.rollout_rows * load.prompt),
            logits=load.rollout_rows * shape.vocab * 3 * 4,  # float32: scores, scaled scores, probabilities
        )
        found["scoring"] = resident._replace(
            activations=forward_bytes(shape, setting, load.scoring_rows * tokens),
            logits=_head_tile(shape, setting, load.scoring_rows * load.answer),
        )
    return {name: found[name] for name in ("rollout", "scoring", "update", "step") if name in found}


def peak(memory: dict[str, Memory]) -> float:
    """Bytes of the phase that needs most."""
    return max(phase.total for phase in memory.values())


def fits(needed: float, card_gib: float) -> bool:
    """Whether a card of so many GiB has room for it."""
    return needed <= USABLE * card_gib * GIB


def weight_bytes(shape: ModelShape, setting: Setting) -> float:
    """The policy: what is trained, and under an adapter the frozen base, its layers in 4 or 8 bits where
    they are quantized.

    Under stage 3 the largest module is whole while it computes, twice in bfloat16 (it and the next one): 4
    bytes per parameter, as DeepSpeed's own estimate has it.
    """
    weights = shape.trained * setting.precision.weights
    if shape.adapter_parameters:
        in_layers = shape.layers * shape.layer_parameters
        of_layers = setting.base_weights if setting.layer_weights is None else setting.layer_weights
        weights += in_layers * of_layers + (shape.parameters - in_layers) * setting.base_weights
    return weights * setting.share(3) + _live_bytes(shape, setting)


def gathered_bytes(shape: ModelShape, setting: Setting) -> float:
    """What stage 3 adds while it samples: the rest of the weights, gathered on every GPU."""
    sharded = weight_bytes(shape, setting) - _live_bytes(shape, setting)
    return sharded * (setting.num_gpus - 1) if setting.zero_stage >= 3 else 0.0


def gradient_bytes(shape: ModelShape, setting: Setting) -> float:
    """Gradients; where nothing shards them, DistributedDataParallel holds them a second time in its buckets.

    Example: 1e9 parameters in float32 on 2 GPUs without ZeRO: 4 GB, and 4 GB of buckets.
    """
    copies = 2 if setting.zero_stage == 0 and setting.num_gpus > 1 else 1
    return shape.trained * setting.precision.gradients * copies * setting.share(2)


def optimizer_bytes(shape: ModelShape, setting: Setting) -> float:
    """AdamW's moments and the float32 copy. Example: 1e9 parameters, bfloat16, stage 1, 8 GPUs: 1.5 GB."""
    return shape.trained * (setting.precision.master + setting.precision.moments) * setting.share(1)


def reference_bytes(shape: ModelShape, setting: Setting) -> float:
    """The frozen copy of step 0; none without a KL penalty, and none where an adapter can be switched off."""
    if not setting.has_reference or shape.adapter_parameters:
        return 0.0
    return shape.parameters * setting.precision.weights * setting.share(3)


def cache_bytes(shape: ModelShape, tokens: int, element: int = 2) -> float:
    """Keys and values of so many tokens in all layers.

    Example: Qwen2.5-1.5B, 28 layers of 2 key-value heads of 128: 2 * 28 * 2 * 128 * 2 = 28,672 bytes a token.
    """
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * tokens * element


def layer_bytes(shape: ModelShape, setting: Setting) -> float:
    """What one decoder layer keeps of one token for its backward pass, with attention that keeps no scores.

    Two RMSNorms keep their input in float32 and, twice over, in the computing precision besides; attention
    keeps queries, keys, values and its output; the gated MLP keeps gate, its activation, up and their
    product.
    """
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    kept = 4 * shape.hidden + 2 * queries + 2 * keys + 4 * shape.intermediate
    return kept * setting.compute + 2 * shape.hidden * 4


def activation_bytes(shape: ModelShape, setting: Setting, tokens: int) -> float:
    """Activations of a forward and backward pass over so many tokens: every layer's, or with checkpointing
    (arXiv 1604.06174) every layer's input and one layer in full, with its gradients.
    """
    layer = layer_bytes(shape, setting)
    if not setting.checkpoints_activations:
        return tokens * shape.layers * layer
    return tokens * (shape.layers * shape.hidden * setting.compute + 2 * layer)


def forward_bytes(shape: ModelShape, setting: Setting, tokens: int) -> float:
    """Activations of a forward pass without gradients: one layer's stream, norm and gated MLP."""
    return tokens * (2 * shape.hidden + 3 * shape.intermediate) * setting.compute


def head_bytes(shape: ModelShape, setting: Setting, tokens: int) -> float:
    """The output layer over so many answer tokens, forward and backward: a tile of logits and one of their
    gradients, float32 gradients of the hidden states, and of its weight where that is trained.
    """
    weight = 0 if shape.adapter_parameters else shape.vocab * shape.hidden * 4
    return 2 * _head_tile(shape, setting, tokens) + tokens * shape.hidden * 4 + weight


def _head_tile(shape: ModelShape, setting: Setting, tokens: int) -> float:
    return min(tokens, HEAD_TILE_TOKENS) * min(shape.vocab, HEAD_TILE_VOCAB) * setting.compute


def _live_bytes(shape: ModelShape, setting: Setting) -> float:
    if setting.zero_stage < 3:
        return 0.0
    return 4 * max(shape.vocab * shape.hidden, shape.layer_parameters)

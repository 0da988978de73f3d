"""Sizes that the estimates of memory and time depend on: model, precision, layout and workload.

Standard library only. `shapes_from_options.py` derives them from a run's options.
"""

from dataclasses import dataclass
from typing import NamedTuple

GIB = 2**30


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder-only model.

    Attributes:
        parameters: All parameters; tied ones count once.
        layer_parameters: Parameters of one decoder layer.
        layers: Decoder layers.
        hidden: Width of the hidden states.
        intermediate: Width of the MLP.
        heads: Attention heads.
        kv_heads: Heads of keys and values.
        head_dim: Width of one head.
        vocab: Rows of the embedding.
        context: Longest sequence that the model supports, in tokens.
        adapter_parameters: Parameters that LoRA adds; 0: every parameter is trained.

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
        weights: Weights in the forward pass.
        gradients: Accumulated gradients.
        master: float32 copy that the optimizer updates, if the weights have a lower precision.
        moments: Both moments of AdamW.
        step: float32 copy of the gradients that exists while the optimizer steps.
        cast: bfloat16 copies of float32 weights that autocast keeps during a forward and backward pass.

    """

    weights: float
    gradients: float
    master: float = 0.0
    moments: float = 8.0
    step: float = 0.0
    cast: float = 0.0


ZERO_BF16 = Precision(weights=2, gradients=2, master=4, step=4)  # DeepSpeed with bf16
ZERO_FLOAT32 = Precision(weights=4, gradients=4, master=4)  # DeepSpeed keeps its copy in float32 too
AUTOCAST = Precision(weights=4, gradients=4, cast=2)  # without DeepSpeed: float32 weights, bf16 arithmetic
FLOAT32 = Precision(weights=4, gradients=4)
PURE_BF16 = Precision(weights=2, gradients=2, moments=4)  # small updates are lost to rounding

NF4 = 0.5 + 4 / 64  # bytes per parameter: 4 bits, and a float32 scale per 64 of them (arXiv 2305.14314)


@dataclass(frozen=True)
class Layout:
    """Precision of a run's weights and their division among its GPUs.

    Attributes:
        precision: Precision of the trained parameters.
        zero_stage: ZeRO stage. 0: nothing is sharded. 3 also stands for FSDP's full shard.
        num_gpus: GPUs of all machines, N.
        base_weights: Bytes per frozen parameter under an adapter.
        layer_weights: Bytes per frozen parameter in quantized decoder layers (QLoRA): `NF4`, or 1 for 8
            bits. None: the layers are not quantized.
        has_reference: The run has a KL penalty, which needs a reference model. Under an adapter, the base
            serves as one.
        checkpoints_activations: Only the input of each layer is kept for the backward pass.
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
        """Return a GPU's share of the states that ZeRO divides from `stage` on: 1 / N or, below it, 1."""
        return 1 / self.num_gpus if self.zero_stage >= stage else 1.0


class Pass(NamedTuple):
    """Tokens that one GPU processes in one pass: all of them, and those whose probabilities are computed."""

    tokens: int
    scored: int


@dataclass(frozen=True)
class Workload:
    """Sequences and tokens that one GPU processes at the same time in each phase of an update.

    Attributes:
        rollout_rows: Sequences sampled together; 0: a run without sampling.
        prompt: Longest prompt of any turn, in tokens.
        answer: Longest answer, in tokens.
        scoring: A forward pass of the policy or the reference.
        update: A forward and backward pass.

    """

    rollout_rows: int
    prompt: int
    answer: int
    scoring: Pass
    update: Pass

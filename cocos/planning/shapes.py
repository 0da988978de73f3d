"""Sizes that the estimates of memory and time depend on: model, precision, layout and workload.

Standard library only. `shapes_from_options.py` derives them from a run's options.
"""

from dataclasses import dataclass
from typing import NamedTuple

GIB = 2**30


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder-only model."""

    parameters: int  # all parameters; tied ones count once
    layer_parameters: int  # parameters of one decoder layer
    layers: int  # decoder layers
    hidden: int  # width of the hidden states
    intermediate: int  # width of the MLP
    heads: int  # attention heads
    kv_heads: int  # heads of keys and values
    head_dim: int  # width of one head
    vocab: int  # rows of the embedding
    context: int  # longest sequence that the model supports, in tokens
    adapter_parameters: int = 0  # parameters that LoRA adds; 0: every parameter is trained

    @property
    def trained(self) -> int:
        """Parameters that have gradients."""
        return self.adapter_parameters or self.parameters


@dataclass(frozen=True)
class Precision:
    """Bytes per trained parameter."""

    weights: float  # weights in the forward pass
    gradients: float  # accumulated gradients
    master: float = 0.0  # float32 copy that the optimizer updates, if the weights have a lower precision
    moments: float = 8.0  # both moments of AdamW
    step: float = 0.0  # float32 copy of the gradients that exists while the optimizer steps
    # bfloat16 copies of float32 weights that autocast keeps during a forward and backward pass.
    cast: float = 0.0


ZERO_BF16 = Precision(weights=2, gradients=2, master=4, step=4)  # DeepSpeed with bf16
ZERO_FLOAT32 = Precision(weights=4, gradients=4, master=4)  # DeepSpeed keeps its copy in float32 too
AUTOCAST = Precision(weights=4, gradients=4, cast=2)  # without DeepSpeed: float32 weights, bf16 arithmetic
FLOAT32 = Precision(weights=4, gradients=4)
PURE_BF16 = Precision(weights=2, gradients=2, moments=4)  # small updates are lost to rounding

NF4 = 0.5 + 4 / 64  # bytes per parameter: 4 bits, and a float32 scale per 64 of them (arXiv 2305.14314)


@dataclass(frozen=True)
class Layout:
    """Precision of a run's weights and their division among its GPUs."""

    precision: Precision = ZERO_BF16  # precision of the trained parameters
    # ZeRO stage. 0: nothing is sharded. 3 also stands for FSDP's full shard.
    zero_stage: int = 0
    num_gpus: int = 1  # GPUs of all machines, N
    base_weights: float = 2.0  # bytes per frozen parameter under an adapter
    # Bytes per frozen parameter in quantized decoder layers (QLoRA): `NF4`, or 1 for 8 bits. None: the layers
    # are not quantized.
    layer_weights: float | None = None
    # The run has a KL penalty, which needs a reference model. Under an adapter, the base serves as one.
    has_reference: bool = True
    checkpoints_activations: bool = True  # only the input of each layer is kept for the backward pass
    compute: int = 2  # bytes per activation
    is_cpu: bool = False  # the run is on a processor, not on a GPU
    is_fsdp: bool = False  # stage 3 is PyTorch's FSDP2, not DeepSpeed's ZeRO-3
    # Share of the card that a colocated vLLM engine reserves for its weights and cache; 0: transformers
    # samples.
    engine_share: float = 0.0

    @property
    def sampler(self) -> str:
        """Name of what samples the completions."""
        return "vLLM" if self.engine_share else "transformers"

    @property
    def cached(self) -> float:
        """Bytes per cached number: under autocast, RoPE makes keys float32, and values are bfloat16."""
        return (4 + self.compute) / 2 if self.precision.cast else self.compute

    def share(self, stage: int) -> float:
        """Return a GPU's share of the states that ZeRO divides from `stage` on: 1 / N or, below it, 1."""
        return 1 / self.num_gpus if self.zero_stage >= stage else 1.0


class Pass(NamedTuple):
    """Tokens that one GPU processes in one pass: all of them, and those whose probabilities are computed."""

    tokens: int
    scored: int


@dataclass(frozen=True)
class Workload:
    """Sequences and tokens that one GPU processes at the same time in each phase of an update."""

    rollout_rows: int  # sequences sampled together; 0: a run without sampling
    prompt: int  # longest prompt of any turn, in tokens
    answer: int  # longest answer, in tokens
    scoring: Pass  # a forward pass of the policy or the reference
    update: Pass  # a forward and backward pass

"""Estimate of the memory that a training run needs on each GPU.

Model states follow ZeRO (arXiv 1910.02054, sec. 3.1 and 5): P parameters trained with AdamW in bfloat16 need
2 P (weights) + 2 P (gradients) + 12 P (float32 copy 4, two moments 8) bytes. N GPUs share the last term under
stage 1, the gradients too under stage 2, the weights too under stage 3. Example, P = 1e9 and N = 8: stage 1
needs 2 + 2 + 12 / 8 = 5.5 GB, stage 2 needs 2 + 14 / 8 = 3.75 GB, stage 3 needs 16 / 8 = 2 GB.

Sizes are bytes on one GPU, or in the memory of one process on a CPU. They are estimates, not measurements,
with an intended error of at most 20 %. Fragmentation, communication buckets, padding and CPU offloading are
not counted. The model is created on the meta device, without storage, to count its parameters.
"""

import os
from dataclasses import dataclass
from typing import NamedTuple

import torch
from peft import PeftConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from trl import get_peft_config

from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.generation.adapters import adapter_config, base_model

GIB = 2**30
GPU_OVERHEAD = 1.5 * GIB  # CUDA context, workspaces of cuBLAS and NCCL: assumed
CPU_OVERHEAD = 0.6 * GIB  # Python and its libraries: measured
USABLE = 0.95  # share of a card's memory that a run can use: assumed
HEAD_TILE = 4096, 32768  # tokens and ids of the logits that trl 1.16 computes at a time
HEAD_TILE_CPU = 4096, 256  # on a CPU, training/trl_patches.py makes them this narrow
NF4 = 0.5 + 4 / 64  # bytes per parameter: 4 bits, and a float32 scale per 64 of them (arXiv 2305.14314)
SHARDING = ("nothing sharded", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3 or FSDP")


class Model(NamedTuple):
    """Sizes of a decoder-only model."""

    config: PretrainedConfig  # of its text
    parameters: int  # all parameters but an adapter's; tied ones count once
    trained: int  # parameters that have gradients, all or an adapter's

    @property
    def keys(self) -> int:
        """Width of the keys of all key-value heads; the values have the same."""
        config, heads = self.config, self.config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        return width * (getattr(config, "num_key_value_heads", None) or heads)

    @property
    def intermediate(self) -> int:
        """Width of the MLP."""
        return getattr(self.config, "intermediate_size", None) or 4 * self.config.hidden_size


@dataclass(frozen=True)
class Layout:
    """Precision of a run's weights, and their division among its GPUs; by default DeepSpeed's in bfloat16."""

    weights: int = 2  # bytes per trained parameter, and per parameter of its gradients
    # Bytes per trained parameter: AdamW's moments and, of DeepSpeed, a copy of the weights in float32.
    optimizer: int = 12
    frozen: float = 2.0  # bytes per frozen parameter under an adapter; `NF4` or 1 in quantized layers
    compute: int = 2  # bytes per activation
    zero_stage: int = 0  # ZeRO stage. 0: nothing is sharded. 3 also stands for FSDP's full shard.
    num_gpus: int = 1  # GPUs of all machines, N
    # The run has a KL penalty, which needs a reference model. Under an adapter, the base serves as one.
    has_reference: bool = True
    checkpoints_activations: bool = True  # only the input of each layer is kept for the backward pass
    is_cpu: bool = False  # the run is on a CPU, not on a GPU
    engine_share: float = 0.0  # share of the card that a colocated vLLM engine reserves; 0: no such engine

    def share(self, stage: int) -> float:
        """Return a GPU's share of the states that ZeRO divides from `stage` on: 1 / N or, below it, 1."""
        return 1 / self.num_gpus if self.zero_stage >= stage else 1.0


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


def sized_model(
    config: PretrainedConfig, peft_config: PeftConfig | None = None, trust_remote_code: bool = False
) -> Model:
    """Return the sizes of a checkpoint's model, counted on a model without storage.

    This turns off ZeRO-3, which would shard this model too. Do not train in this process afterwards.
    """
    unset_hf_deepspeed_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
        total = trained = model.num_parameters()
        if peft_config:
            trained, _ = get_peft_model(model, peft_config).get_nb_trainable_parameters()
    return Model(config.get_text_config(), total, trained)


def run_model(args: BoostConfig | CoCoSConfig) -> tuple[Model, Layout]:
    """Return the sizes of a run's model, and its layout.

    Raises:
        ValueError: The model or the adapter cannot be created.

    """
    name, trusts = args.model_name_or_path, args.trust_remote_code
    config = AutoConfig.from_pretrained(
        base_model(name), revision=args.model_revision, trust_remote_code=trusts
    )
    return sized_model(config, adapter_config(name, get_peft_config(args)), trusts), run_layout(args, config)


def run_layout(args: BoostConfig | CoCoSConfig, config: PretrainedConfig) -> Layout:
    """Return the precision and sharding that follow from a run's options.

    vLLM's share of the card is that of a colocated engine: a server's cards are not counted.
    """
    is_half, plugin = bool(args.bf16 or args.fp16), args.deepspeed_plugin
    dtype = str(config.dtype if args.dtype in ("auto", None) else args.dtype)
    is_fsdp = bool(args.fsdp) or os.environ.get("ACCELERATE_USE_FSDP", "false") == "true"
    # DeepSpeed casts the weights to the computing precision, whatever their dtype.
    is_stored_half = is_half if plugin is not None else dtype.endswith(("bfloat16", "float16"))
    # Adapters are in float32, or in bfloat16 if the base has 4 bits.
    weights = 2 if (args.load_in_4bit if args.use_peft and plugin is None else is_stored_half) else 4
    return Layout(
        weights=weights,
        optimizer=12 if plugin is not None else 2 * weights,
        frozen=NF4 if args.load_in_4bit else 1.0 if args.load_in_8bit else 2.0 if is_stored_half else 4.0,
        compute=2 if is_half or is_stored_half else 4,
        zero_stage=plugin.zero_stage if plugin is not None else 3 if is_fsdp else 0,
        num_gpus=args.world_size,
        has_reference=getattr(args, "beta", 0) > 0,
        checkpoints_activations=args.gradient_checkpointing,
        is_cpu=args.use_cpu,
        engine_share=args.vllm_gpu_memory_utilization if getattr(args, "use_vllm", False) else 0.0,
    )


def estimate(model: Model, layout: Layout, row: int, tokens: int, answers: int, sampled: int = 0) -> Memory:
    """Return the memory of a run. Under an adapter, the base model is the reference, and frozen.

    Args:
        row: Tokens of the longest prompt and answer.
        tokens: Tokens of a forward and backward pass.
        answers: Tokens of that pass whose probabilities are computed.
        sampled: Rows that are sampled, or scored, together; 0: a run without sampling.

    """
    has_adapter, config = model.trained < model.parameters, model.config
    frozen = model.parameters * layout.frozen if has_adapter else 0.0
    weights = (model.trained * layout.weights + frozen) * layout.share(3)
    # Under stage 3, sampling gathers the weights. Logits; scaled logits and their exponentials, in float32.
    gathered = weights * (layout.num_gpus - 1) if layout.zero_stage >= 3 and sampled else 0.0
    logits = sampled * config.vocab_size * (layout.compute + 2 * 4)
    rollout = gathered + cache_bytes(model, sampled * row, layout.compute) + logits
    # A pass without gradients: the residual stream and the MLP of a layer.
    scoring = sampled * row * (2 * config.hidden_size + 3 * model.intermediate) * layout.compute
    # DistributedDataParallel keeps a second copy of the gradients in its buckets.
    copies = 2 if layout.zero_stage == 0 and layout.num_gpus > 1 else 1
    gradients = model.trained * layout.weights * copies * layout.share(2)
    # The output layer: a tile of logits, one of their gradients, and gradients in float32 of the hidden
    # states and, if it is trained, of its weight.
    most_tokens, most_ids = HEAD_TILE_CPU if layout.is_cpu else HEAD_TILE
    tiles = 2 * min(answers, most_tokens) * min(config.vocab_size, most_ids) * layout.compute
    head = tiles + (answers + (0 if has_adapter else config.vocab_size)) * config.hidden_size * 4
    # DeepSpeed's step copies a GPU's share of the gradients to float32.
    step = model.trained * layout.share(1) * (4 if layout.optimizer > 2 * layout.weights else 0)
    return Memory(
        weights=weights,
        reference=weights if layout.has_reference and not has_adapter else 0.0,
        optimizer=model.trained * layout.optimizer * layout.share(1),
        overhead=CPU_OVERHEAD if layout.is_cpu else GPU_OVERHEAD,
        sampling=max(0.0 if layout.engine_share else rollout, scoring),  # an engine has a cache of its own
        update=gradients + max(activation_bytes(model, layout, tokens) + head, step),
    )


def cache_bytes(model: Model, tokens: float, element: float = 2) -> float:
    """Return the bytes of the attention keys and values of `tokens` tokens in all layers.

    Example: Qwen2.5-1.5B, 28 layers of 2 key-value heads of 128: 2 * 28 * 2 * 128 * 2 = 28,672 per token.
    """
    return 2 * model.config.num_hidden_layers * model.keys * tokens * element


def activation_bytes(model: Model, layout: Layout, tokens: int) -> float:
    """Return the bytes of the activations of a forward and backward pass over `tokens` tokens.

    A layer keeps per token: of each RMSNorm its input in float32 and two tensors in the computing precision;
    queries, keys, values and the output of attention, whose scores are assumed not to be kept; of the MLP the
    gate, its activation, the up projection and their product. With checkpointing (arXiv 1604.06174) all
    layers keep their input, and one layer its activations and gradients.
    """
    layers, hidden = model.config.num_hidden_layers, model.config.hidden_size
    kept = 6 * hidden + 2 * model.keys + 4 * model.intermediate
    layer = kept * layout.compute + 2 * hidden * 4
    if not layout.checkpoints_activations:
        return tokens * layers * layer
    return tokens * (layers * hidden * layout.compute + 2 * layer)


def model_text(name: str | None, model: Model, layout: Layout) -> str:
    """Return the model's size, and the bytes per trained parameter."""
    adapter = f", {model.trained:,} of adapters are trained" if model.trained < model.parameters else ""
    return (
        f"model: {name}, {model.parameters:,} parameters{adapter}, context "
        f"{model.config.max_position_embeddings} tokens; {layout.num_gpus} process(es), "
        f"{SHARDING[layout.zero_stage]}"
    )


def memory_text(memory: Memory, layout: Layout, row: int) -> str:
    """Return the parts of a run's memory, and its peak compared with this machine's, if it is known."""
    *parts, sampling, update = (f"{name} {size / GIB:.2f}" for name, size in memory._asdict().items())
    place = "process" if layout.is_cpu else "GPU"
    beside = f" beside vLLM's {layout.engine_share:.0%} of its memory" if layout.engine_share else ""
    room, available = "", 0
    if layout.is_cpu:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    elif torch.cuda.is_available():
        available = torch.cuda.get_device_properties(0).total_memory
    if available:
        # Example: on a card of 80 GiB, an engine with a share of 0.3 leaves (0.95 - 0.3) * 80 = 52 GiB.
        fits = "fits" if memory.peak <= (USABLE - layout.engine_share) * available else "does NOT fit"
        room = f", {fits} in this {'machine' if layout.is_cpu else place}'s {available / GIB:.1f} GiB"
    return (
        f"memory, estimated for rows of {row} tokens, the longest possible, in GiB: {', '.join(parts)}, and "
        f"{sampling} or {update}\nneeds {memory.peak / GIB:.1f} GiB per {place}{beside}{room}"
    )

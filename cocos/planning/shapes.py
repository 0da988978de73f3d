"""Sizes that the memory of a run depends on: its model, and its layout on the GPUs.

Both follow from the run's options. The model is created on the meta device, without storage, to count its
parameters.
"""

import os
from dataclasses import dataclass

import torch
from peft import PeftConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from trl import get_peft_config

from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.generation.adapters import adapter_config, base_model


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder-only model."""

    parameters: int  # all parameters; tied ones count once
    layers: int  # decoder layers
    hidden: int  # width of the hidden states, and of the queries of all attention heads
    intermediate: int  # width of the MLP
    keys: int  # width of the keys of all key-value heads; the values have the same
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
    optimizer: float = 8.0  # both moments of AdamW, and a float32 copy if the weights have a lower precision
    step: float = 0.0  # float32 copy of the gradients that exists while the optimizer steps
    cast: float = 0.0  # bfloat16 copies of the weights that autocast keeps during an update


ZERO_BF16 = Precision(weights=2, gradients=2, optimizer=12, step=4)  # DeepSpeed with bf16
ZERO_FLOAT32 = Precision(weights=4, gradients=4, optimizer=12)  # DeepSpeed keeps its copy in float32 too
AUTOCAST = Precision(weights=4, gradients=4, cast=2)  # without DeepSpeed: float32 weights, bf16 arithmetic
FLOAT32 = Precision(weights=4, gradients=4)
PURE_BF16 = Precision(weights=2, gradients=2, optimizer=4)  # small updates are lost to rounding

NF4 = 0.5 + 4 / 64  # bytes per parameter: 4 bits, and a float32 scale per 64 of them (arXiv 2305.14314)


@dataclass(frozen=True)
class Layout:
    """Precision of a run's weights and their division among its GPUs."""

    precision: Precision = ZERO_BF16  # of the trained parameters
    zero_stage: int = 0  # ZeRO stage. 0: nothing is sharded. 3 also stands for FSDP's full shard.
    num_gpus: int = 1  # GPUs of all machines, N
    frozen: float = 2.0  # bytes per frozen parameter under an adapter; `NF4` or 1 in quantized layers
    # The run has a KL penalty, which needs a reference model. Under an adapter, the base serves as one.
    has_reference: bool = True
    checkpoints_activations: bool = True  # only the input of each layer is kept for the backward pass
    compute: int = 2  # bytes per activation
    is_cpu: bool = False  # the run is on a CPU, not on a GPU
    # Share of the card that a colocated vLLM engine reserves for its weights and cache; 0: transformers
    # samples.
    engine_share: float = 0.0

    def share(self, stage: int) -> float:
        """Return a GPU's share of the states that ZeRO divides from `stage` on: 1 / N or, below it, 1."""
        return 1 / self.num_gpus if self.zero_stage >= stage else 1.0


def model_shape(
    config: PretrainedConfig, peft_config: PeftConfig | None = None, trust_remote_code: bool = False
) -> ModelShape:
    """Return the shape of a checkpoint's model, counted on a model without storage.

    This turns off ZeRO-3, which would shard this model too. Do not train in this process afterwards.
    """
    unset_hf_deepspeed_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
        parameters = model.num_parameters()
        adapter = get_peft_model(model, peft_config).get_nb_trainable_parameters()[0] if peft_config else 0
    text = config.get_text_config()
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return ModelShape(
        parameters=parameters,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        keys=head_dim * (getattr(text, "num_key_value_heads", None) or text.num_attention_heads),
        vocab=text.vocab_size,
        context=text.max_position_embeddings,
        adapter_parameters=adapter,
    )


def run_shapes(args: BoostConfig | CoCoSConfig, has_reference: bool) -> tuple[ModelShape, Layout]:
    """Return the shape of a run's model, and the run's layout.

    Raises:
        ValueError: The model or the adapter cannot be created.

    """
    name, trusts_code = args.model_name_or_path, args.trust_remote_code
    config = AutoConfig.from_pretrained(
        base_model(name), revision=args.model_revision, trust_remote_code=trusts_code
    )
    shape = model_shape(config, adapter_config(name, get_peft_config(args)), trusts_code)
    return shape, run_layout(args, config, has_reference)


def run_layout(args: BoostConfig | CoCoSConfig, config: PretrainedConfig, has_reference: bool) -> Layout:
    """Return the precision and sharding that follow from a run's options; CPU offloading is ignored.

    vLLM's share of the card is that of a colocated engine: a server's cards are not counted.
    """
    is_half = bool(args.bf16 or args.fp16)
    dtype = str(config.dtype if args.dtype in ("auto", None) else args.dtype)
    plugin = args.deepspeed_plugin
    is_fsdp = bool(args.fsdp) or os.environ.get("ACCELERATE_USE_FSDP", "false") == "true"
    # DeepSpeed casts the weights to the computing precision, whatever their dtype.
    is_stored_half = is_half if plugin is not None else dtype.endswith(("bfloat16", "float16"))
    has_engine = isinstance(args, CoCoSConfig) and args.use_vllm
    if plugin is not None:
        precision = ZERO_BF16 if is_half else ZERO_FLOAT32
    elif args.use_peft:  # adapters are in float32, or in bfloat16 if the base has 4 bits
        precision = PURE_BF16 if args.load_in_4bit else FLOAT32
    elif is_stored_half:
        precision = PURE_BF16
    else:
        precision = AUTOCAST if is_half and not is_fsdp else FLOAT32
    return Layout(
        precision=precision,
        zero_stage=plugin.zero_stage if plugin is not None else 3 if is_fsdp else 0,
        num_gpus=args.world_size,
        frozen=NF4 if args.load_in_4bit else 1.0 if args.load_in_8bit else 2.0 if is_stored_half else 4.0,
        has_reference=has_reference,
        checkpoints_activations=args.gradient_checkpointing,
        compute=2 if is_half or is_stored_half else 4,
        is_cpu=args.use_cpu,
        engine_share=args.vllm_gpu_memory_utilization if has_engine else 0.0,
    )

"""A run's options and its model's configuration as the sizes that `memory.py` and `schedule.py` reckon with.

The model is made on the meta device, without storage, to count its parameters.
"""

import os

import torch
from peft import PeftConfig, get_peft_model
from transformers import AutoModelForCausalLM, PretrainedConfig, TrainingArguments
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from trl import ModelConfig

from cocos.config import CoCoSConfig
from cocos.planning import memory
from cocos.planning.memory import Load, ModelShape, Setting
from cocos.planning.schedule import Schedule
from cocos.rewards import trained_turns


def model_shape(
    config: PretrainedConfig, peft_config: PeftConfig | None = None, trust_remote_code: bool = False
) -> ModelShape:
    """The shape of a checkpoint, parameters counted on a model without storage.

    Not for a process that goes on to train: ZeRO-3 is switched off, which would cut even this model to
    pieces.
    """
    unset_hf_deepspeed_config()
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
        parameters = model.num_parameters()
        lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
        layers = max(lists, key=lambda module: sum(p.numel() for p in module.parameters()))
        layer_parameters = sum(p.numel() for p in layers[0].parameters())
        adapter = get_peft_model(model, peft_config).get_nb_trainable_parameters()[0] if peft_config else 0
    text = config.get_text_config()
    heads = text.num_attention_heads
    return ModelShape(
        parameters=parameters,
        layer_parameters=layer_parameters,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        heads=heads,
        kv_heads=getattr(text, "num_key_value_heads", None) or heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // heads,
        vocab=text.vocab_size,
        context=text.max_position_embeddings,
        adapter_parameters=adapter,
    )


def run_setting(
    args: TrainingArguments, model_args: ModelConfig, config: PretrainedConfig, has_reference: bool
) -> Setting:
    """Precision and sharding that a run's options lead to; offloading to the processor is not considered."""
    is_half = bool(args.bf16 or args.fp16)
    dtype = str(config.dtype if model_args.dtype in ("auto", None) else model_args.dtype)
    is_stored_half = dtype.endswith(("bfloat16", "float16"))
    plugin = args.deepspeed_plugin
    is_fsdp = bool(args.fsdp) or os.environ.get("ACCELERATE_USE_FSDP", "false") == "true"
    if plugin is not None:
        precision = memory.ZERO_BF16 if is_half else memory.ZERO_FLOAT32
        is_stored_half = is_half
    elif model_args.use_peft:  # adapters are kept in float32, beside a 4-bit base in bfloat16
        precision = memory.PURE_BF16 if model_args.load_in_4bit else memory.FLOAT32
    elif is_stored_half:
        precision = memory.PURE_BF16
    else:
        precision = memory.AUTOCAST if is_half and not is_fsdp else memory.FLOAT32
    quantized = memory.NF4 if model_args.load_in_4bit else 1.0 if model_args.load_in_8bit else None
    return Setting(
        precision=precision,
        zero_stage=plugin.zero_stage if plugin is not None else 3 if is_fsdp else 0,
        num_gpus=args.world_size,
        base_weights=2.0 if is_stored_half else 4.0,
        layer_weights=quantized,
        has_reference=has_reference,
        checkpoints_activations=args.gradient_checkpointing,
        compute=2 if is_half or is_stored_half else 4,
    )


def run_schedule(args: CoCoSConfig, num_problems: int) -> Schedule:
    """What an update of this run is made of."""
    return Schedule(
        problems=num_problems,
        trajectories=args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size,
        group=args.num_generations,
        turns=args.num_turns,
        trained_turns=len(trained_turns(args.credit, args.num_turns)),
        problems_per_rollout=args.generation_batch_size // args.num_generations,
        updates_per_rollout=args.steps_per_generation
        * args.num_iterations
        // args.gradient_accumulation_steps,
    )


def run_load(args: CoCoSConfig, schedule: Schedule, setting: Setting, prompt: int) -> Load:
    """What is in a GPU's memory at a time; `prompt` is the longest transcript before an answer."""
    local = args.generation_batch_size // setting.num_gpus
    return Load(
        rollout_rows=min(args.rollout_batch_size, local),
        scoring_rows=min(args.rollout_batch_size, local * schedule.trained_turns),
        update_rows=args.per_device_train_batch_size * schedule.trained_turns,
        prompt=prompt,
        answer=args.max_completion_length,
    )

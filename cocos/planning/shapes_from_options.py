"""Shapes of a run, derived from its options and its model's configuration.

The model is created on the meta device, without storage, to count its parameters.
"""

import os
from collections.abc import Sequence

import torch
from peft import PeftConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from trl import get_peft_config

from cocos.assembly import make_objective
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.generation.adapters import adapter_config, base_model
from cocos.planning import shapes
from cocos.planning.schedule import CALIBRATED_S, Schedule
from cocos.planning.shapes import Layout, ModelShape, Precision, Workload
from cocos.problems import Problem


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
        module_lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
        # The name of the list of decoder layers depends on the architecture. It is always the largest list.
        layers = max(module_lists, key=lambda module: sum(p.numel() for p in module.parameters()))
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


def run_shapes(
    args: BoostConfig | CoCoSConfig, has_reference: bool
) -> tuple[PretrainedConfig, ModelShape, Layout]:
    """Return the configuration and the shape of a run's model, and the run's layout.

    Raises:
        ValueError: The model or the adapter cannot be created.

    """
    name, trusts_code = args.model_name_or_path, args.trust_remote_code
    config = AutoConfig.from_pretrained(
        base_model(name), revision=args.model_revision, trust_remote_code=trusts_code
    )
    shape = model_shape(config, adapter_config(name, get_peft_config(args)), trusts_code)
    return config, shape, run_layout(args, config, has_reference)


def run_layout(args: BoostConfig | CoCoSConfig, config: PretrainedConfig, has_reference: bool) -> Layout:
    """Return the precision and sharding that follow from a run's options; CPU offloading is ignored."""
    is_half = bool(args.bf16 or args.fp16)
    dtype = str(config.dtype if args.dtype in ("auto", None) else args.dtype)
    plugin = args.deepspeed_plugin
    is_fsdp = bool(args.fsdp) or os.environ.get("ACCELERATE_USE_FSDP", "false") == "true"
    # DeepSpeed casts the weights to the computing precision, whatever their dtype.
    is_stored_half = is_half if plugin is not None else dtype.endswith(("bfloat16", "float16"))
    quantized = shapes.NF4 if args.load_in_4bit else 1.0 if args.load_in_8bit else None
    return Layout(
        precision=_precision(args, is_half, is_stored_half, is_fsdp),
        zero_stage=plugin.zero_stage if plugin is not None else 3 if is_fsdp else 0,
        num_gpus=args.world_size,
        base_weights=2.0 if is_stored_half else 4.0,
        layer_weights=quantized,
        has_reference=has_reference,
        checkpoints_activations=args.gradient_checkpointing,
        compute=2 if is_half or is_stored_half else 4,
        is_cpu=args.use_cpu,
        is_fsdp=is_fsdp,
        engine_share=_engine_share(args),
    )


def _engine_share(args: BoostConfig | CoCoSConfig) -> float:
    """Return the share of the card that vLLM reserves; a server is on other cards, which are not counted."""
    if not isinstance(args, CoCoSConfig) or not args.use_vllm:
        return 0.0
    return float(args.vllm_gpu_memory_utilization)


def _precision(
    args: BoostConfig | CoCoSConfig, is_half: bool, is_stored_half: bool, is_fsdp: bool
) -> Precision:
    if args.deepspeed_plugin is not None:
        return shapes.ZERO_BF16 if is_half else shapes.ZERO_FLOAT32
    if args.use_peft:  # adapters are in float32, or in bfloat16 if the base has 4 bits
        return shapes.PURE_BF16 if args.load_in_4bit else shapes.FLOAT32
    if is_stored_half:
        return shapes.PURE_BF16
    return shapes.AUTOCAST if is_half and not is_fsdp else shapes.FLOAT32


def run_schedule(args: CoCoSConfig, problems: Sequence[Problem]) -> Schedule:
    """Return the sizes of one update of this run. `problems` are those of its prompts."""
    is_calibrated = args.program_timeout_factor is not None and all(p.code.strip() for p in problems)
    return Schedule(
        problems=len(problems),
        trajectories=args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size,
        group=args.num_generations,
        turns=args.num_turns,
        trained_turns=len(make_objective(args).trained_turns),
        problems_per_rollout=args.generation_batch_size // args.num_generations,
        updates_per_rollout=args.steps_per_generation
        * args.num_iterations
        // args.gradient_accumulation_steps,
        shares_prefixes=args.share_prefixes,
        timeout_s=min(CALIBRATED_S, args.program_timeout_s) if is_calibrated else args.program_timeout_s,
        waits_for_programs=args.feedback != "none" or args.early_stop or args.agent != "none",
    )


def run_workload(args: CoCoSConfig, schedule: Schedule, layout: Layout, prompts_T: list[int]) -> Workload:
    """Return the sizes of each phase on one GPU. `prompts_T` are each turn's longest prompts, in tokens."""
    batches = (args.rollout_batch_size, args.per_device_train_batch_size)
    return schedule.workload(prompts_T, args.max_completion_length, layout.num_gpus, *batches)

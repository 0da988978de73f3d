"""Start of a run of either stage: checks before its model is loaded, and the model."""

import dataclasses
import logging
from typing import Any, TypeVar

from torch.distributed import DistNetworkError
from trl import ModelConfig, get_peft_config, get_quantization_config

from cocos.config.command_line import parse_options
from cocos.config.ranks import is_main_process
from cocos.config.training_options import RunOptions
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.generation.adapters import adapter_config, is_adapter, load_trainable
from cocos.generation.checkpoint_files import check_checkpoint
from cocos.training.checkpoints import find_checkpoint
from cocos.training.run_log import check_loggers

logger = logging.getLogger(__name__)

Config = TypeVar("Config", BoostConfig, CoCoSConfig)

LORA_OPTIONS = ("lora_", "use_rslora", "use_dora")  # names, or what they start with


def full_options(config_type: type[Config], description: str | None) -> tuple[Config, str | None]:
    """Return the options of a run with those of TRL and transformers, and the checkpoint that it continues.

    Raises:
        ValueError: An option has a wrong value, a logger cannot be used, there is no such checkpoint, or the
            model cannot be trained.

    """
    try:
        args = parse_options(config_type, description)
    except DistNetworkError as error:  # transformers connects the processes while it checks its options
        reason = str(error).partition(". ")[0]
        raise ValueError(
            f"the processes of this run cannot connect ({reason}); another run may use the port: choose "
            "another --master_port of the launcher"
        ) from None
    if is_main_process():
        check_loggers(args.report_to)
        warn_about_unused_lora_options(args)
        warn_about_dev_data(args)
    kind = check_checkpoint(str(args.model_name_or_path), args.model_revision, False, args.trust_remote_code)
    if fault := kind.training_fault(args.use_peft):
        raise ValueError(fault)
    return args, find_checkpoint(args.resume_from_checkpoint, str(args.output_dir))


def warn_about_dev_data(args: BoostConfig | CoCoSConfig) -> None:
    """Warn if the evaluation during training has the data of the training, or a step but no data."""
    name = "dev_data" if isinstance(args, CoCoSConfig) else "eval_data"
    given = getattr(args, name)
    if given and given == args.train_data:
        logger.warning(
            "--%s is --train_data, so what is trained on chooses the checkpoint; give another file", name
        )
    if given is None and args.eval_steps != RunOptions.eval_steps:  # "" says that there shall be none
        logger.warning("--eval_steps has no effect without --%s; give it, or leave --eval_steps out", name)


def check_start(args: BoostConfig | CoCoSConfig) -> None:
    """Check the files of the model that a run starts from, and connect DeepSpeed's ranks on CPUs.

    On accelerators, accelerate connects them. ZeRO-3 divides the weights while the model is loaded, so the
    ranks are connected before.
    """
    check_checkpoint(str(args.model_name_or_path), args.model_revision, trusts_code=args.trust_remote_code)
    if args.deepspeed and args.use_cpu:
        from deepspeed import init_distributed  # installed on Linux only

        init_distributed("gloo")


def starting_model(args: BoostConfig | CoCoSConfig) -> dict[str, Any]:
    """Return the arguments of TRL's trainers that name the model: a new adapter, or one to train further.

    Raises:
        ValueError: The run starts from an adapter without --use_peft.

    """
    name, quantization = args.model_name_or_path, get_quantization_config(args)
    peft_config = adapter_config(name, get_peft_config(args))
    if not is_adapter(name):
        return {"model": name, "peft_config": peft_config, "quantization_config": quantization}
    init_kwargs = dict(args.model_init_kwargs or {})
    if quantization is not None:
        init_kwargs["quantization_config"] = quantization
    if args.distributed_state.distributed_type in ("MULTI_GPU", "DEEPSPEED"):  # as TRL does
        init_kwargs["device_map"] = None
    plugin = args.deepspeed_plugin
    is_sharded = plugin is not None and plugin.zero_stage == 3 and quantization is None
    return {"model": load_trainable(name, init_kwargs, is_sharded)}


def warn_about_unused_lora_options(args: ModelConfig) -> None:
    """Warn about options of LoRA without effect: without --use_peft, or if the run starts from an adapter."""
    unused = [
        f"--{field.name}"
        for field in dataclasses.fields(ModelConfig)
        if field.name.startswith(LORA_OPTIONS) and getattr(args, field.name) != field.default
    ]
    if unused and is_adapter(args.model_name_or_path):
        logger.warning(
            f"{', '.join(unused)}: no effect, because the adapter of {args.model_name_or_path} is trained "
            "further as it is"
        )
    elif unused and not args.use_peft:
        logger.warning(
            f"{', '.join(unused)}: no effect without --use_peft, so all weights are trained; "
            "add --use_peft true to train a LoRA adapter"
        )

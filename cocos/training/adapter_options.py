"""Options of LoRA that have no effect because --use_peft is missing."""

import dataclasses
import logging

from trl import ModelConfig

logger = logging.getLogger(__name__)

LORA_OPTIONS = ("lora_", "use_rslora", "use_dora")  # names, or what they start with


def warn_about_unused_adapter_options(args: ModelConfig) -> None:
    """Warn if options of LoRA are set although --use_peft is not, so that they have no effect."""
    unused = [
        f"--{field.name}"
        for field in dataclasses.fields(ModelConfig)
        if field.name.startswith(LORA_OPTIONS) and getattr(args, field.name) != field.default
    ]
    if unused and not args.use_peft:
        logger.warning(
            f"{', '.join(unused)}: no effect without --use_peft, so all weights are trained; "
            "add --use_peft true to train a LoRA adapter"
        )

"""Checks of a run before its model is loaded: loggers, and options of LoRA."""

import dataclasses
import logging
import sys
from collections.abc import Iterable
from importlib.util import find_spec

from transformers.integrations import INTEGRATION_TO_CALLBACK
from trl import ModelConfig

logger = logging.getLogger(__name__)

WITHOUT_LOGIN = ("offline", "disabled", "dryrun")  # values of WANDB_MODE
LORA_OPTIONS = ("lora_", "use_rslora", "use_dora")  # names, or what they start with


def check_loggers(names: Iterable[str]) -> None:
    """Check that the loggers are installed, and that wandb is logged in and can be reached.

    In a terminal, wandb asks for a missing login. Without a network the check takes 13 seconds.

    Args:
        names: Values of --report_to.

    Raises:
        ValueError: A logger is unknown or cannot be used.

    """
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            raise ValueError(
                f"--report_to {name}: unknown logger; choose from none, {', '.join(INTEGRATION_TO_CALLBACK)}"
            )
        if name in ("tensorboard", "wandb") and find_spec(name) is None:
            raise ValueError(f"--report_to {name}: the package is missing; pip install {name}")
        if name == "wandb":
            _check_wandb()


def _check_wandb() -> None:
    """Log in to wandb, unless it needs no login."""
    import wandb  # takes a second

    if wandb.setup().settings.mode in WITHOUT_LOGIN:
        return
    remedy = "set WANDB_MODE=offline to log to a folder, or choose --report_to tensorboard"
    try:
        if not wandb.login(prompt=sys.stdin.isatty()):
            raise ValueError(f"--report_to wandb: not logged in; run `wandb login`, {remedy}")
    except wandb.Error as error:
        raise ValueError(f"--report_to wandb: {error}; check the login and the network, {remedy}") from None


def warn_about_unused_lora_options(args: ModelConfig) -> None:
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

"""What both stages of training settle in the same way: batch, epochs, machine, how a model is made."""

from typing import Any

import torch
from transformers import TrainingArguments
from trl import ModelConfig

from cocos.distributed import connect_deepspeed, num_ranks


def accumulate(args: TrainingArguments) -> None:
    """`global_batch_size` is the product of processes, per-device batch and accumulation."""
    if args.global_batch_size is None:
        return
    per_step = args.per_device_train_batch_size * num_ranks()
    if per_step < 1 or args.global_batch_size < 1 or args.global_batch_size % per_step:
        raise ValueError(
            f"--global_batch_size {args.global_batch_size} does not divide by {per_step} "
            f"(--per_device_train_batch_size times processes); change one of them"
        )
    args.gradient_accumulation_steps = args.global_batch_size // per_step


def count_epochs(args: TrainingArguments) -> None:
    """Epochs, where given, win: the parent prefers `max_steps`, and ours has a default."""
    if args.num_train_epochs > 0:
        args.max_steps = -1
    elif args.max_steps < 1:
        raise ValueError(f"--max_steps is {args.max_steps}; give 1 or more, or --num_train_epochs")


def check_stopping(args: TrainingArguments) -> None:
    """Refuse transformers' way of stopping; `checkpoints.StopOnSigterm` is ours."""
    if args.enable_jit_checkpoint:
        raise ValueError(
            "--enable_jit_checkpoint is not needed: SIGTERM always ends a run with a checkpoint after the "
            "update; leave it out"
        )


def fit_machine(args: TrainingArguments) -> None:
    """The processor where there is no accelerator: said outright, or ranks would not find each other."""
    args.use_cpu = args.use_cpu or not torch.accelerator.is_available()
    if args.deepspeed:
        connect_deepspeed(args.use_cpu)
    args.dataloader_pin_memory = args.dataloader_pin_memory and not args.use_cpu
    if args.bf16 is None:
        has_bf16 = not args.use_cpu and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
        args.bf16 = has_bf16 and not args.fp16


def model_init_kwargs(args: TrainingArguments, model_args: ModelConfig) -> dict[str, Any]:
    """What from_pretrained is called with: TRL's model options, the config's own over them."""
    chosen = {
        "revision": model_args.model_revision,
        "attn_implementation": model_args.attn_implementation,
        "dtype": model_args.dtype,
    }
    return chosen | (args.model_init_kwargs or {})

"""Options that both training stages share, and the values that follow from them."""

from dataclasses import dataclass
from typing import Any

import torch
from transformers.hf_argparser import HfArg
from trl import ModelConfig

from cocos.config.shared_options import require_options
from cocos.distributed import is_launched, num_ranks


@dataclass
class TrainingOptions(ModelConfig):
    """TRL's model options, and training options whose defaults differ from those of transformers.

    A mixin for subclasses of transformers' TrainingArguments: name it before them in the list of bases.
    """

    dry_run: bool = HfArg(
        default=False,
        help="Check data, model and options without loading weights, print a report, and exit. The report "
        "shows the first prompts or rows, the number of updates, estimated memory and time, and warnings.",
    )
    run_name: str | None = HfArg(
        default=None, aliases=["--wandb_run_name"], help="Name of the run in wandb and in other logs."
    )
    lr_scheduler_type: str = HfArg(default="cosine", help="Learning-rate schedule.")
    num_train_epochs: float = HfArg(
        default=0.0,
        help="Passes over the training data. 0: --max_steps decides; above 0, --max_steps is ignored.",
    )
    eval_steps: float | None = HfArg(
        default=0.1, help="Updates between evaluations; a number below 1 is a share of all updates."
    )
    save_steps: float = HfArg(
        default=0.1, help="Updates between checkpoints; a number below 1 is a share of all updates."
    )
    resume_from_checkpoint: str | None = HfArg(
        default=None,
        help="Checkpoint to continue from: a path, or `last` for the newest complete one in --output_dir.",
    )
    bf16: bool | None = HfArg(
        default=None, help="Use bfloat16 autocast. By default on if the GPU supports it and --fp16 is off."
    )

    def __post_init__(self) -> None:
        """Check the options and derive values from them, without connecting to other processes.

        Raises:
            ValueError: An option is missing or two options contradict each other.

        """
        require_options(self, "model_name_or_path", "train_data")
        if self.enable_jit_checkpoint:
            raise ValueError(
                "--enable_jit_checkpoint is not needed, because on SIGTERM a run always finishes its update "
                "and saves a checkpoint; leave it out"
            )
        if self.deepspeed and not is_launched():
            raise ValueError("--deepspeed needs its launcher; start with: deepspeed --num_gpus N SCRIPT ...")
        self._choose_device_and_precision()
        self._set_accumulation()
        self._set_max_steps()
        super().__post_init__()
        super(ModelConfig, self).__post_init__()  # ModelConfig does not call the classes after it
        chosen = {
            "revision": self.model_revision,
            "attn_implementation": self.attn_implementation,
            "dtype": self.dtype,
        }
        self.model_init_kwargs: dict[str, Any] = chosen | (self.model_init_kwargs or {})

    def _choose_device_and_precision(self) -> None:
        # Without an explicit use_cpu, accelerate does not connect the ranks of a machine without GPUs.
        self.use_cpu: bool = self.use_cpu or not torch.accelerator.is_available()
        self.dataloader_pin_memory: bool = self.dataloader_pin_memory and not self.use_cpu
        if self.bf16 is None:
            has_bf16 = not self.use_cpu and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
            self.bf16 = has_bf16 and not self.fp16

    def _set_accumulation(self) -> None:
        """Set gradient_accumulation_steps to global batch / (per-device batch x processes)."""
        if self.global_batch_size is None:
            return
        per_step = self.per_device_train_batch_size * num_ranks()
        if per_step < 1 or self.global_batch_size < 1 or self.global_batch_size % per_step:
            raise ValueError(
                f"--global_batch_size {self.global_batch_size} is not divisible by {per_step} "
                "(--per_device_train_batch_size times processes); change one of them"
            )
        self.gradient_accumulation_steps = self.global_batch_size // per_step

    def _set_max_steps(self) -> None:
        """Turn off max_steps if epochs are given, because transformers would prefer max_steps."""
        if self.num_train_epochs > 0:
            self.max_steps = -1
        elif self.max_steps < 1:
            raise ValueError(f"--max_steps is {self.max_steps}; give 1 or more, or --num_train_epochs")

    def _keep_best_checkpoint(self, metric: str, greater_is_better: bool) -> None:
        """Evaluate during training, and load the checkpoint with the best value of `metric` at its end."""
        self.eval_strategy = self.save_strategy = "steps"
        self.load_best_model_at_end = True
        self.metric_for_best_model = metric
        self.greater_is_better = greater_is_better

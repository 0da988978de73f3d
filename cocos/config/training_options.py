"""Options that both training stages share, and those of Boost.

Imports neither torch nor TRL, so that --help is fast.
"""

from dataclasses import dataclass
from typing import ClassVar

from cocos.config.option import SFT_SOURCES, option, require_above_zero, require_at_least, require_options
from cocos.config.ranks import is_launched, num_ranks


@dataclass
class RunOptions:
    """Options of a training run as a whole."""

    group: ClassVar[str] = "run"

    model_name_or_path: str = option("model", "", "Model to train: a folder, or a name on the hub.")
    train_data: str = option("data", "", "File of the training data.")
    output_dir: str = option(
        "run", "", "Folder for the model and its checkpoints; new, unless a run is resumed."
    )
    resume_from_checkpoint: str | None = option(
        "run", None, "Checkpoint to continue: a path, or `last` for the newest of --output_dir."
    )
    accept_changes: bool = option(
        "run", False, "Continue although data, model or options differ from the run's."
    )
    dry_run: bool = option(
        "run", False, "Check the inputs, print prompts, updates, memory and warnings, then exit."
    )
    report_to: str | list[str] = option("run", ["none"], "Loggers: tensorboard, wandb, both, or none.")
    run_name: str | None = option(
        "run", None, "Name of the run in the logger.", aliases=("--wandb_run_name",)
    )
    logging_steps: float = option("run", 10, "Updates between log entries; below 1: a share of all updates.")
    eval_steps: float | None = option(
        "run", 0.1, "Updates between evaluations; below 1: a share of all updates."
    )
    save_steps: float = option("run", 0.1, "Updates between checkpoints; below 1: a share of all updates.")
    save_minutes: float = option("run", 30.0, "Longest time between checkpoints, in minutes; 0: no limit.")
    save_total_limit: int | None = option(
        "run", 2, "Number of checkpoints to keep. The best one is always kept."
    )
    seed: int = option("sampling", 42, "Seed of the data's order, sampling and initialisation.")


@dataclass
class UpdateOptions:
    """Options of the model's updates."""

    group: ClassVar[str] = "updates"

    global_batch_size: int | None = option("update", 128, "Batch per update over all devices.")
    per_device_train_batch_size: int = option("update", 4, "Batch per device in one backward pass.")
    max_steps: int = option("update", 1500, "Number of updates.")
    num_train_epochs: float = option("update", 0.0, "Passes over the data; above 0 they replace --max_steps.")
    learning_rate: float = option("update", 1e-5, "Peak learning rate of AdamW.")
    lr_scheduler_type: str = option("update", "cosine", "Learning-rate schedule.")
    bf16: bool | None = option(
        "update", None, "bfloat16 autocast; by default if the GPU supports it and not --fp16."
    )
    deepspeed: str | None = option(
        "run", None, "DeepSpeed configuration, such as configs/deepspeed/zero2.json."
    )
    use_peft: bool = option(
        "update", False, "Train a LoRA adapter; see --lora_r and the other lora options in --help_all."
    )


@dataclass
class TrainingOptions(RunOptions, UpdateOptions):
    """Options of both training stages; the classes of `trl_configs.py` add those of TRL and transformers."""

    full_name: ClassVar[str]  # name of the class in `trl_configs.py`
    library_sources: ClassVar[tuple[tuple[str, str], ...]]  # source files of the options that it adds

    def __post_init__(self) -> None:
        """Check the options that need no library."""
        require_options(self, "output_dir")
        if self.deepspeed and not is_launched():
            raise ValueError("--deepspeed needs its launcher; start with: deepspeed --num_gpus N SCRIPT ...")
        if self.num_train_epochs < 0 or (self.num_train_epochs == 0 and self.max_steps < 1):
            raise ValueError(f"--max_steps is {self.max_steps}; give 1 or more, or --num_train_epochs")
        require_above_zero(self, "learning_rate")
        self._check_batches()

    def _check_batches(self) -> None:
        require_at_least(self, 1, "per_device_train_batch_size", "global_batch_size")
        per_step = self.per_device_train_batch_size * num_ranks()
        if self.global_batch_size is not None and self.global_batch_size % per_step:
            raise ValueError(
                f"--global_batch_size {self.global_batch_size} is not divisible by {per_step} "
                f"(--per_device_train_batch_size {self.per_device_train_batch_size} x {num_ranks()} "
                "processes); change one of them"
            )


@dataclass
class BoostOptions(TrainingOptions):
    """Options of boost/boost_train.py; the defaults are the paper's."""

    full_name: ClassVar[str] = "BoostConfig"
    library_sources: ClassVar = SFT_SOURCES

    train_data: str = option(
        "data", "", "File of Boost rows to train on: JSON list or JSONL with prompt and completion."
    )
    eval_data: str | None = option(
        "data",
        None,
        "File of Boost rows to evaluate on. The checkpoint with the lowest evaluation loss is saved; "
        "without this file, the final weights.",
    )
    max_length: int | None = option(
        "length",
        None,
        "Longest row in tokens. A longer row is an error and is not truncated. No limit by default.",
    )
    global_batch_size: int | None = option(
        "update", 256, "Rows per update over all devices; sets gradient_accumulation_steps."
    )
    per_device_train_batch_size: int = option(
        "update", 1, "Rows per device in one forward and backward pass."
    )
    learning_rate: float = option("update", 2e-5, "Peak learning rate of AdamW.")
    max_steps: int = option("update", 1000, "Number of updates.")
    save_total_limit: int | None = option(
        "run", 1, "Number of checkpoints to keep. The best one is always kept."
    )

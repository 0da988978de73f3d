"""The options of boost/boost_train.py."""

from dataclasses import dataclass, field

from trl import SFTConfig

from cocos.config.training_options import accumulate, check_stopping, count_epochs, fit_machine


@dataclass
class BoostConfig(SFTConfig):
    """Options of boost/boost_train.py: TRL's SFTConfig with the paper's values and the data files."""

    train_data: str = field(
        default="", metadata={"help": "Boost rows: JSON list or JSONL of prompt and completion."}
    )
    eval_data: str | None = field(
        default=None, metadata={"help": "Boost rows whose loss chooses the best checkpoint."}
    )
    dry_run: bool = field(
        default=False,
        metadata={
            "help": "Resolve everything, print the first rows, steps, memory and warnings, and stop before "
            "the weights are loaded."
        },
    )
    run_name: str | None = field(
        default=None, metadata={"help": "Name of the run in the logs.", "aliases": ["--wandb_run_name"]}
    )
    global_batch_size: int | None = field(
        default=256, metadata={"help": "Rows per update over all devices; sets gradient_accumulation_steps."}
    )
    per_device_train_batch_size: int = field(
        default=1, metadata={"help": "Rows per device and forward pass."}
    )
    learning_rate: float = field(default=2e-5, metadata={"help": "Peak learning rate of AdamW."})
    lr_scheduler_type: str = field(default="cosine", metadata={"help": "Learning-rate schedule."})
    max_steps: int = field(default=1000, metadata={"help": "Number of updates."})
    num_train_epochs: float = field(
        default=0.0, metadata={"help": "Passes over the data, in place of max_steps; 0: max_steps decides."}
    )
    resume_from_checkpoint: str | None = field(
        default=None,
        metadata={"help": "`last` for the newest whole checkpoint in output_dir, or the path of one."},
    )
    max_length: int | None = field(
        default=None,
        metadata={"help": "Longest row in tokens; a longer row is an error, never cut. No limit by default."},
    )
    eval_steps: float | None = field(
        default=0.1, metadata={"help": "Updates between evaluations; below 1 a share of all."}
    )
    save_steps: float = field(
        default=0.1, metadata={"help": "Updates between checkpoints; below 1 a share of all."}
    )
    save_total_limit: int | None = field(
        default=1, metadata={"help": "Checkpoints kept; the best is among them."}
    )
    bf16: bool | None = field(
        default=None, metadata={"help": "bfloat16 autocast; on by default where the GPU has it."}
    )

    def __post_init__(self) -> None:
        if not self.train_data:
            raise ValueError("--train_data is missing; see --help")
        check_stopping(self)
        fit_machine(self)
        accumulate(self)
        count_epochs(self)
        if self.eval_data:
            self.eval_strategy = self.save_strategy = "steps"
            self.load_best_model_at_end = True
            self.metric_for_best_model = "eval_loss"
        super().__post_init__()

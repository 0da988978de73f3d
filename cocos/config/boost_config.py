"""Options of boost/boost_train.py."""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg
from trl import SFTConfig

from cocos.config.training_options import TrainingOptions


@dataclass
class BoostConfig(TrainingOptions, SFTConfig):
    """Options of boost/boost_train.py: TRL's SFTConfig with the paper's values and the data files."""

    train_data: str = HfArg(
        default="", help="File of Boost rows to train on: JSON list or JSONL with prompt and completion."
    )
    eval_data: str | None = HfArg(
        default=None,
        help="File of Boost rows to evaluate on. The checkpoint with the lowest evaluation loss is saved. By "
        "default there is no evaluation, and the final weights are saved.",
    )
    global_batch_size: int | None = HfArg(
        default=256, help="Rows per update over all devices; sets gradient_accumulation_steps."
    )
    per_device_train_batch_size: int = HfArg(
        default=1, help="Rows per device in one forward and backward pass."
    )
    max_length: int | None = HfArg(
        default=None,
        help="Longest row in tokens. A longer row is an error and is not truncated. No limit by default.",
    )
    learning_rate: float = HfArg(default=2e-5, help="Peak learning rate of AdamW.")
    max_steps: int = HfArg(default=1000, help="Number of updates.")
    save_total_limit: int | None = HfArg(
        default=1, help="Number of checkpoints to keep. The best one is always kept."
    )

    def __post_init__(self) -> None:
        if self.eval_data:
            self._keep_best_checkpoint("eval_loss", greater_is_better=False)
        super().__post_init__()

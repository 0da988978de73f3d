"""Options of boost/boost_train.py, without those of TRL."""

from dataclasses import dataclass
from typing import ClassVar

from cocos.config.library_options import SFT_SOURCES
from cocos.config.option import option
from cocos.config.training_options import TrainingOptions


@dataclass
class BoostOptions(TrainingOptions):
    """Options of boost/boost_train.py; the defaults are the paper's."""

    full_name: ClassVar[str] = "BoostConfig"
    library_sources: ClassVar = SFT_SOURCES

    train_data: str = option(
        default="", help="File of Boost rows to train on: JSON list or JSONL with prompt and completion."
    )
    eval_data: str | None = option(
        default=None,
        help="File of Boost rows to evaluate on. The checkpoint with the lowest evaluation loss is saved; "
        "without this file, the final weights.",
    )
    max_length: int | None = option(
        default=None,
        help="Longest row in tokens. A longer row is an error and is not truncated. No limit by default.",
    )
    global_batch_size: int | None = option(
        default=256, help="Rows per update over all devices; sets gradient_accumulation_steps."
    )
    per_device_train_batch_size: int = option(
        default=1, help="Rows per device in one forward and backward pass."
    )
    learning_rate: float = option(default=2e-5, help="Peak learning rate of AdamW.")
    max_steps: int = option(default=1000, help="Number of updates.")
    save_total_limit: int | None = option(
        default=1, help="Number of checkpoints to keep. The best one is always kept."
    )

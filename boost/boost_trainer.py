"""Trainer of the Boost stage."""

from trl import SFTTrainer

from cocos.training.checkpoints import ResumableTrainer


class BoostTrainer(ResumableTrainer, SFTTrainer):
    """TRL's SFTTrainer that can be stopped and resumed."""

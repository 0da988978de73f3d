"""Trainer of the Boost stage."""

from trl import SFTTrainer

from cocos.training.resumable_trainer import ResumableTrainer


class BoostTrainer(ResumableTrainer, SFTTrainer):
    """TRL's SFTTrainer that can be stopped and resumed."""

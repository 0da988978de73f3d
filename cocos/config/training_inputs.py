"""Inputs of a training run that are loaded before its model: problems, prompt protocol and tokenizer.

A dry run loads them too, so it finds every error in them.
"""

from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from cocos.config.shared_options import prompt_protocol
from cocos.config.trl_configs import CoCoSConfig
from cocos.dataprep.public_sets import problems_file
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import PromptProtocol


class TrainingInputs(NamedTuple):
    """Problems, prompt protocol and tokenizer of a run of train.py."""

    problems: list[Problem]
    dev_problems: list[Problem]
    protocol: PromptProtocol
    tokenizer: PreTrainedTokenizerBase


def load_training_inputs(args: CoCoSConfig) -> TrainingInputs:
    """Load the inputs that the options name; without --dev_data, `dev_problems` is empty.

    Raises:
        ValueError: A data file, the prompt protocol or the tokenizer cannot be loaded.

    """
    return TrainingInputs(
        problems=load_problems(problems_file(args.train_data)),
        dev_problems=load_problems(problems_file(args.dev_data)) if args.dev_data else [],
        protocol=prompt_protocol(args),
        tokenizer=load_tokenizer(args.model_name_or_path, args.model_revision, args.trust_remote_code),
    )

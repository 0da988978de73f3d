"""Data of a training run: problems and prompt protocol. Imports neither torch nor TRL."""

from typing import NamedTuple

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.shared_options import prompt_protocol
from cocos.dataprep.public_sets import problems_file
from cocos.problems import Problem, load_problems
from cocos.prompts import PromptProtocol


class TrainingData(NamedTuple):
    """Problems and prompt protocol of a run of train.py."""

    problems: list[Problem]
    dev_problems: list[Problem]
    protocol: PromptProtocol


def load_training_data(options: CoCoSOptions) -> TrainingData:
    """Load the data that the options name; without --dev_data, `dev_problems` is empty.

    Raises:
        ValueError: A data file or the prompt protocol cannot be loaded.

    """
    return TrainingData(
        problems=load_problems(problems_file(options.train_data)),
        dev_problems=load_problems(problems_file(options.dev_data)) if options.dev_data else [],
        protocol=prompt_protocol(options),
    )

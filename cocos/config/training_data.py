"""Data of a training run: prompts, dev problems and prompt protocol. Imports neither torch nor TRL."""

from typing import NamedTuple

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.shared_options import prompt_protocol
from cocos.dataprep.public_sets import problems_file
from cocos.given_answers import given_prompts
from cocos.problems import Problem, load_problems
from cocos.prompts import PromptProtocol
from cocos.trajectories import Trajectory


class TrainingData(NamedTuple):
    """Data of a run of train.py.

    Attributes:
        prompts: Trajectories without turns to train on. Their `given` completions come from `--answers`.
        dev_problems: Problems of the evaluation during training.
        protocol: Prompt protocol of both.

    """

    prompts: list[Trajectory]
    dev_problems: list[Problem]
    protocol: PromptProtocol

    @property
    def problems(self) -> list[Problem]:
        """The problems of the prompts, each once."""
        return list(dict.fromkeys(prompt.problem for prompt in self.prompts))


def load_training_data(options: CoCoSOptions) -> TrainingData:
    """Load the data that the options name; without --dev_data, `dev_problems` is empty.

    Raises:
        ValueError: A data file or the prompt protocol cannot be loaded, or the rules of the run leave a
            problem without a test that pays, or a prompt without a turn to train.

    """
    problems = options.hide_tests(load_problems(problems_file(options.train_data)))
    dev_problems = load_problems(problems_file(options.dev_data)) if options.dev_data else []
    protocol = prompt_protocol(options)
    prompts = given_prompts(options.answers, problems, protocol)
    for prompt in prompts:
        if options.reward_tests == "hidden" and not prompt.problem.hidden_test_list:
            raise ValueError(
                f"--reward_tests hidden: problem {prompt.problem.task_id!r} of {options.train_data} has no "
                "hidden tests; hide some with --visible_tests"
            )
        if len(prompt.given) >= options.num_turns:
            raise ValueError(
                f"--answers supplies {len(prompt.given)} turns of problem {prompt.problem.task_id!r}, so "
                f"none of --num_turns {options.num_turns} is left to train; raise it, or supply fewer turns"
            )
    return TrainingData(prompts, options.hide_tests(dev_problems), protocol)

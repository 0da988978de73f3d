"""Problems and prompts of a run, and the checksums of the files that they come from."""

import sys
from dataclasses import replace
from typing import NamedTuple

from cocos.assembly.given_answers import PROBLEM_SOURCES, given_answers, given_prompts
from cocos.assembly.objective import reward_file
from cocos.assembly.prompts import prompt_protocol
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.eval_config import EvalConfig
from cocos.config.ranks import is_main_process
from cocos.dataprep.named_sets import load_problem_set, problems_file
from cocos.files.json_lines import listed
from cocos.files.run_record import checksums, sha256
from cocos.problems import Problem, with_visible_tests
from cocos.prompts import PromptProtocol
from cocos.trajectories import Trajectory, begin, problems_of


class TrainingData(NamedTuple):
    """Data of a run of train.py."""

    prompts: list[Trajectory]  # without turns, to train on; their `given` completions come from --answers
    dev_problems: list[Problem]  # of the evaluation during training
    protocol: PromptProtocol  # of both

    @property
    def problems(self) -> list[Problem]:
        """The problems of the prompts, each once."""
        return problems_of(self.prompts)


def load_training_data(options: CoCoSOptions) -> TrainingData:
    """Load the data that the options name; without --dev_data, `dev_problems` is empty.

    Raises:
        ValueError: A data file or the prompt protocol cannot be loaded, or the rules of the run leave no
            problem with a test that pays, or a prompt without a turn to train.

    """
    problems = with_visible_tests(
        load_problem_set(options.train_data)[: options.limit], options.visible_tests
    )
    dev_problems = load_problem_set(options.dev_data) if options.dev_data else []
    protocol = prompt_protocol(options)
    prompts = given_prompts(options.answers, problems, protocol, options.early_stop)
    if options.reward_tests == "hidden":
        prompts = _with_hidden_tests(prompts, options)
    if whole := [prompt for prompt in prompts if len(prompt.given) >= options.num_turns]:
        raise ValueError(
            f"--answers supplies {len(whole[0].given)} turns of problem "
            f"{listed([prompt.problem.task_id for prompt in whole])}, so none of the {options.num_turns} is "
            "left to train; raise --num_turns, or supply fewer turns"
        )
    return TrainingData(prompts, with_visible_tests(dev_problems, options.visible_tests), protocol)


def _with_hidden_tests(prompts: list[Trajectory], options: CoCoSOptions) -> list[Trajectory]:
    """Return the prompts of problems with a hidden test, and say which others are left out.

    Raises:
        ValueError: None is left.

    """
    paid = [prompt for prompt in prompts if prompt.problem.hidden_test_list]
    others = [p.task_id for p in problems_of(prompts) if not p.hidden_test_list]
    place = f"--reward_tests hidden: {len(others)} problems of {options.train_data}"
    if not paid:
        raise ValueError(
            f"{place} have no hidden test, so none is left to train; lower --visible_tests, or give "
            "--reward_tests all for problems with one test"
        )
    if others and is_main_process():
        print(f"note: {place} have no hidden test and are left out: {listed(others)}", file=sys.stderr)
    return paid


def plan_trajectories(options: EvalConfig, protocol: PromptProtocol) -> list[Trajectory]:
    """Return the trajectories of an evaluation without turns, `--num_samples` consecutive ones per problem.

    Their field `given` has the completions that `--answers` supplies.

    Raises:
        ValueError: No problem is selected, an answer is missing, or a turn has neither an answer nor a model.

    """
    trajectories = begin(_select_problems(options), options.num_samples)
    given = given_answers(options.answers, trajectories, protocol, options.num_turns)
    if not options.model_name_or_path and min(map(len, given)) < options.num_turns:
        raise ValueError(
            f"--answers supplies {min(map(len, given))} of the {options.num_turns} turns; give "
            "--model_name_or_path for the others, or another --num_turns"
        )
    return [
        replace(trajectory, given=answers[: options.num_turns])
        for trajectory, answers in zip(trajectories, given, strict=True)
    ]


def _select_problems(options: EvalConfig) -> list[Problem]:
    """Load the problems that `--task_ids`, `--start` and `--limit` select; apply `--visible_tests`."""
    problems = load_problem_set(options.test_data)
    if options.task_ids is not None:
        selected, existing = set(options.task_ids), {problem.task_id for problem in problems}
        if absent := [task_id for task_id in options.task_ids if task_id not in existing]:
            raise ValueError(f"--task_ids: {options.test_data} has no problem {listed(absent)}")
        problems = [problem for problem in problems if problem.task_id in selected]
    if not problems[options.start :]:
        raise ValueError(
            f"--start {options.start} leaves none of the {len(problems)} problems of {options.test_data}"
        )
    problems = problems[options.start :][: options.limit]
    return with_visible_tests(problems, options.visible_tests)


def data_sha256(options: CoCoSOptions | EvalConfig, *names: str | None) -> dict[str, str]:
    """Return the checksums of the named files, and of those of prompts, answers and reward in the options."""
    answer_files = [source for source in options.answers if source not in PROBLEM_SOURCES]
    prompt_files = (options.few_shot_data, options.prompt_file, options.system_prompt)
    found = checksums((*names, *prompt_files, *answer_files), problems_file)
    reward = getattr(options, "reward", "")
    return found | ({reward: sha256(reward_file(reward))} if ":" in reward else {})

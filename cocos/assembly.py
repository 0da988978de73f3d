"""Construction from options: the executor, the prompt protocol, problems and prompts, rules and objective.

Whatever opens a file, downloads, takes a lock or starts workers because of an option is called from here;
`cocos.config` only declares and checks options. Imports neither torch nor TRL.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.eval_config import EvalConfig
from cocos.config.executor_options import ExecutorOptions, ScoringOptions
from cocos.config.option import option_names
from cocos.config.prompt_options import PromptOptions
from cocos.config.turn_options import AgentOptions, TurnOptions
from cocos.dataprep.public_sets import load_problem_set, problems_file
from cocos.distributed import num_processors
from cocos.executor import Executor
from cocos.executor.calibration import calibrate
from cocos.extras import install_command
from cocos.files.run_record import checksums, sha256
from cocos.given_answers import PROBLEM_SOURCES, given_answers, given_prompts
from cocos.own_reward import OwnReward, load_reward, reward_file
from cocos.problems import Problem
from cocos.prompts import TEMPLATE_PLACEHOLDERS, PromptProtocol, agent_protocol, named_protocol, own_protocol
from cocos.rewards import Objective
from cocos.rollout import rollout
from cocos.trajectories import Rules, Trajectory, as_program, begin

# -- programs --


def open_executor(
    options: ExecutorOptions,
    problems: Iterable[Problem] = (),
    max_wait_s: float | None = None,
    sandbox: str | None = None,
) -> Executor:
    """Start the executor that the options describe; the caller closes it.

    Args:
        problems: Problems whose references set the time limits with `--program_timeout_factor`.
        max_wait_s: Longest time that a program may wait for a worker, in seconds; None: no limit.
        sandbox: Isolation level instead of `options.sandbox`; None for that.

    """
    executor = Executor(
        options.executor_workers or num_processors(),
        options.program_limits,
        sandbox or options.sandbox,
        options.min_isolation,
        max_wait_s,
        tuple(options.program_packages),
    )
    if isinstance(options, ScoringOptions) and options.program_timeout_factor is not None:
        references = [as_program(problem, problem.code) for problem in problems if problem.code.strip()]
        try:
            limits = calibrate(executor, references, options.program_timeout_factor)
        except BaseException:
            executor.close()
            raise
        executor.set_limits(references, limits)
    return executor


# -- prompts --


def prompt_protocol(options: PromptOptions) -> PromptProtocol:
    """Return the prompt protocol, with the few-shot problems loaded from their file."""
    if options.prompt_file:
        return replace(load_prompt_file(options.prompt_file), prompt_tests=options.prompt_tests)
    few_shot = load_problem_set(options.few_shot_data) if options.few_shot_data else ()
    return named_protocol(options.protocol, few_shot, options.prompt_tests, options.prompt_signature)


def protocol_name(options: PromptOptions) -> str:
    """Return the name of the prompt protocol as results record it."""
    return prompt_file_name(options.prompt_file) if options.prompt_file else options.protocol


def prompt_file_name(path: str) -> str:
    """Return the name under which results record a file of prompts; it changes with the file's content."""
    return f"{Path(path).name} ({sha256(path)[:12]})"


def load_prompt_file(path: str) -> PromptProtocol:
    """Return the protocol that a YAML file of `--prompt_file` describes, see docs/generation.md.

    Raises:
        ValueError: The file cannot be read, or it has a missing or unknown key, or an unknown placeholder.

    """
    place, keys = f"--prompt_file {path}", (*TEMPLATE_PLACEHOLDERS, "is_chat")
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{place}: no such file; give a YAML file with {', '.join(keys)}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{place}: not readable as YAML ({error}); see docs/generation.md") from None
    if not isinstance(content, dict):
        raise ValueError(f"{place}: no keys; give {', '.join(keys)}")
    if unknown := [key for key in content if key not in keys]:
        raise ValueError(f"{place}: unknown key {unknown[0]!r}; the keys are {', '.join(keys)}")
    is_chat = content.pop("is_chat", True)
    if not isinstance(is_chat, bool):
        raise ValueError(f"{place}: is_chat is {is_chat!r}; give true or false")
    for key in TEMPLATE_PLACEHOLDERS:
        if not isinstance(content.get(key), str) or not content[key].strip():
            raise ValueError(f"{place}: {key} is missing or not a text; add {key}: | and the text below it")
    try:
        return own_protocol(prompt_file_name(path), **content, is_chat=is_chat)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def system_text(options: AgentOptions) -> str | None:
    """Return the text of the file `--system_prompt`; None if it is not given."""
    if options.system_prompt is None:
        return None
    try:
        return Path(options.system_prompt).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise ValueError(f"--system_prompt {options.system_prompt}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--system_prompt {options.system_prompt}: not readable ({error})") from None


# -- rules and objective --


def make_rules(options: AgentOptions, temperatures: Sequence[float], seed: int | None = None) -> Rules:
    """Return the rules between the turns of a trajectory; see `Rules` for the arguments."""
    rules = Rules(
        carry=options.carry,
        feedback=options.feedback,
        feedback_failures=options.feedback_failures,
        early_stop=options.early_stop,
        on_repeat=options.on_repeat,
        temperatures=tuple(temperatures),
        seed=seed,
    )
    return rules.of_agent(options.agent)


def turn_player(options: AgentOptions) -> Callable[..., list[Trajectory]]:
    """Return the function that plays trajectories: `rollout`, or an agent's with the same arguments.

    Raises:
        ValueError: The agent's package is missing.

    """
    if options.agent == "none":
        return rollout
    try:  # the package of an optional extra
        from cocos.agents.graphs import play_with_agent
    except ImportError as error:
        raise ValueError(f"--agent needs {error.name}: {install_command('agents')}") from None
    return partial(play_with_agent, agent=options.agent, max_repeats=options.max_repeats)


def make_objective(options: CoCoSOptions) -> Objective:
    """Return the training objective: trained turns and returns."""
    return Objective(
        num_turns=options.num_turns,
        num_generations=options.num_generations,
        credit=options.credit,
        gamma=options.gamma,
        improvement_bonus=options.improvement_bonus,
        turn_weights=options.turn_weights,
        betas_T=options.turn_betas or [options.beta] * options.num_turns,
    )


def own_reward(options: CoCoSOptions) -> OwnReward | None:
    """Return the function of `--reward module:function`; None if verdicts alone are the reward."""
    return load_reward(options.reward) if ":" in options.reward else None


def conditions(options: EvalConfig) -> dict[str, Any]:
    """Return the options that every row and the metrics record. Only results with equal ones compare."""
    recorded = {name: getattr(options, name) for name in option_names(EvalConfig, "rule", "prompt", "given")}
    # Rows of the paper's turn loop are those of earlier versions, which had no such options.
    left_out = {"carry": "transcript", "prompt_signature": False}.items()
    recorded = {name: value for name, value in recorded.items() if (name, value) not in left_out}
    return {
        "protocol": protocol_name(options),
        **recorded,
        "temperature": options.temperatures,
        "system_prompt": prompt_file_name(options.system_prompt) if options.system_prompt else None,
    }


# -- problems --


class TrainingData(NamedTuple):
    """Data of a run of train.py."""

    prompts: list[Trajectory]  # without turns, to train on; their `given` completions come from --answers
    dev_problems: list[Problem]  # of the evaluation during training
    protocol: PromptProtocol  # of both

    @property
    def problems(self) -> list[Problem]:
        """The problems of the prompts, each once."""
        return list(dict.fromkeys(prompt.problem for prompt in self.prompts))


def load_training_data(options: CoCoSOptions) -> TrainingData:
    """Load the data that the options name; without --dev_data, `dev_problems` is empty.

    Raises:
        ValueError: A data file or the prompt protocol cannot be loaded, or the rules of the run leave a
            problem without a test that pays, or a prompt without a turn to train; or the agent's package is
            missing.

    """
    problems = hide_tests(options, load_problem_set(options.train_data)[: options.limit])
    dev_problems = load_problem_set(options.dev_data) if options.dev_data else []
    turn_player(options)  # says what is missing before a model is loaded
    protocol = agent_protocol(prompt_protocol(options), options.agent, system_text(options))
    ends_early = make_rules(options, [options.temperature]).early_stop
    prompts = given_prompts(options.answers, problems, protocol, ends_early)
    for prompt in prompts:
        if options.reward_tests == "hidden" and not prompt.problem.hidden_test_list:
            raise ValueError(
                f"--reward_tests hidden: problem {prompt.problem.task_id!r} of {options.train_data} hides "
                f"none of its {len(prompt.problem.test_list)} tests; see --visible_tests, or leave it out"
            )
        if len(prompt.given) >= options.num_turns:
            raise ValueError(
                f"--answers supplies {len(prompt.given)} turns of problem {prompt.problem.task_id!r}, so "
                f"none of --num_turns {options.num_turns} is left to train; raise it, or supply fewer turns"
            )
    return TrainingData(prompts, hide_tests(options, dev_problems), protocol)


def plan_trajectories(options: EvalConfig, protocol: PromptProtocol) -> list[Trajectory]:
    """Return the trajectories of an evaluation without turns, `--num_samples` consecutive ones per problem.

    Their field `given` has the completions that `--answers` supplies.

    Raises:
        ValueError: No problem is selected, an answer is missing, or a turn has neither an answer nor a model.

    """
    trajectories = begin(_select_problems(options), options.num_samples)
    given = given_answers(options.answers, trajectories, protocol)
    if not options.model_name_or_path and min(map(len, given)) < options.num_turns:
        raise ValueError(
            f"--answers supplies {min(map(len, given))} of --num_turns {options.num_turns} turns; give "
            "--model_name_or_path for the others"
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
            raise ValueError(f"--task_ids: {options.test_data} has no problem {absent[0]!r}")
        problems = [problem for problem in problems if problem.task_id in selected]
    problems = problems[options.start :][: options.limit]
    if not problems:
        raise ValueError(
            f"--start {options.start} --limit {options.limit} leaves no problem of {options.test_data}"
        )
    return hide_tests(options, problems)


def hide_tests(options: TurnOptions, problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems with at most `--visible_tests` visible tests; the others become hidden."""
    n = options.visible_tests
    if n is None:
        return list(problems)
    return [
        replace(p, test_list=p.test_list[:n], hidden_test_list=p.test_list[n:] + p.hidden_test_list)
        for p in problems
    ]


def data_sha256(options: CoCoSOptions | EvalConfig, *names: str | None) -> dict[str, str]:
    """Return the checksums of the named files, and of those of prompts, answers and reward in the options."""
    answer_files = [source for source in options.answers if source not in PROBLEM_SOURCES]
    prompt_files = (options.few_shot_data, options.prompt_file, getattr(options, "system_prompt", None))
    found = checksums((*names, *prompt_files, *answer_files), problems_file)
    reward = getattr(options, "reward", "")
    return found | ({reward: sha256(reward_file(reward))} if ":" in reward else {})

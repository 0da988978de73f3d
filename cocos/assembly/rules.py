"""The rules between turns that the options describe, who plays by them, and how results record them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cocos.assembly.placebos import make_placebo
from cocos.assembly.prompts import prompt_file_name, protocol_name
from cocos.config.eval_config import EvalConfig
from cocos.config.option import option_names
from cocos.config.turn_options import AgentOptions
from cocos.files.extras import install_command
from cocos.problems import Problem
from cocos.rollout import rollout
from cocos.trajectories import Rules, Trajectory


def make_rules(
    options: AgentOptions,
    temperatures: Sequence[float],
    seed: int | None = None,
    problems: Sequence[Problem] = (),
    prompt_tests: int | None = None,
) -> Rules:
    """Return the rules between the turns of a trajectory; see `Rules` for the arguments.

    Args:
        problems: All problems of the run, for the placebo.
        prompt_tests: Number of tests that every prompt shows, also for it.

    """
    rules = Rules(
        carry=options.carry,
        feedback=options.feedback,
        feedback_failures=options.feedback_failures,
        placebo=make_placebo(options, problems, prompt_tests),
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


def conditions(options: EvalConfig) -> dict[str, Any]:
    """Return the options that every row and the metrics record. Only results with equal ones compare."""
    recorded = {name: getattr(options, name) for name in option_names(EvalConfig, "rule", "prompt", "given")}
    # Rows of the paper's turn loop are those of earlier versions, which had no such options.
    left_out = {"carry": "transcript", "prompt_signature": False, "placebo": "none"}.items()
    recorded = {name: value for name, value in recorded.items() if (name, value) not in left_out}
    return {
        "protocol": protocol_name(options),
        **recorded,
        "temperature": options.temperatures,
        "system_prompt": prompt_file_name(options.system_prompt) if options.system_prompt else None,
    }

"""The rules between turns that the options describe, and how results record them."""

from collections.abc import Sequence
from typing import Any

from cocos.assembly.placebos import make_carry
from cocos.assembly.prompts import prompt_file_name, protocol_name
from cocos.carry import Transcript
from cocos.config.eval_config import EvalConfig
from cocos.config.option import option_names
from cocos.config.turn_options import TurnOptions
from cocos.problems import Problem
from cocos.trajectories import Rules


def make_rules(
    options: TurnOptions,
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
    return Rules(
        carry=make_carry(options, problems, prompt_tests),
        feedback=options.feedback,
        feedback_failures=options.feedback_failures,
        early_stop=options.early_stop,
        on_repeat=options.on_repeat,
        temperatures=tuple(temperatures),
        seed=seed,
    )


def conditions(options: EvalConfig) -> dict[str, Any]:
    """Return the options that every row and the metrics record. Only results with equal ones compare."""
    recorded = {name: getattr(options, name) for name in option_names(EvalConfig, "rule", "prompt", "given")}
    # Rows of the paper's turn loop are those of earlier versions, which had no such options.
    left_out = {"carry": Transcript.name, "prompt_signature": False, "placebo": "none", "chat_template": None}
    recorded = {name: value for name, value in recorded.items() if (name, value) not in left_out.items()}
    return {
        "protocol": protocol_name(options),
        **recorded,
        "temperature": options.temperatures,
        "system_prompt": prompt_file_name(options.system_prompt) if options.system_prompt else None,
    }

"""Options that training, evaluation and Boost data share: prompts and executor."""

import math
from dataclasses import dataclass
from typing import Literal

from transformers.hf_argparser import HfArg

from cocos.distributed import num_processors
from cocos.executor import Executor, Limits
from cocos.problems import load_problems
from cocos.prompts import PromptProtocol, protocol


@dataclass
class ExecutorOptions:
    """Options of the executor that runs the model's programs."""

    executor_workers: int | None = HfArg(
        default=None,
        help="Programs that each process runs at the same time. By default, one per processor; the processes "
        "of a machine share its processors.",
    )
    sandbox: Literal["auto", "docker", "namespaces", "seccomp", "rlimits"] = HfArg(
        default="auto",
        help="Isolation level of the programs. `auto` selects the strongest that works on this machine.",
    )
    min_isolation: Literal["docker", "namespaces", "seccomp", "rlimits"] | None = HfArg(
        default=None,
        help="Weakest isolation level to accept; if only a weaker one works, the command stops with an "
        "error. By default `seccomp` if --sandbox is `auto`, otherwise no minimum.",
    )
    program_timeout_s: float = HfArg(
        default=10.0, help="Time limit of one program with all its tests, in seconds of wall-clock time."
    )
    max_infra_share: float = HfArg(
        default=0.05,
        help="Stop with an error if a larger share of the completions, in [0, 1], gets no verdict because "
        "the executor or the endpoint failed.",
    )


@dataclass
class PromptOptions:
    """Options of the prompts that the model sees."""

    protocol: str = HfArg(
        default="cocos",
        help="Prompt protocol. `cocos`: for Boost and CoCoS models. `cocos-fewshot`: for base models. "
        "`chat`, `repair`: for chat models; `repair` asks to compare the program with the tests.",
    )
    few_shot_data: str | None = HfArg(
        default=None,
        help="File of solved MBPP-format problems, the few-shot examples of --protocol cocos-fewshot.",
    )
    num_turns: int = HfArg(default=2, help="Turns per problem (T), 1 or more.")


def require_options(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options is not given."""
    for name in names:
        if not getattr(options, name):
            raise ValueError(f"--{name} is missing; see --help")


def require_positive(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options is below 1."""
    for name in names:
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} is {getattr(options, name)}; give 1 or more")


def open_executor(options: ExecutorOptions, max_wait_s: float | None = None) -> Executor:
    """Start the executor that the options describe; the caller closes it.

    Args:
        options: Isolation level, number of workers and limits.
        max_wait_s: Longest time that a program may wait for a worker, in seconds; None: no limit.

    """
    return Executor(
        options.executor_workers or num_processors(),
        Limits(wall_s=options.program_timeout_s, cpu_s=max(1, math.ceil(options.program_timeout_s))),
        options.sandbox,
        options.min_isolation,
        max_wait_s=max_wait_s,
    )


def prompt_protocol(options: PromptOptions) -> PromptProtocol:
    """Return the prompt protocol, with the few-shot problems loaded from their file."""
    return protocol(options.protocol, load_problems(options.few_shot_data) if options.few_shot_data else ())

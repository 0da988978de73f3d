"""What training and evaluation have in common: how problems are put, and how programs are run."""

import math
from dataclasses import dataclass, field
from typing import Literal

from cocos.distributed import num_processors
from cocos.executor import Executor, Limits
from cocos.problems import load_problems
from cocos.prompts import PromptProtocol, protocol


@dataclass
class ExecutorOptions:
    """How candidates' programs are run."""

    executor_workers: int | None = field(
        default=None,
        metadata={"help": "Programs run at a time on this process; by default its share of the processors."},
    )
    sandbox: Literal["auto", "docker", "namespaces", "seccomp", "rlimits"] = field(
        default="auto",
        metadata={"help": "Isolation level of the programs; `auto` is the best that this machine offers."},
    )
    min_isolation: Literal["docker", "namespaces", "seccomp", "rlimits"] | None = field(
        default=None, metadata={"help": "Refuse to run below this level; seccomp where the level is `auto`."}
    )
    program_timeout_s: float = field(
        default=10.0, metadata={"help": "Wall-clock limit of one program with all its tests, in seconds."}
    )
    max_infra_share: float = field(
        default=0.05,
        metadata={
            "help": "Stop when a larger share of answers met a failure of the executor or the endpoint."
        },
    )


@dataclass
class PromptOptions:
    """How problems are put to the model."""

    protocol: str = field(
        default="cocos",
        metadata={
            "help": "Prompt protocol: `cocos` for Boost and CoCoS models, `cocos-fewshot` for base models."
        },
    )
    few_shot_data: str | None = field(
        default=None,
        metadata={"help": "MBPP-format file of solved problems that `cocos-fewshot` shows before turn 1."},
    )
    num_turns: int = field(default=2, metadata={"help": "Attempts at each problem (T), 1 or more."})


def check_prompt_options(options: PromptOptions) -> None:
    """Refuse what no trajectory can have."""
    if options.num_turns < 1:
        raise ValueError(f"--num_turns is {options.num_turns}; a trajectory has at least 1 turn")


def open_executor(options: ExecutorOptions, max_wait_s: float | None = None) -> Executor:
    """A running executor, the caller's to close; the ranks of a machine share its processors."""
    return Executor(
        options.executor_workers or num_processors(),
        Limits(wall_s=options.program_timeout_s, cpu_s=max(1, math.ceil(options.program_timeout_s))),
        options.sandbox,
        options.min_isolation,
        max_wait_s=max_wait_s,
    )


def prompt_protocol(options: PromptOptions) -> PromptProtocol:
    """The prompt protocol, with its few-shot problems read from their file."""
    return protocol(options.protocol, load_problems(options.few_shot_data) if options.few_shot_data else ())

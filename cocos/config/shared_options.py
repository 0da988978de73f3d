"""Options that training, evaluation and Boost data share: prompts and executor."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from cocos.config.option import option
from cocos.config.prompt_file import load_prompt_file, prompt_file_name
from cocos.dataprep.public_sets import problems_file
from cocos.distributed import num_processors
from cocos.executor import Executor, Limits
from cocos.executor.calibration import calibrate
from cocos.executor.limits import LEAST_MEMORY_MB
from cocos.problems import Problem, load_problems
from cocos.prompts import PromptProtocol, protocol
from cocos.trajectories import as_program


@dataclass
class ExecutorOptions:
    """Options of the executor that runs the model's programs."""

    group: ClassVar[str] = "programs under test"

    sandbox: Literal["auto", "docker", "namespaces", "seccomp", "rlimits"] = option(
        default="auto",
        help="Isolation level; `auto`: the strongest that works here.",
    )
    min_isolation: Literal["docker", "namespaces", "seccomp", "rlimits"] | None = option(
        default=None,
        help="Weakest level to accept. By default seccomp with `auto`, otherwise any.",
    )
    program_timeout_s: float = option(
        default=10.0, help="Time limit of a program with all its tests, in seconds."
    )
    program_timeout_factor: float | None = option(
        default=None,
        help="Limit each program to this multiple of the processor time of its problem's reference, but to "
        "no less than 1 s and no more than --program_timeout_s.",
    )
    program_memory_mb: int = option(
        default=Limits.memory_mb, help="Memory limit of each process of a program, in MiB."
    )
    program_processes: int = option(
        default=Limits.processes, help="Further processes and threads of a program; 0: none."
    )
    program_packages: list[str] = option(
        default_factory=list, help="Installed packages that programs may import, such as numpy."
    )
    program_python: str | None = option(
        default=None, help="Interpreter that has --program_packages. By default the one in use."
    )
    executor_workers: int | None = option(
        default=None,
        help="Programs that run at once. By default one per processor.",
    )
    max_infra_share: float = option(
        default=0.05,
        help="Stop if a larger share of the completions gets no verdict because the executor or the endpoint "
        "failed.",
    )

    def __post_init__(self) -> None:
        if self.executor_workers is not None:
            require_positive(self, "executor_workers")
        if not self.program_timeout_s > 0:
            raise ValueError(f"--program_timeout_s is {self.program_timeout_s}; give seconds above 0")
        if self.program_timeout_factor is not None and not self.program_timeout_factor > 0:
            raise ValueError(
                f"--program_timeout_factor is {self.program_timeout_factor}; give a number above 0"
            )
        require_share(self, "max_infra_share")
        for name, least in (("program_memory_mb", LEAST_MEMORY_MB), ("program_processes", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"--{name} is {getattr(self, name)}; give {least} or more")

    @property
    def program_limits(self) -> Limits:
        """Limits of one program with all its tests."""
        return Limits.with_timeout(
            self.program_timeout_s, memory_mb=self.program_memory_mb, processes=self.program_processes
        )


@dataclass
class PromptOptions:
    """Options of the prompts that the model sees."""

    group: ClassVar[str] = "prompts"

    num_turns: int = option(default=2, help="Turns per problem (T).")
    protocol: str = option(
        default="cocos",
        help="Prompt protocol: `cocos` for Boost and CoCoS models, `cocos-fewshot` for base models, `chat` "
        "`repair` or `fix` for chat models; the last two say to find the error.",
    )
    few_shot_data: str | None = option(
        default=None,
        help="Solved problems for `cocos-fewshot`: a file, or a set as hub:mbpp/prompt.",
    )

    prompt_file: str | None = option(
        default=None,
        help="YAML file with your own messages of turn 1 (`first_turn`) and of later turns (`later_turn`), "
        "instead of --protocol; see docs/generation.md.",
    )

    prompt_tests: int | None = option(
        default=None,
        help="Visible tests that the prompt shows, the first N. By default all.",
    )

    def __post_init__(self) -> None:
        require_positive(self, "num_turns")
        require_not_negative(self, "prompt_tests")
        if self.prompt_file and (self.protocol != PromptOptions.protocol or self.few_shot_data):
            raise ValueError(
                "--prompt_file replaces --protocol and --few_shot_data; leave them out, or leave it out"
            )

    @property
    def protocol_name(self) -> str:
        """Name of the prompt protocol as results record it."""
        return prompt_file_name(self.prompt_file) if self.prompt_file else self.protocol


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


def require_not_negative(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options is below 0; None, not given, is allowed."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not value >= 0:
            raise ValueError(f"--{name} is {value}; give 0 or more")


def require_share(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options does not lie in [0, 1]."""
    for name in names:
        if not 0 <= getattr(options, name) <= 1:
            raise ValueError(f"--{name} is {getattr(options, name)}; it must lie in [0, 1]")


def open_executor(
    options: ExecutorOptions,
    problems: Iterable[Problem] = (),
    max_wait_s: float | None = None,
    sandbox: str | None = None,
) -> Executor:
    """Start the executor that the options describe; the caller closes it.

    Args:
        options: Isolation level, number of workers, limits and packages.
        problems: Problems whose references set the time limits with `--program_timeout_factor`.
        max_wait_s: Longest time that a program may wait for a worker, in seconds; None: no limit.
        sandbox: Isolation level instead of `options.sandbox`; None for that.

    """
    executor = Executor(
        options.executor_workers or num_processors(),
        options.program_limits,
        sandbox or options.sandbox,
        options.min_isolation,
        max_wait_s=max_wait_s,
        packages=tuple(options.program_packages),
        python=options.program_python,
    )
    if options.program_timeout_factor is not None:
        references = [as_program(problem, problem.code) for problem in problems if problem.code.strip()]
        try:
            limits = calibrate(executor, references, options.program_timeout_factor)
        except BaseException:
            executor.close()
            raise
        executor.set_limits(references, limits)
    return executor


def prompt_protocol(options: PromptOptions) -> PromptProtocol:
    """Return the prompt protocol, with the few-shot problems loaded from their file."""
    if options.prompt_file:
        return replace(load_prompt_file(options.prompt_file), prompt_tests=options.prompt_tests)
    few_shot_data = options.few_shot_data
    few_shot = load_problems(problems_file(few_shot_data)) if few_shot_data else ()
    return protocol(options.protocol, few_shot, options.prompt_tests)

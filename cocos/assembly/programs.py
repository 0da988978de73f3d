"""The executor that the options describe."""

import sys
from collections.abc import Iterable
from itertools import takewhile

from cocos.config.executor_options import ExecutorOptions, ScoringOptions
from cocos.config.ranks import is_main_process, num_processors
from cocos.executor import Executor
from cocos.executor.calibration import calibrate
from cocos.executor.sandboxes.levels import LEVELS
from cocos.problems import Problem
from cocos.trajectories import as_program


def open_executor(
    options: ExecutorOptions,
    problems: Iterable[Problem] = (),
    max_wait_s: float | None = None,
    sandbox: str | None = None,
) -> Executor:
    """Start the executor that the options describe; the caller closes it.

    With `--sandbox auto`, print which level it has, and below namespaces why no stronger one.

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
    if is_main_process() and (sandbox or options.sandbox) == "auto":
        stronger = [*takewhile(lambda level: level.name != executor.isolation, LEVELS)]
        is_weak = any(level.name == "namespaces" for level in stronger)
        reasons = [f"; not {level.name}: {level.missing_reason()}" for level in stronger if is_weak]
        print(f"programs isolated by {executor.isolation}{''.join(reasons)}", file=sys.stderr)
    if isinstance(options, ScoringOptions) and options.program_timeout_factor is not None:
        references = [as_program(problem, problem.code) for problem in problems if problem.code.strip()]
        try:
            limits = calibrate(executor, references, options.program_timeout_factor)
        except BaseException:
            executor.close()
            raise
        executor.set_limits(references, limits)
    return executor

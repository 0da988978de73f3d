"""The executor that options describe: workers of this machine, or servers."""

from cocos.config.executor_options import ExecutorOptions
from cocos.distributed import num_processors
from cocos.executor import Executor
from cocos.executor.remote.access import read_token
from cocos.executor.remote.client import RemoteExecutor


def start_executor(
    options: ExecutorOptions, max_wait_s: float | None = None, sandbox: str | None = None
) -> Executor:
    """Start an executor; the caller closes it.

    Args:
        options: Isolation level, number of workers, limits and packages, or servers.
        max_wait_s: Longest time that a program may wait for a worker, in seconds; None: no limit.
        sandbox: Isolation level instead of `options.sandbox`; None for that.

    """
    if options.executor_url:
        return RemoteExecutor(
            options.executor_url,
            read_token(options.executor_token_file),
            options.executor_certificate,
            options.program_limits,
            sandbox or options.sandbox,
            options.min_isolation,
            max_wait_s=max_wait_s,
            packages=tuple(options.program_packages),
        )
    return Executor(
        options.executor_workers or num_processors(),
        options.program_limits,
        sandbox or options.sandbox,
        options.min_isolation,
        max_wait_s=max_wait_s,
        packages=tuple(options.program_packages),
        python=options.program_python,
        runtime=options.runtime,
    )

"""Failures of vLLM, reported as user errors."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import TypeVar

POLL_S = 0.5
T = TypeVar("T")


@contextmanager
def engine_failure_named(action: str) -> Iterator[None]:
    """Turn every failure of the engine in the `with` block into an error of one line.

    Args:
        action: What the engine is asked to do, as in "vLLM cannot ACTION".

    Raises:
        ValueError: The block has raised any exception. Its first line is quoted; vLLM's own messages, which
            name the cause, are above it in the output.

    """
    try:
        yield
    # vLLM and TRL's client raise plain Exception, RuntimeError, AttributeError and others, by version.
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"vLLM cannot {action} ({type(error).__name__}: {reason}); its messages above have the cause"
        ) from error


def call_while_alive(call: Callable[[], T], processes: Iterable[BaseProcess]) -> T:
    """Return `call()`, or raise once one of the processes has ended.

    The call runs in a thread. vLLM 0.30 waits for ever for an engine process that was killed, and a thread
    that waits cannot be stopped: after an error it stays behind until this process ends.

    Args:
        call: Needs all the processes.
        processes: Children of this process, started with `multiprocessing`.

    Raises:
        ChildProcessError: A process has ended before the call.
        BaseException: What the call raises.

    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    while not wait([answer], POLL_S).done:
        for process in processes:
            if not process.is_alive():
                raise ChildProcessError(f"its process ended with exit code {process.exitcode}")
    return answer.result()

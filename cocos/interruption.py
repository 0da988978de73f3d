"""Ctrl-C in commands whose finished work is already on the disk: one line, and the process ends at once."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType


def exit_on_ctrl_c(finished_work: Callable[[], str]) -> None:
    """From now on, end the process on Ctrl-C with exit status 130 and one line on stderr.

    The process ends without raising an exception: it may be inside a library that catches everything, threads
    may wait for an endpoint, and whoever is interrupted while cleaning up prints tracebacks. Executor workers
    end with this process.

    Args:
        finished_work: Returns what is saved and how to continue, for the line; called on Ctrl-C. Under a
            launcher only rank 0 prints it.

    """
    pid, is_main = os.getpid(), os.environ.get("RANK", "0") == "0"

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == pid and is_main:  # child processes inherit the handler
            # The progress bar's line has no end. print() is not safe in a signal handler.
            os.write(sys.stderr.fileno(), f"\ninterrupted: {finished_work()}\n".encode())
        os._exit(128 + number)

    signal.signal(signal.SIGINT, handle)

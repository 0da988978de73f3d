"""Runner of every command: prints user errors as one line and sets the exit status.

Imports nothing outside the standard library, so that a command is protected from Ctrl-C at once: a command
imports this module at its top, and all others in its main function.
"""

import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

MOST_CHARACTERS = 1000  # of an error; this project's own are shorter


def run_command(main: Callable[[], int | None]) -> NoReturn:
    """Call a command's main function and exit the process.

    The exit status is 0 if `main` returns None, otherwise the number that it returns; 2 after an error that
    the user can fix, which is printed as one line; 130 after Ctrl-C; 141 if the reader of the output has
    closed the pipe, as after SIGPIPE. With COCOS_TRACEBACK=1 in the environment, a user error is raised with
    its traceback.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # None if it is closed
        sys.stdout.reconfigure(errors="replace")  # an ASCII locale would end a report at its first arrow
    try:
        status = main()
        sys.stdout.flush()  # a closed pipe is noticed here, not in the interpreter's last moments
    except BrokenPipeError:
        # The interpreter flushes what is left at its end, and would print a second error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except Exception as error:
        if os.environ.get("COCOS_TRACEBACK") or not _is_user_error(error):
            raise
        line = " ".join(_text(error).split()) or type(error).__name__
        if len(line) > MOST_CHARACTERS:  # a library's, such as a list of all its classes
            line = f"{line[:300]} ... {line[-100:]}"
        print(f"error: {line} (COCOS_TRACEBACK=1 shows where)", file=sys.stderr)
        status = 2
    sys.exit(status)


def _text(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        from cocos.files.extras import missing_package

        return missing_package(error)
    return str(error)


def _is_user_error(error: Exception) -> bool:
    from cocos.executor import ExecutorError

    # ImportError: an option may need a package that is not installed, such as bitsandbytes.
    return isinstance(error, (ValueError, OSError, ImportError, ExecutorError))


def exit_on_ctrl_c(finished_work: Callable[[], str]) -> Any:
    """From now on, end the process on Ctrl-C with exit status 130 and one line on stderr.

    The process ends without raising an exception: it may be inside a library that catches everything, or in a
    destructor, which swallows exceptions; threads may wait for an endpoint; and whoever is interrupted while
    cleaning up prints tracebacks. Executor workers end with this process.

    Args:
        finished_work: Returns what is saved and how to continue, for the line; called on Ctrl-C. Under a
            launcher only rank 0 prints it.

    Returns:
        The former handler of Ctrl-C.

    """
    pid, is_main = os.getpid(), os.environ.get("RANK", "0") == "0"

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == pid and is_main:  # child processes inherit the handler
            # The progress bar's line has no end. print() is not safe in a signal handler.
            os.write(sys.stderr.fileno(), f"\ninterrupted: {finished_work()}\n".encode())
        os._exit(128 + number)

    return signal.signal(signal.SIGINT, handle)

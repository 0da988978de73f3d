"""Sandboxed process that executes programs, started and killed by the trusted process.

The module of each isolation level starts one for each worker.
"""

import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress

from cocos.executor.verdicts import ExecutorError

OPEN_FILES = 3  # of a sandbox in this process: two pipes, and what it writes to stderr
SPARE_OPEN_FILES = 64  # a start needs ten for a moment, and others in this process open files too


def make_room(num_sandboxes: int) -> None:
    """Raise the soft limit on this process's open files if these sandboxes need more.

    Raises:
        ExecutorError: The hard limit is lower.

    """
    needed = len(os.listdir("/proc/self/fd")) + num_sandboxes * OPEN_FILES + SPARE_OPEN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != hard < needed:
        raise ExecutorError(
            f"{num_sandboxes} workers need {needed} open files, and this process may have {hard}; raise the "
            f"limit (ulimit -n {needed}), or use fewer workers (--executor_workers)"
        )
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Sandbox:
    """A sandboxed process with pipes to its stdin and stdout, in a new session.

    Args:
        command: Command line of the process.
        environment: Its whole environment; nothing is inherited.
        pass_fds: File descriptors that it inherits.
        hint: Beginning of what the command adds to each of its messages.
        clean_up: Called after the process is dead, and before if it cannot be killed.

    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        pass_fds: tuple[int, ...] = (),
        hint: str = "",
        clean_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._clean_up, self._hint = clean_up, hint
        # A file and not a pipe: nobody reads stderr while the process runs, and a full pipe would block it.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            env=environment,
            cwd="/",
            start_new_session=True,  # so that kill() can reach the whole process group
            pass_fds=pass_fds,
        )

    def stderr_tail(self) -> str:
        """Return the last line that the process wrote to stderr, or "" if there is none."""
        with suppress(ValueError):  # the file is closed
            self._stderr.seek(0)
            text = self._stderr.read().decode(errors="replace")
            lines = (text.partition(self._hint)[0] if self._hint else text).strip().splitlines()
            return lines[-1][:300] if lines else ""
        return ""

    def kill(self) -> None:
        """Kill the process group, reap the process and close its pipes. Safe to call twice."""
        if self.process.returncode is None:
            for file in (self.process.stdin, self.process.stdout, self._stderr):
                with suppress(BrokenPipeError):
                    file.close()  # type: ignore[union-attr]
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:  # `sudo docker` belongs to root, and ends when its container is removed
                self._clean_up()
            self.process.wait()
            self._clean_up()


def run_in_background(command: list[str]) -> None:
    """Run a command that goes on if this process ends."""
    arguments = {"stdin": subprocess.DEVNULL, "capture_output": True, "start_new_session": True}
    threading.Thread(target=subprocess.run, args=(command,), kwargs=arguments, daemon=True).start()

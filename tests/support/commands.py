"""The project's commands, run as processes in the way that users run them."""

import fcntl
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.paths import ROOT

BIN = os.path.dirname(sys.executable)
# pytest-xdist sets the width of its own terminal; commands under test print as they do without one.
os.environ.pop("COLUMNS", None)
ENVIRONMENT = os.environ | {
    "PATH": f"{BIN}:{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
    "WANDB_MODE": "offline",
    "HF_HUB_OFFLINE": "1",
    "WANDB_DIR": tempfile.gettempdir(),
    "DS_ACCELERATOR": "cpu",
}
# For a command whose report is not what a test is about: charts take most of a short evaluation's seconds.
WITHOUT_CHARTS = {"HIDDEN_PACKAGES": "matplotlib"}


def command(*words, cwd=ROOT, timeout_s=240, **environment):
    """Run a command, in the repository if no folder is given: one thread, no network, wandb offline. Return the finished process.

    Python commands are forked from a server that has imported torch, transformers and TRL. Names are further
    environment variables, and None removes one.
    """
    words = [str(word) for word in words]
    if words[0] == sys.executable:
        return start(*words, cwd=cwd, **environment).finish(timeout_s)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        running = subprocess.Popen(
            words, cwd=cwd, env=with_variables(environment), stdout=out, stderr=err, start_new_session=True
        )
        with suppress(subprocess.TimeoutExpired):
            running.wait(timeout_s)
        is_over = running.poll() is not None
        if not is_over:  # ranks that wait for each other: none may outlive the test
            os.killpg(running.pid, signal.SIGKILL)
        out.seek(0), err.seek(0)
        done = subprocess.CompletedProcess(words, running.wait(), out.read(), err.read())
        assert is_over, f"no end after {timeout_s} s\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done


def with_variables(variables):
    """Return the environment of all commands with further variables, or without those that are None."""
    return {name: value for name, value in (ENVIRONMENT | variables).items() if value is not None}


def start(*words, cwd=ROOT, **environment):
    """Start a Python command as `command` does; return the running command."""
    return RunningCommand([str(word) for word in words], cwd, with_variables(environment))


def succeed_as_two_ranks(*words, timeout_s=600, **environment):
    """Run a Python command as two processes with torchrun's variables, but without a launcher, which takes 20 s of a CPU to
    import torch. Both must exit with status 0. Return what they print to stdout.
    """
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())} | environment
    sizes = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), "2")
    ranks = [start(*words, RANK=rank, LOCAL_RANK=rank, **sizes, **variables) for rank in "01"]
    finished = [rank.finish(timeout_s) for rank in ranks]
    for done in finished:
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return "".join(done.stdout for done in finished)


class RunningCommand:
    """A Python command that the server of Python commands has forked, in a process group of its own.

    On the connection, its process id comes and then its exit status.
    """

    def __init__(self, words, cwd, environment):
        self._words, self._folder = words, tempfile.TemporaryDirectory()
        self._outputs = [Path(self._folder.name, name) for name in ("stdout", "stderr")]
        with self._outputs[0].open("w") as out, self._outputs[1].open("w") as err:
            request = json.dumps([words[1:], str(cwd), environment]).encode()
            self._connection = socket.socket(socket.AF_UNIX)
            self._connection.connect(_server())
            socket.send_fds(self._connection, [request], (out.fileno(), err.fileno()))
        self._answers = self._connection.makefile("r")
        self.pid = int(self._answers.readline())

    def is_running(self):
        """Return whether it has not ended, or its end was not yet noticed."""
        return os.path.exists(f"/proc/{self.pid}")

    def printed(self):
        """Return what it has written to stdout and to stderr so far."""
        return tuple(path.read_text() for path in self._outputs)

    def finish(self, timeout_s=240):
        """Wait for its end; return the finished process. It is killed when the time is over."""
        self._connection.settimeout(timeout_s)
        try:
            status = int(self._answers.readline())
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            raise
        finally:
            self._answers.close(), self._connection.close()
        finished = subprocess.CompletedProcess(self._words, status, *self.printed())
        self._folder.cleanup()
        return finished


@contextmanager
def alone(folder):
    """Keep pytest-xdist's other workers out of the block: the first one makes what the others then find."""
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def _server():
    """Return the path of the socket of the server of Python commands; start it unless another worker has."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    run = os.getppid() if is_worker else os.getpid()  # the server ends with it
    folder = Path(tempfile.gettempdir(), f"python-commands-of-{run}")
    folder.mkdir(exist_ok=True)
    path = folder / "socket"
    with alone(folder):
        if not path.exists():
            words = [sys.executable, "-m", "tests.support.fork_server", str(path), str(run)]
            # In a session of its own, so that Ctrl-C leaves it to remove its folder.
            server = subprocess.Popen(
                words, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.DEVNULL, start_new_session=True
            )
            while not path.exists():
                assert server.poll() is None, "the server of Python commands could not start"
                time.sleep(0.05)
    return str(path)


SHIM = """#!{python} -ISs
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({socket!r})
    request = [["-m", "cocos", *sys.argv[1:]], os.getcwd(), dict(os.environ)]
    socket.send_fds(connection, [json.dumps(request).encode()], (1, 2))
    _, status = connection.makefile("r").read().split()
sys.exit(int(status))
"""


def write_shim(path):
    """Write a program `cocos` for shell scripts, which the server of Python commands runs."""
    path.write_text(SHIM.format(python=sys.executable, socket=_server()))
    path.chmod(0o755)


def succeed(*words, **environment):
    """Run a command, which must exit with status 0. Return the finished process."""
    done = command(*words, **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def complaint(*words):
    """Run a command, which must exit with status 2. Return its one error line; a traceback fails the test."""
    done = command(*words)
    assert done.returncode == 2, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr[-2000:]
    return lines[0]


def free_port():
    """Return a TCP port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]

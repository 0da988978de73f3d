"""The project's commands, run as processes in the way that users run them."""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tests.support.paths import ROOT

BIN = os.path.dirname(sys.executable)
ENVIRONMENT = os.environ | {
    "PATH": f"{BIN}:{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
    "WANDB_MODE": "offline",
    "HF_HUB_OFFLINE": "1",
    "WANDB_DIR": tempfile.gettempdir(),
    "DS_ACCELERATOR": "cpu",
}


def command(*words, timeout_s=240):
    """Run a command in the repository: one thread, no network, wandb offline. Return the finished process.

    Python commands are forked from a server that has imported torch, transformers and TRL.
    """
    words = [str(word) for word in words]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        if words[0] == sys.executable:
            status = _server().run(words[1:], out.fileno(), err.fileno(), timeout_s)
        else:
            status = subprocess.run(
                words, cwd=ROOT, env=ENVIRONMENT, stdout=out, stderr=err, timeout=timeout_s
            ).returncode
        out.seek(0), err.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


class ForkServer:
    """Client of the server that forks Python commands; the server ends with this process."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "socket")
        words = [sys.executable, "-m", "tests.support.fork_server", self._path]
        self._process = subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT)
        while not os.path.exists(self._path):
            assert self._process.poll() is None, "the server of Python commands could not start"
            time.sleep(0.05)

    def run(self, words, stdout, stderr, timeout_s):
        """Run a command with the given file descriptors as its output; return its exit status."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(self._path)
            request = json.dumps([words, str(ROOT), ENVIRONMENT]).encode()
            socket.send_fds(connection, [request], [stdout, stderr])
            with connection.makefile("r") as answer:
                pid = int(answer.readline())
                try:
                    return int(answer.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise

    def close(self):
        """End the server."""
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


@functools.cache
def _server():
    server = ForkServer()
    atexit.register(server.close)
    return server


def succeed(*words):
    """Run a command, which must exit with status 0. Return the finished process."""
    done = command(*words)
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

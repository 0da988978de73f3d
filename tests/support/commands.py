"""The project's commands, run as processes in the way that users run them."""

import os
import socket
import subprocess
import sys
import tempfile

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
    """Run a command in the repository: one thread, no network, wandb offline. Return the finished process."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


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

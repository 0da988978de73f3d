"""The server that forks Python commands for the tests: a forked command ends like one started by a shell."""

import subprocess
import sys

import pytest

from tests.support.commands import ENVIRONMENT, command
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

SCRIPTS = {
    "returns": "import atexit, sys; atexit.register(print, 'last'); print(sys.argv[1:], __name__)",
    "exits": "import sys; print('out'); sys.exit(3)",
    "exits with a message": "import sys; sys.exit('why')",
    "raises": "raise ValueError('ours')",
    "is killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "starts a thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_forked_command_ends_like_one_started_by_a_shell(name, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name])
    words = [sys.executable, script, "--flag", "a b"]
    started = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    forked = command(*words)
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]

"""The executor as an ordinary user, for tests that run as root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

UID = "12345"
PYTHON = "/usr/bin/python3"  # the interpreter of these tests may be in a folder that only root can read
# Runs groups of programs, each group on one worker, and prints a list of [statuses, infra_error] per group.
RUN_GROUPS = """
import json, sys
from cocos.executor import Executor, Limits, Program
level, groups = json.load(sys.stdin)
with Executor(num_workers=1, sandbox=level, limits=Limits(wall_s=20)) as executor:
    found = [executor.run([Program(code, tuple(tests)) for code, tests in group]) for group in groups]
print(json.dumps([[[[str(v.status) for v in r.verdicts], r.infra_error] for r in group] for group in found]))
"""


def run_groups(level: str, groups: list, as_root: bool) -> list:
    """Run RUN_GROUPS in a process of its own."""
    answer = run_python(RUN_GROUPS, json.dumps([level, groups]), as_root)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def run_python(code: str, text: str = "", as_root: bool = False) -> subprocess.CompletedProcess:
    """Run code that imports cocos.executor, as this user or as one without privileges; skip where that fails."""
    if as_root:
        return subprocess.run(
            [sys.executable, "-c", code], input=text, capture_output=True, text=True, cwd=ROOT
        )
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    import pyseccomp

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "cocos", Path(folder, "cocos"), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(pyseccomp.__file__, folder)
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755)
        command = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": folder}
        check = subprocess.run(
            [*command, PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], capture_output=True
        )
        if check.returncode:
            pytest.skip(f"no setpriv, or {PYTHON} is older than 3.11")
        return subprocess.run(
            [*command, PYTHON, "-B", "-c", code],
            input=text,
            capture_output=True,
            text=True,
            env=environment,
            cwd="/",
        )

"""Level `seccomp`: no namespaces, but no_new_privs, a system-call filter and Landlock. Also the level
`rlimits`, which has none.

Works inside an ordinary unprivileged container. A program may read the interpreter and the system's
libraries, write below a private folder, and do nothing to any other process: it cannot start one either.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from cocos.executor.inside.confine import landlock_version
from cocos.executor.limits import Limits
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.interpreter import ENVIRONMENT, FLAGS, INSIDE, INTERPRETER
from cocos.executor.worker import Sandbox

OTHERS_GROWTH = (
    256  # processes and threads that this user may start elsewhere before programs are refused theirs
)
READABLE = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero")


def why_missing() -> str | None:
    """Why this machine does not offer the level; None where it does."""
    if reason := syscall_filter.why_missing():
        return reason
    if not landlock_version():
        return (
            "the kernel has no Landlock (needs Linux 5.13 or later with landlock among its security modules)"
        )
    return None


def launch(limits: Limits) -> Sandbox:
    """Start a worker whose programs are confined by the filter and Landlock."""
    readable = [*READABLE, sys.base_prefix]
    return _start(
        {"seccomp": syscall_filter.compile_filter(strict=True), "strict": True, "landlock": readable}
    )


def launch_rlimits(limits: Limits) -> Sandbox:
    """Start a worker whose programs are held by resource limits alone."""
    return _start({})


def _start(confinement: dict) -> Sandbox:
    scratch = tempfile.mkdtemp(prefix="cocos-executor-")
    if os.geteuid() != 0:  # the kernel does not count root's
        confinement["processes_beside"] = _tasks_of_this_user() + OTHERS_GROWTH
    command = [INTERPRETER, *FLAGS, str(INSIDE), json.dumps({"scratch": [scratch], **confinement})]
    environment = {**ENVIRONMENT, "TMPDIR": scratch}
    return Sandbox(command, environment, clean_up=lambda: _remove(scratch))


def _tasks_of_this_user() -> int:
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == os.geteuid():
                count += len(os.listdir(process / "task"))
    return count


def _remove(folder: str) -> None:
    """Remove what programs left, however deep and locked it is."""
    subprocess.run(["chmod", "-R", "u+rwx", folder], capture_output=True, check=False)
    subprocess.run(["rm", "-rf", folder], capture_output=True, check=False)

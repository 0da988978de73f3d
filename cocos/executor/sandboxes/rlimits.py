"""Level `rlimits`: an ordinary process with resource limits and a private scratch folder, and no isolation.

The level `seccomp` starts the same process and confines it further.
"""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from cocos.executor.limits import Limits
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.interpreter import ENVIRONMENT, FLAGS, INSIDE, INTERPRETER
from cocos.executor.sandboxes.sandbox import Sandbox, run_in_background

# RLIMIT_NPROC counts all processes and threads of the user, not those of one program. So the limit of a
# program is raised by the tasks that the user runs now, and by this reserve for tasks that start later.
SPARE_TASKS = 256


def launch(limits: Limits) -> Sandbox:
    """Start a worker whose programs are confined by resource limits alone.

    Where it can, it refuses new programs as the other levels do, so that verdicts do not depend on the level.
    """
    return start({"syscall_filter": syscall_filter.filter_of_programs()})


def start(confinement: dict) -> Sandbox:
    """Start a worker with a private scratch folder.

    Args:
        confinement: Further fields of `inside.confinement.Confinement`.

    """
    scratch = tempfile.mkdtemp(prefix="cocos-executor-")
    if os.geteuid() != 0:  # RLIMIT_NPROC does not apply to root
        confinement = {**confinement, "processes_beside": _num_tasks_of_this_user() + SPARE_TASKS}
    command = [INTERPRETER, *FLAGS, str(INSIDE), json.dumps({"scratch": scratch, **confinement})]
    return Sandbox(command, {**ENVIRONMENT, "TMPDIR": scratch}, clean_up=lambda: _remove(scratch))


def _num_tasks_of_this_user() -> int:
    """Return how many processes and threads this user runs."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended since
            if process.stat().st_uid == os.geteuid():
                count += len(os.listdir(process / "task"))
    return count


def _remove(folder: str) -> None:
    """Remove a folder with all that programs left in it.

    Unless it is empty, this happens in the background, because it can take long. `shutil.rmtree` gives up on
    locked and on very deep folders; these commands remove both.
    """
    try:
        os.rmdir(folder)
    except OSError:
        run_in_background(["sh", "-c", 'chmod -R u+rwx "$1"; rm -rf "$1"', "sh", folder])

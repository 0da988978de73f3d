"""Level `rlimits`: an ordinary process with resource limits and a private scratch folder, and no isolation.

The level `seccomp` starts the same process and confines it further.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from cocos.executor.limits import Limits
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.interpreter import INSIDE, INTERPRETER, START, Interpreter
from cocos.executor.sandboxes.sandbox import Sandbox, run_in_background

# RLIMIT_NPROC counts all processes and threads of the user, not those of one program. So the limit of a
# program is raised by the tasks that the user runs now, and by this reserve for tasks that start later.
SPARE_TASKS = 256


def launch(limits: Limits, interpreter: Interpreter) -> Sandbox:
    """Start a worker whose programs are confined by resource limits alone.

    Where it can, it refuses new programs as the other levels do, so that verdicts do not depend on the level.
    """
    return start({"syscall_filter": syscall_filter.filter_of_programs()}, interpreter)


def start(confinement: dict, interpreter: Interpreter) -> Sandbox:
    """Start a worker with a private scratch folder.

    Args:
        confinement: Further fields of `inside.confinement.Confinement`.
        interpreter: The interpreter and its packages.

    """
    scratch = tempfile.mkdtemp(prefix="cocos-executor-")
    if os.geteuid() != 0:  # RLIMIT_NPROC does not apply to root
        confinement = {**confinement, "processes_beside": _num_tasks_of_this_user() + SPARE_TASKS}
    packages = _link_packages(interpreter) if interpreter.entries else ""
    if packages and "landlock" in confinement:
        readable = [*confinement["landlock"], packages, *(path for _, path in interpreter.entries)]
        confinement = {**confinement, "landlock": readable}
    arguments = interpreter.arguments({"scratch": scratch, **confinement}, packages)
    command = [INTERPRETER, *START, *arguments]

    def clean_up() -> None:
        _remove(scratch)
        if packages:
            shutil.rmtree(packages, ignore_errors=True)

    environment = interpreter.environment(str(INSIDE.parent)) | {"TMPDIR": scratch}
    return Sandbox(command, environment, clean_up=clean_up)


def _link_packages(interpreter: Interpreter) -> str:
    """Return a new folder with a link to each file and folder of the packages, and to nothing else."""
    folder = tempfile.mkdtemp(prefix="cocos-packages-")
    for name, path in interpreter.entries:
        os.symlink(path, os.path.join(folder, name))
    return folder


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

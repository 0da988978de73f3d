"""Level `namespaces`: the worker runs under bubblewrap.

The sandbox has its own user, PID, network, IPC, UTS, cgroup and mount namespaces. The system is read-only,
/tmp is private and empty, home directories are absent, and no environment variable is inherited. The zygote
is PID 1. The kernel therefore protects it from signals of its children, and kills every other process in the
sandbox when it ends.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cocos.executor.inside.wire_format import READY
from cocos.executor.limits import Limits
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.interpreter import (
    INSIDE,
    INSIDE_FOLDER,
    INTERPRETER,
    PACKAGES_FOLDER,
    START,
    Interpreter,
)
from cocos.executor.sandboxes.sandbox import Sandbox

TMP_MB, TMP_FILES = 64, 4096
NOBODY_UID = 65534
# The zygote mounts the scratch folder (SYS_ADMIN) and then gives this capability up.
ZYGOTE_CAPABILITIES = ("CAP_SYS_ADMIN",)
# As root it also gives each child another user than itself; `inside/confinement.py` says what this needs.
ROOT_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_OVERRIDE", "CAP_FOWNER")


@functools.cache
def missing_reason() -> str | None:
    """Return why this level does not work on this machine and what to do; None if it works.

    Starts a sandbox to find out: whether it works depends on many settings of the kernel and the container.
    """
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed (Debian, Ubuntu, Fedora: package bubblewrap)"
    if reason := syscall_filter.missing_reason():
        return reason
    try:
        sandbox = launch(Limits(), Interpreter())
        try:
            output, _ = sandbox.process.communicate(timeout=30)
            message = sandbox.stderr_tail()
        finally:
            sandbox.kill()
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here ({error})"
    if not output.startswith(READY):
        return f"the kernel or the container refuses new namespaces (allow user namespaces): {message}"
    return None


def launch(limits: Limits, interpreter: Interpreter) -> Sandbox:
    """Start a worker.

    Raises:
        ValueError: bubblewrap ended at once; the message is its own.

    """
    confinement: dict = {
        "scratch": "/tmp",
        "scratch_options": f"size={TMP_MB}m,nr_inodes={TMP_FILES},mode=0777",
        # The kernel counts processes per user and user namespace, and nobody else uses this namespace.
        "processes_beside": 0,
        "syscall_filter": syscall_filter.shared_filter(),
    }
    if os.geteuid() == 0:
        confinement["uid"] = NOBODY_UID
    arguments = interpreter.arguments(confinement, PACKAGES_FOLDER)
    command = [INTERPRETER, *START, *arguments]
    # The map of user ids is written from outside: bubblewrap would map an ordinary user in two steps, after
    # which the zygote could not mount anything. bubblewrap reports the PID of its child on the info pipe, and
    # the child waits on the block pipe until the map is written.
    info_r, info_w = os.pipe()
    block_r, block_w = os.pipe()
    try:
        own_map = ["--info-fd", str(info_w), "--userns-block-fd", str(block_r)]
        bubblewrap = [*_namespaces(interpreter), *own_map, *_mounts(interpreter)]
        sandbox = Sandbox([*bubblewrap, "--", *command], {}, (info_w, block_r))
        os.close(info_w)  # else the read would never end if bubblewrap dies without a report
        info_w = -1
        try:
            _map_users(info_r)
            os.write(block_w, b"1")
        except json.JSONDecodeError:  # bubblewrap has ended without a report, and said why
            sandbox.process.wait()
            raise ValueError(sandbox.stderr_tail()) from None
        except OSError:  # it was killed after its report
            sandbox.kill()
            raise
    finally:
        for fd in (info_r, info_w, block_r, block_w):
            if fd >= 0:
                os.close(fd)
    return sandbox


def _map_users(info_fd: int) -> None:
    """Map the ids inside, as soon as bubblewrap reports the PID of its child.

    For root, the zygote stays root and its children are nobody. An ordinary user can map one id only, so
    there all of them are nobody, who is the caller outside.
    """
    text = b""
    while b"}" not in text and (part := os.read(info_fd, 4096)):
        text += part
    process = Path(f"/proc/{json.loads(text)['child-pid']}")
    # Each line: first id inside, first id outside, number of ids.
    if os.geteuid() == 0:
        maps = {kind: f"0 0 1\n{NOBODY_UID} {NOBODY_UID} 1\n" for kind in ("uid", "gid")}
    else:
        (process / "setgroups").write_text("deny")  # the kernel demands it of an ordinary user
        maps = {"uid": f"{NOBODY_UID} {os.geteuid()} 1\n", "gid": f"{NOBODY_UID} {os.getegid()} 1\n"}
    for kind, lines in maps.items():
        (process / f"{kind}_map").write_text(lines)


def _namespaces(interpreter: Interpreter) -> list[str]:
    capabilities = (*ZYGOTE_CAPABILITIES, *(ROOT_CAPABILITIES if os.geteuid() == 0 else ()))
    return [
        shutil.which("bwrap") or "bwrap",
        *(f"--unshare-{namespace}" for namespace in ("user", "pid", "net", "ipc", "uts", "cgroup-try")),
        *(
            "--as-pid-1",  # no init process of bubblewrap in between: the zygote reaps orphans itself
            "--die-with-parent",
            "--new-session",  # no controlling terminal, into which a program could push input
            "--hostname",
            "sandbox",
            "--cap-drop",
            "ALL",
            "--clearenv",
        ),
        *(part for capability in capabilities for part in ("--cap-add", capability)),
        *(part for name, value in interpreter.environment().items() for part in ("--setenv", name, value)),
    ]


def _mounts(interpreter: Interpreter) -> list[str]:
    mounts = ["--ro-bind", "/usr", "/usr"]
    for path in ("/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache"):
        mounts += ["--ro-bind-try", path, path]
    if not sys.base_prefix.startswith("/usr"):
        # bubblewrap creates the parents of a mount point with mode 0700, which only root can enter.
        for parent in reversed(Path(sys.base_prefix).parents[:-1]):
            mounts += ["--perms", "0755", "--dir", str(parent)]
        mounts += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    mounts += ["--perms", "0755", "--dir", INSIDE_FOLDER]
    mounts += ["--ro-bind", str(INSIDE), f"{INSIDE_FOLDER}/{INSIDE.name}", "--proc", "/proc"]
    if interpreter.entries:
        mounts += ["--perms", "0755", "--dir", PACKAGES_FOLDER]
    for name, path in interpreter.entries:
        mounts += ["--ro-bind", path, f"{PACKAGES_FOLDER}/{name}"]
    # bubblewrap's /dev and / are file systems in memory: left writable, they would keep files for the next
    # program.
    mounts += ["--dev", "/dev", "--remount-ro", "/dev"]
    return [*mounts, "--dir", "/tmp", "--remount-ro", "/"]

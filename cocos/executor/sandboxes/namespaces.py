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

from cocos.executor.limits import Limits
from cocos.executor.sandboxes.forbidden_syscalls import compile_filter
from cocos.executor.sandboxes.interpreter import ENVIRONMENT, FLAGS, INSIDE, INTERPRETER
from cocos.executor.sandboxes.sandbox import Sandbox

TMP_MB = 64
CANDIDATE_UID, JUDGE_UID = 65534, 65533  # 65534 is "nobody"; _map_users maps the two as one range
# With several users the zygote must change to the candidate's or judge's id (SETUID, SETGID), kill their
# processes (KILL), and remove files whatever their owner and mode (DAC_OVERRIDE, FOWNER).
ZYGOTE_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_OVERRIDE", "CAP_FOWNER")


@functools.cache
def missing_reason() -> str | None:
    """Return why this level does not work on this machine and what to do; None if it works.

    Starts a sandbox to find out: whether it works depends on many settings of the kernel and the container.
    """
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed (Debian, Ubuntu, Fedora: package bubblewrap)"
    try:
        sandbox = _start(["-c", "print('works')"])
        try:
            output, _ = sandbox.process.communicate(timeout=30)
        finally:
            sandbox.kill()
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here ({error})"
    if output != b"works\n":
        return "the kernel or the container refuses new namespaces (allow unprivileged user namespaces)"
    return None


def launch(limits: Limits) -> Sandbox:
    """Start a worker."""
    confinement: dict = {
        "scratch": ["/tmp"],
        # The kernel counts processes per user and user namespace, and nobody else uses this namespace.
        "processes_beside": 0,
        "seccomp": compile_filter(strict=False),
    }
    if os.geteuid() == 0:
        confinement["uids"] = [CANDIDATE_UID, JUDGE_UID]
    return _start(["/inside", json.dumps(confinement)])


def _start(arguments: list[str]) -> Sandbox:
    """Start the interpreter under bubblewrap with these arguments."""
    command = [INTERPRETER, *FLAGS, *arguments]
    if os.geteuid() != 0:  # without privileges only one user id can be mapped, the caller's
        return Sandbox([*_namespaces(), *_mounts(), "--", *command], {})
    # bubblewrap can map only one user id, but zygote, candidate and judge each need one. So it reports the
    # PID of its child on the info pipe, and the child waits on the block pipe until the map is written.
    info_r, info_w = os.pipe()
    block_r, block_w = os.pipe()
    try:
        several_users = ["--info-fd", str(info_w), "--userns-block-fd", str(block_r)]
        for capability in ZYGOTE_CAPABILITIES:
            several_users += ["--cap-add", capability]
        sandbox = Sandbox([*_namespaces(), *several_users, *_mounts(), "--", *command], {}, (info_w, block_r))
        os.close(info_w)  # else the read would never end if bubblewrap dies without a report
        info_w = -1
        _map_users(info_r)
        os.write(block_w, b"1")
    finally:
        for fd in (info_r, info_w, block_r, block_w):
            if fd >= 0:
                os.close(fd)
    return sandbox


def _map_users(info_fd: int) -> None:
    """Map the ids of zygote, judge and candidate, as soon as bubblewrap reports the PID of its child."""
    text = b""
    while b"}" not in text and (part := os.read(info_fd, 4096)):
        text += part
    child = json.loads(text)["child-pid"]
    for kind in ("uid", "gid"):  # each line: first id inside, first id outside, number of ids
        Path(f"/proc/{child}/{kind}_map").write_text(f"0 0 1\n{JUDGE_UID} {JUDGE_UID} 2\n")


def _namespaces() -> list[str]:
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
        *(part for name, value in ENVIRONMENT.items() for part in ("--setenv", name, value)),
    ]


def _mounts() -> list[str]:
    mounts = ["--ro-bind", "/usr", "/usr"]
    for path in ("/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache"):
        mounts += ["--ro-bind-try", path, path]
    if not sys.base_prefix.startswith("/usr"):
        # bubblewrap creates the parents of a mount point with mode 0700, which only root can enter.
        for parent in reversed(Path(sys.base_prefix).parents[:-1]):
            mounts += ["--perms", "0755", "--dir", str(parent)]
        mounts += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    mounts += ["--ro-bind", str(INSIDE), "/inside", "--proc", "/proc"]
    # bubblewrap's /dev and / are file systems in memory: left writable, they would keep files for the next
    # program.
    mounts += ["--dev", "/dev", "--remount-ro", "/dev"]
    mounts += ["--size", str(TMP_MB << 20), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    return [*mounts, "--remount-ro", "/"]

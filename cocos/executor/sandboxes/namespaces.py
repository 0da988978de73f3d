"""Level `namespaces`: the worker under bubblewrap.

The sandbox has a user, PID, network, IPC, UTS, cgroup and mount namespace of its own; a read-only system, an
empty private /tmp, no home and no environment. The zygote is PID 1 in it: its children cannot signal it, and
end with it.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cocos.executor.limits import Limits
from cocos.executor.sandboxes.interpreter import ENVIRONMENT, FLAGS, INSIDE, INTERPRETER
from cocos.executor.sandboxes.syscall_filter import compile_filter
from cocos.executor.worker import Sandbox

TMP_MB = 64
CANDIDATE_UID, JUDGE_UID = 65534, 65533  # nobody, and its neighbour


@functools.cache
def why_missing() -> str | None:
    """Why this machine does not offer the level, found by trying it; None where it does."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed (Debian, Ubuntu, Fedora: package bubblewrap)"
    try:
        sandbox = _start(["-c", "print('works')"])
        output, _ = sandbox.process.communicate(timeout=30)
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
        "processes_beside": 0,
        "seccomp": compile_filter(strict=False),
    }
    if os.geteuid() == 0:
        confinement["uids"] = [CANDIDATE_UID, JUDGE_UID]
    return _start(["/inside", json.dumps(confinement)])


def _start(arguments: list[str]) -> Sandbox:
    command = [INTERPRETER, *FLAGS, *arguments]
    if os.geteuid() != 0:  # one user id in the sandbox: the caller's
        return Sandbox([*_namespaces(), *_mounts(), "--", *command], {})
    info_r, info_w = os.pipe()
    block_r, block_w = os.pipe()
    try:
        several_users = ["--info-fd", str(info_w), "--userns-block-fd", str(block_r)]
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_OVERRIDE", "CAP_FOWNER"):
            several_users += ["--cap-add", capability]
        sandbox = Sandbox([*_namespaces(), *several_users, *_mounts(), "--", *command], {}, (info_w, block_r))
        os.close(info_w)
        info_w = -1
        _map_users(info_r)
        os.write(block_w, b"1")
    finally:
        for fd in (info_r, info_w, block_r, block_w):
            if fd >= 0:
                os.close(fd)
    return sandbox


def _namespaces() -> list[str]:
    return [
        shutil.which("bwrap") or "bwrap",
        *(f"--unshare-{namespace}" for namespace in ("user", "pid", "net", "ipc", "uts", "cgroup-try")),
        *(
            "--as-pid-1",
            "--die-with-parent",
            "--new-session",
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
        for parent in reversed(
            Path(sys.base_prefix).parents[:-1]
        ):  # empty folders; as binds they could not be entered
            mounts += ["--perms", "0755", "--dir", str(parent)]
        mounts += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    mounts += [
        "--ro-bind",
        str(INSIDE),
        "/inside",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--remount-ro",
        "/dev",
    ]
    mounts += ["--size", str(TMP_MB << 20), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    return [*mounts, "--remount-ro", "/"]


def _map_users(info_fd: int) -> None:
    """Map the ids of zygote, judge and candidate, once bubblewrap has told the PID of its child."""
    text = b""
    while b"}" not in text and (part := os.read(info_fd, 4096)):
        text += part
    child = json.loads(text)["child-pid"]
    for kind in ("uid", "gid"):
        Path(f"/proc/{child}/{kind}_map").write_text(f"0 0 1\n{JUDGE_UID} {JUDGE_UID} 2\n")

"""Level `docker`: the worker runs in a long-lived container, one per worker.

The container has no network, a read-only file system, a small private /tmp and an unprivileged user without
capabilities, who cannot gain privileges. Processes, memory and processors are limited for the container as a
whole. `scripts/sandbox_image.sh` builds the image.

Environment variables: SANDBOX_DOCKER_IMAGE, DOCKER_BIN, and for the whole container SANDBOX_DOCKER_CPUS,
SANDBOX_DOCKER_MEMORY and SANDBOX_DOCKER_PIDS, in docker's words.
"""

import os
import shlex
import shutil
import subprocess
import uuid
from contextlib import suppress

from cocos.executor.limits import Limits
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.interpreter import INSIDE, INSIDE_FOLDER, PACKAGES_FOLDER, START, Interpreter
from cocos.executor.sandboxes.sandbox import Sandbox

NOBODY_UID = 65534
TMP_MB, TMP_FILES = 64, 4096
# Zygote and driver run in the container too, so its limits are those of one program plus these.
SPARE_MEMORY_MB = 256
PACKAGES_MEMORY_MB = 512  # third-party packages in the zygote
SPARE_PROCESSES = 8
CLIENT_TIMEOUT_S = 30.0  # for calls of the client that normally return at once


def image() -> str:
    """Return the name of the image to run."""
    return os.environ.get("SANDBOX_DOCKER_IMAGE", "cocos-sandbox")


def client() -> list[str]:
    """Return the command of the docker client, or of a program that takes the same arguments."""
    return shlex.split(os.environ.get("DOCKER_BIN", "")) or ["docker"]


def missing_reason() -> str | None:
    """Return why this level does not work on this machine and what to do; None if it works."""
    if not shutil.which(client()[0]):
        return f"no {client()[0]!r} command (install docker.io, or set DOCKER_BIN)"
    if reason := syscall_filter.missing_reason():
        return reason
    try:
        if error := _call("version", "--format", "{{.Server.Version}}"):
            return f"no docker engine answers (start the daemon, or join the docker group): {error}"
        if _call("image", "inspect", image()):
            return f"no image {image()!r} (scripts/sandbox_image.sh builds it, SANDBOX_DOCKER_IMAGE names it)"
    except subprocess.TimeoutExpired:
        return "the docker engine does not answer in time (restart the daemon)"
    return None


def launch(limits: Limits, interpreter: Interpreter) -> Sandbox:
    """Start a worker in its own container."""
    name = f"cocos-executor-{uuid.uuid4().hex[:12]}"
    confinement = {"scratch": "/tmp", "syscall_filter": syscall_filter.shared_filter()}
    program = [*START, *interpreter.arguments(confinement, PACKAGES_FOLDER)]
    command = [*client(), "run", *_options(name, limits, interpreter), image(), *program]
    # The client needs this environment to find the engine; the container does not inherit it. Killing the
    # client leaves the container running, so clean_up removes it.
    hint = "\n\nRun 'docker run --help'"
    return Sandbox(command, dict(os.environ), hint=hint, clean_up=lambda: _remove(name))


def _remove(name: str) -> None:
    # The zygote ends when its input does, so a container that a slow engine keeps now is removed later.
    with suppress(subprocess.TimeoutExpired):
        _call("rm", "--force", name)


def _call(*arguments: str) -> str | None:
    """Call the client with its output hidden; return the last line of its error, or None if it succeeds."""
    result = subprocess.run(
        [*client(), *arguments],
        stdin=subprocess.DEVNULL,  # sudo must not ask for a password
        capture_output=True,
        timeout=CLIENT_TIMEOUT_S,
        check=False,
    )
    if result.returncode == 0:
        return None
    return (result.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1][:300]


def _options(name: str, limits: Limits, interpreter: Interpreter) -> list[str]:
    memory_mb = limits.memory_mb + SPARE_MEMORY_MB + (PACKAGES_MEMORY_MB if interpreter.packages else 0)
    memory = os.environ.get("SANDBOX_DOCKER_MEMORY", f"{memory_mb}m")
    settings = {
        "name": name,
        "network": "none",
        "ipc": "none",
        "cap-drop": "ALL",
        "security-opt": "no-new-privileges",
        "user": f"{NOBODY_UID}:{NOBODY_UID}",
        "tmpfs": f"/tmp:rw,nosuid,nodev,size={TMP_MB}m,nr_inodes={TMP_FILES},mode=0777",
        "volume": f"{INSIDE}:{INSIDE_FOLDER}/{INSIDE.name}:ro",  # so that the image needs nothing but Python
        "workdir": "/tmp",
        "hostname": "sandbox",
        "pids-limit": os.environ.get("SANDBOX_DOCKER_PIDS", limits.processes + SPARE_PROCESSES),
        "memory": memory,
        "memory-swap": memory,  # limits the sum of memory and swap, so there is no swap
        "cpus": os.environ.get("SANDBOX_DOCKER_CPUS", "1"),
        "log-driver": "none",  # the engine would otherwise store every answer
        "entrypoint": "python3",
    }
    environment = [f"--env={key}={value}" for key, value in interpreter.environment().items()]
    packages = [f"--volume={path}:{PACKAGES_FOLDER}/{name}:ro" for name, path in interpreter.entries]
    return [
        "--interactive",
        "--rm",
        "--read-only",
        *(f"--{key}={value}" for key, value in settings.items()),
        *environment,
        *packages,
    ]

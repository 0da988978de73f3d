"""Level `docker`: the worker in a long-lived container, one per worker.

No network, a read-only system, a small private /tmp, no capabilities, no new privileges, an unprivileged
user; processes, memory and processors are capped for the container as a whole. `scripts/sandbox_image.sh`
builds the image.

Environment: SANDBOX_DOCKER_IMAGE, SANDBOX_DOCKER_CPUS, SANDBOX_DOCKER_MEMORY, DOCKER_BIN.
"""

import json
import os
import shutil
import subprocess
import uuid

from cocos.executor.limits import Limits
from cocos.executor.sandboxes.interpreter import ENVIRONMENT, FLAGS, INSIDE
from cocos.executor.sandboxes.syscall_filter import compile_filter
from cocos.executor.worker import Sandbox

NOBODY = 65534
TMP_MB = 64
OWN_MEMORY_MB = 256  # for zygote and judge, beside the program's
OWN_PROCESSES = 8
CLIENT_S = 30.0  # the client's calls that answer at once


def image() -> str:
    """The image to run."""
    return os.environ.get("SANDBOX_DOCKER_IMAGE", "cocos-sandbox")


def client() -> str:
    """The docker client, or one that takes the same arguments."""
    return os.environ.get("DOCKER_BIN", "docker")


def why_missing() -> str | None:
    """Why this machine does not offer the level; None where it does."""
    if not shutil.which(client()):
        return f"no {client()!r} command (install docker.io, or set DOCKER_BIN)"
    try:
        command = [client(), "version", "--format", "{{.Server.Version}}"]
        if subprocess.run(command, capture_output=True, timeout=CLIENT_S, check=False).returncode:
            return "no docker engine answers (start the daemon, or join the docker group)"
        command = [client(), "image", "inspect", image()]
        if subprocess.run(command, capture_output=True, timeout=CLIENT_S, check=False).returncode:
            return f"no image {image()!r} (scripts/sandbox_image.sh builds it, SANDBOX_DOCKER_IMAGE names it)"
    except subprocess.TimeoutExpired:
        return "the docker engine does not answer in time"
    return None


def launch(limits: Limits) -> Sandbox:
    """Start a worker in a container of its own."""
    name = f"cocos-executor-{uuid.uuid4().hex[:12]}"
    confinement = {"scratch": ["/tmp"], "seccomp": compile_filter(strict=False)}

    def remove() -> None:
        subprocess.run([client(), "rm", "--force", name], capture_output=True, timeout=CLIENT_S, check=False)

    command = [client(), "run", *_options(name, limits), image(), *FLAGS, "/inside", json.dumps(confinement)]
    return Sandbox(command, dict(os.environ), clean_up=remove)


def _options(name: str, limits: Limits) -> list[str]:
    memory = os.environ.get("SANDBOX_DOCKER_MEMORY", f"{limits.memory_mb + OWN_MEMORY_MB}m")
    settings = {
        "name": name,
        "network": "none",
        "ipc": "none",
        "cap-drop": "ALL",
        "security-opt": "no-new-privileges",
        "user": f"{NOBODY}:{NOBODY}",
        "tmpfs": f"/tmp:rw,nosuid,nodev,size={TMP_MB}m,mode=1777",
        "volume": f"{INSIDE}:/inside:ro",
        "workdir": "/tmp",
        "hostname": "sandbox",
        "pids-limit": limits.processes + OWN_PROCESSES,
        "memory": memory,
        "memory-swap": memory,
        "cpus": os.environ.get("SANDBOX_DOCKER_CPUS", "1"),
        "log-driver": "none",
        "entrypoint": "python3",
    }
    environment = [f"--env={name}={value}" for name, value in ENVIRONMENT.items()]
    return [
        "--interactive",
        "--rm",
        "--read-only",
        *(f"--{key}={value}" for key, value in settings.items()),
        *environment,
    ]

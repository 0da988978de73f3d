"""The isolation levels, best first, and the choice of one.

docker      a long-lived container per worker (docker.py)
namespaces  bubblewrap: user, PID, network, IPC, UTS and mount namespaces per worker (namespaces.py)
seccomp     a system-call filter and Landlock, for machines that refuse namespaces (seccomp.py)
rlimits     resource limits only: stops accidents, not attacks; used only if chosen by name (rlimits.py)
"""

from collections.abc import Callable
from dataclasses import dataclass

from cocos.executor.limits import Limits
from cocos.executor.sandboxes import docker, namespaces, rlimits, seccomp
from cocos.executor.sandboxes.interpreter import Interpreter
from cocos.executor.sandboxes.sandbox import Sandbox
from cocos.executor.verdicts import ExecutorError


@dataclass(frozen=True)
class Level:
    """One way to confine a worker.

    Attributes:
        name: Value of `--sandbox`; recorded in every result.
        missing_reason: Returns None if the level works on this machine, otherwise why not and what to do.
        launch: Starts a worker for programs whose limits do not exceed the given ones, with the packages of
            the given interpreter.

    """

    name: str
    missing_reason: Callable[[], str | None]
    launch: Callable[[Limits, Interpreter], Sandbox]


LEVELS = (
    Level("docker", docker.missing_reason, docker.launch),
    Level("namespaces", namespaces.missing_reason, namespaces.launch),
    Level("seccomp", seccomp.missing_reason, seccomp.launch),
    Level("rlimits", lambda: None, rlimits.launch),
)
NAMES = tuple(level.name for level in LEVELS)


def choose(sandbox: str = "auto", min_isolation: str | None = None) -> Level:
    """Return the isolation level to run at.

    Args:
        sandbox: Name of a level, or "auto" for the best that works on this machine.
        min_isolation: Lowest level to accept. None: "seccomp" if `sandbox` is "auto", otherwise any level.

    Raises:
        ExecutorError: No acceptable level works on this machine; the message says what to install.
        ValueError: A name is unknown.

    """
    for name, known in ((sandbox, ("auto", *NAMES)), (min_isolation or "rlimits", NAMES)):
        if name not in known:
            raise ValueError(f"unknown isolation level {name!r}; choose one of {', '.join(known)}")
    lowest = min_isolation or ("seccomp" if sandbox == "auto" else "rlimits")
    acceptable = LEVELS[: NAMES.index(lowest) + 1]
    candidates = [level for level in acceptable if sandbox in ("auto", level.name)]
    if not candidates:
        raise ExecutorError(
            f"sandbox {sandbox!r} is below the minimum isolation {lowest!r}; choose a better sandbox, or a "
            "lower minimum"
        )
    reasons = []
    for level in candidates:
        if (reason := level.missing_reason()) is None:
            return level
        reasons.append(f"{level.name}: {reason}")
    if sandbox != "auto":
        raise ExecutorError(f"isolation level {sandbox} does not work here: {reason}")
    remedy = "" if min_isolation else "; --sandbox rlimits runs without isolation, at your own risk"
    raise ExecutorError(f"no isolation level of {lowest} or better works here. {'; '.join(reasons)}{remedy}")

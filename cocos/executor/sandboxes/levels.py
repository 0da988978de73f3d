"""The isolation levels, best first: which of them this machine offers, why it lacks the others, and how each
starts a worker.

docker      the worker in a long-lived container (docker.py)
namespaces  the worker under bubblewrap: own user, PID, network, IPC, UTS and mount namespaces (namespaces.py)
seccomp     no_new_privs, a system-call filter and Landlock, for machines that refuse namespaces (seccomp.py)
rlimits     resource limits only: stops accidents, no attack; never chosen unless asked for by name
"""

from collections.abc import Callable
from dataclasses import dataclass

from cocos.executor.limits import Limits
from cocos.executor.sandboxes import docker, namespaces, seccomp
from cocos.executor.verdicts import ExecutorError
from cocos.executor.worker import Sandbox


@dataclass(frozen=True)
class Level:
    """One way to confine a worker.

    Attributes:
        name: As in `--sandbox` and in every result.
        why_missing: None where this machine offers the level, otherwise the reason and the remedy.
        launch: Starts a worker whose programs will not exceed these limits.

    """

    name: str
    why_missing: Callable[[], str | None]
    launch: Callable[[Limits], Sandbox]


LEVELS = (
    Level("docker", docker.why_missing, docker.launch),
    Level("namespaces", namespaces.why_missing, namespaces.launch),
    Level("seccomp", seccomp.why_missing, seccomp.launch),
    Level("rlimits", lambda: None, seccomp.launch_rlimits),
)
NAMES = tuple(level.name for level in LEVELS)


def choose(sandbox: str = "auto", min_isolation: str | None = None) -> Level:
    """Pick the level to run at.

    Args:
        sandbox: A level's name, or "auto" for the best that this machine offers.
        min_isolation: Refuse to run below this level. None: below seccomp for "auto", below nothing for a
            level chosen by name.

    Raises:
        ExecutorError: No level satisfies the demand; the message says what to install.
        ValueError: An unknown name.

    """
    for name, known in ((sandbox, ("auto", *NAMES)), (min_isolation or "rlimits", NAMES)):
        if name not in known:
            raise ValueError(f"unknown isolation level {name!r}; choose one of {', '.join(known)}")
    lowest = min_isolation or ("seccomp" if sandbox == "auto" else "rlimits")
    allowed = LEVELS[: NAMES.index(lowest) + 1]
    wanted = [level for level in allowed if sandbox in ("auto", level.name)]
    reasons = []
    for level in wanted:
        if (reason := level.why_missing()) is None:
            return level
        reasons.append(f"{level.name}: {reason}")
    if not wanted:
        raise ExecutorError(
            f"sandbox {sandbox!r} is below the demanded minimum {lowest!r}; raise the one or lower the other"
        )
    remedy = "" if min_isolation else "; --sandbox rlimits runs with no isolation at all, at your own risk"
    raise ExecutorError(f"no isolation level of {lowest} or better works here. {'; '.join(reasons)}{remedy}")

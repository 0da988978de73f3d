"""Level `seccomp`: a system-call filter and Landlock, without namespaces.

Works inside an ordinary unprivileged container. A program may read the interpreter and the system's libraries
and write below its private scratch folder. It can neither start nor signal a process.
"""

import sys

from cocos.executor.inside import landlock
from cocos.executor.limits import Limits
from cocos.executor.sandboxes import rlimits, syscall_filter
from cocos.executor.sandboxes.interpreter import Interpreter
from cocos.executor.sandboxes.sandbox import Sandbox

# What the interpreter needs to start and to import the standard library.
READABLE = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero")


def missing_reason() -> str | None:
    """Return why this level does not work on this machine and what to do; None if it works."""
    if reason := syscall_filter.missing_reason():
        return reason
    if not landlock.version():
        return (
            "the kernel has no Landlock (needs Linux 5.13 or later with landlock among its security modules)"
        )
    return None


def launch(
    limits: Limits, interpreter: Interpreter, newest_landlock: int = landlock.NEWEST_VERSION
) -> Sandbox:
    """Start a worker whose programs are confined by the filter and by Landlock.

    Args:
        limits: Limits that no program of the worker exceeds.
        interpreter: The interpreter and its packages.
        newest_landlock: Use no newer version of Landlock, to test what holds on older kernels.

    """
    before_landlock_3 = min(landlock.version(), newest_landlock) < 3
    return rlimits.start(
        {
            "syscall_filter": syscall_filter.shared_filter(before_landlock_3),
            # The children load it; the zygote must still fork and kill.
            "child_filter": syscall_filter.filter_without_namespaces(),
            "landlock": [*READABLE, sys.base_prefix],
            "landlock_version": newest_landlock,
        },
        interpreter,
    )

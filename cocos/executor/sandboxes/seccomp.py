"""Level `seccomp`: a system-call filter and Landlock, without namespaces.

Works inside an ordinary unprivileged container. A program may read the interpreter and the system's libraries
and write below its private scratch folder. It can neither start nor signal a process.
"""

import sys

from cocos.executor.inside.confinement import landlock_version
from cocos.executor.limits import Limits
from cocos.executor.sandboxes import forbidden_syscalls, rlimits
from cocos.executor.sandboxes.sandbox import Sandbox

# What the interpreter needs to start and to import the standard library.
READABLE = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero")


def missing_reason() -> str | None:
    """Return why this level does not work on this machine and what to do; None if it works."""
    if reason := forbidden_syscalls.missing_reason():
        return reason
    if not landlock_version():
        return (
            "the kernel has no Landlock (needs Linux 5.13 or later with landlock among its security modules)"
        )
    return None


def launch(limits: Limits) -> Sandbox:
    """Start a worker whose programs are confined by the filter and by Landlock."""
    return rlimits.start(
        {
            "seccomp": forbidden_syscalls.compile_filter(strict=True),
            "strict": True,  # the children load the filter; the zygote must still fork and kill
            "landlock": [*READABLE, sys.base_prefix],
        }
    )

"""Landlock, the kernel's limits on files that a process without privileges can put on itself.

The trusted process imports this module too, to ask for the kernel's version.
"""

import contextlib
import ctypes
import fcntl
import os
import struct

# landlock(7). The C library has no functions for these calls; the numbers are the same on every architecture.
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_EXECUTE = 1 << 0
LANDLOCK_WRITE_FILE = 1 << 1
LANDLOCK_READ_FILE = 1 << 2
LANDLOCK_READ_DIR = 1 << 3
LANDLOCK_NUM_RIGHTS_V1 = 13  # rights on files and folders; versions 2, 3 and 5 add one each
LANDLOCK_NET_TCP = 0b11  # bind, connect; since version 4
LANDLOCK_SCOPED = 0b11  # abstract sockets, signals; since version 6
NEWEST_VERSION = 6  # later ones add nothing that is used here
OUT_OF_THE_WAY_FD = 32  # above the descriptors that the zygote assigns

libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the kernel's Landlock version; 0 if it has no Landlock."""
    return max(0, libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION))


def create_ruleset(readable: list[str], writable: str, newest_version: int) -> int:
    """Create a Landlock ruleset and return its descriptor.

    The paths in `readable` may be read and executed, and everything is allowed below `writable`. Where the
    kernel supports it, TCP is refused, and so are signals and abstract sockets to processes outside.
    """
    known = min(version(), newest_version)
    # The kernel rejects a right that it does not know, and a right that is not listed stays allowed. So list
    # every right of this version. Versions 2 (refer), 3 (truncate) and 5 (ioctl on devices) add one each.
    num_rights = LANDLOCK_NUM_RIGHTS_V1 + min(known - 1, 2) + (known >= 5)
    all_rights = (1 << num_rights) - 1
    # The kernel also rejects a structure that is longer than its own, unless the rest is zero.
    num_bytes = 8 if known < 4 else 16 if known < 6 else 24
    attributes = struct.pack("=QQQ", all_rights, LANDLOCK_NET_TCP, LANDLOCK_SCOPED)[:num_bytes]
    ruleset = check(
        libc.syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0), "create a Landlock ruleset"
    )
    for path, rights in [
        *((path, LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_READ_DIR) for path in readable),
        (writable, all_rights),
        (os.devnull, LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE),
    ]:
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            if not os.path.isdir(path):  # the kernel rejects rights on folders for a file
                rights &= LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE
            rule = struct.pack("=Qi", rights, fd)
            check(
                libc.syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0),
                f"allow {path} in Landlock",
            )
            os.close(fd)
    return out_of_the_way(ruleset)


def out_of_the_way(fd: int) -> int:
    """Move a descriptor of the zygote above those that it assigns."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY_FD)
    os.close(fd)
    return moved


def check(result: int, action: str) -> int:
    """Return the result of a C function; raise OSError if it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot {action}: {os.strerror(code)}")
    return result

"""Compilation of the system-call filter with libseccomp.

Runs in the trusted process, because the sandboxes have the standard library only.
"""

import functools
import os
import struct
import sys

from cocos.executor.sandboxes.forbidden_syscalls import (
    ALLOWED_IOCTLS,
    BEFORE_LANDLOCK_3,
    ENOSYS,
    EPERM,
    FIRST_UNKNOWN_CALL,
    RULES,
    RULES_OF_PROGRAMS,
    RULES_WITHOUT_NAMESPACES,
    Rule,
)

# Instructions of the kernel's filter language, seccomp(2). The word that they load is one of seccomp_data.
LOAD, JUMP_IF_EQUAL, JUMP_IF_GREATER_OR_EQUAL, RETURN = 0x20, 0x15, 0x35, 0x06
CALL_NUMBER_OFFSET, SECOND_ARGUMENT_OFFSET = 0, 24  # the lower half, on a little-endian machine
RETURN_ERROR = 0x00050000


@functools.cache
def missing_reason() -> str | None:
    """Return why no filter can be compiled on this machine and what to do; None if it can."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if sys.byteorder != "little":
        return "needs a little-endian CPU"
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, OSError, RuntimeError):  # the last two: the binding does not find the library
        return "no libseccomp binding (pip install pyseccomp; Debian, Ubuntu: apt-get install libseccomp2)"
    return None


@functools.cache
def shared_filter(before_landlock_3: bool = False) -> str:
    """Return the filter for zygote and children, in the kernel's format, as hexadecimal digits.

    Args:
        before_landlock_3: Refuse what version 3 of Landlock would, for an older kernel.

    """
    rules = [*RULES, *(BEFORE_LANDLOCK_3 if before_landlock_3 else ())]
    return (_allow_only_known() + _compile(rules)).hex()


@functools.cache
def filter_without_namespaces() -> str:
    """Return the filter that children load in addition where no PID namespace separates processes."""
    return _compile(RULES_WITHOUT_NAMESPACES).hex()


@functools.cache
def filter_of_programs() -> str:
    """Return a filter that refuses new programs and nothing else; "" if it cannot be compiled here."""
    return "" if missing_reason() else _compile(RULES_OF_PROGRAMS).hex()


def _compile(rules: list[Rule]) -> bytes:
    """Compile a filter that allows everything but these rules."""
    import pyseccomp

    compiled = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for error, call, arguments in rules:
        conditions = [
            pyseccomp.Arg(index, pyseccomp.NE, value)
            if mask is None
            else pyseccomp.Arg(index, pyseccomp.MASKED_EQ, mask, value)
            for index, mask, value in arguments
        ]
        try:
            compiled.add_rule(pyseccomp.ERRNO(error), call, *conditions)
        except (OSError, RuntimeError):
            continue  # this architecture does not have the call, or the library is older than the call
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        compiled.export_bpf(file)
        file.seek(0)
        return file.read()


def _allow_only_known() -> bytes:
    """Return instructions to put before a filter: they refuse newer system calls and unusual ioctls.

    libseccomp cannot express ranges and lists of allowed values. Jumps are relative, so a filter does not
    change if something is put before it.
    """
    import pyseccomp

    ioctl = pyseccomp.resolve_syscall(pyseccomp.system_arch(), "ioctl")
    num_allowed = len(ALLOWED_IOCTLS)
    instructions = [
        (LOAD, 0, 0, CALL_NUMBER_OFFSET),
        (JUMP_IF_GREATER_OR_EQUAL, 0, 1, FIRST_UNKNOWN_CALL),
        (RETURN, 0, 0, RETURN_ERROR | ENOSYS),
        (JUMP_IF_EQUAL, 0, num_allowed + 2, ioctl),
        (LOAD, 0, 0, SECOND_ARGUMENT_OFFSET),
        *((JUMP_IF_EQUAL, num_allowed - n, 0, request) for n, request in enumerate(ALLOWED_IOCTLS)),
        (RETURN, 0, 0, RETURN_ERROR | EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)

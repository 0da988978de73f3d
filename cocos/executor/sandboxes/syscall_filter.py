"""The system-call filter: what it refuses, and how libseccomp compiles it to the kernel's format."""

import functools
import os
import sys

EPERM, ENOSYS = 1, 38
CLONE_THREAD = 0x10000
PR_SET_PDEATHSIG = 1
# Refused at every level: what leaves state behind, reaches other processes or widens the kernel's surface.
REFUSED = [
    "add_key",
    "bpf",
    "delete_module",
    "finit_module",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "kcmp",
    "kexec_load",
    "keyctl",
    "mount",
    "move_mount",
    "mq_open",
    "msgget",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "personality",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "reboot",
    "request_key",
    "semget",
    "setns",
    "shmget",
    "socket",
    "swapoff",
    "swapon",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
]
# Refused as well where no PID namespace keeps processes apart: there a program is one process, and signals
# nobody.
REFUSED_WITHOUT_NAMESPACES = [
    "execve",
    "execveat",
    "fork",
    "kill",
    "pidfd_open",
    "pidfd_send_signal",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "sched_setaffinity",
    "setpriority",
    "setpgid",
    "setsid",
    "tgkill",
    "tkill",
    "vfork",
]


@functools.cache
def why_missing() -> str | None:
    """Why no filter can be compiled here; None where one can."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, OSError, RuntimeError):
        return "no libseccomp binding (pip install pyseccomp; Debian, Ubuntu: apt-get install libseccomp2)"
    return None


@functools.cache
def compile_filter(strict: bool) -> str:
    """The filter in hexadecimal, or "" where it cannot be compiled.

    Args:
        strict: For a level without namespaces: no new processes and no signals either.

    """
    if why_missing():
        return ""
    import pyseccomp

    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in REFUSED + (REFUSED_WITHOUT_NAMESPACES if strict else []):
        try:
            rules.add_rule(pyseccomp.ERRNO(EPERM), name)
        except (OSError, RuntimeError):
            continue  # a call that this architecture or this libseccomp does not know
    rules.add_rule(
        pyseccomp.ERRNO(ENOSYS), "clone3"
    )  # its flags cannot be seen; the C library falls back to clone
    if strict:
        not_a_thread = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, 0)
        rules.add_rule(pyseccomp.ERRNO(EPERM), "clone", not_a_thread)
        to_outlive_the_zygote = pyseccomp.Arg(0, pyseccomp.EQ, PR_SET_PDEATHSIG)
        rules.add_rule(pyseccomp.ERRNO(EPERM), "prctl", to_outlive_the_zygote)
        rules.add_rule(
            pyseccomp.ERRNO(EPERM), "prlimit64", pyseccomp.Arg(0, pyseccomp.NE, 0)
        )  # another process's
    fd = os.memfd_create("filter")
    with os.fdopen(fd, "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read().hex()

"""The system-call filter: the calls that it refuses, and their compilation with libseccomp.

All other calls are allowed: namespaces or Landlock limit what a program can reach with them.
"""

import functools
import os
import sys

EPERM, ENOSYS = 1, 38
CLONE_THREAD = 0x10000
PR_SET_PDEATHSIG = 1
# Refused at every level: calls that leave state behind for the next program, reach other processes, or expose
# parts of the kernel that a program does not need.
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
# Also refused where no PID namespace separates processes: there a program is one process and may not send
# signals, or change the priority or session of anything.
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
def missing_reason() -> str | None:
    """Return why no filter can be compiled on this machine and what to do; None if it can."""
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, OSError, RuntimeError):  # the last two: the binding does not find the library
        return "no libseccomp binding (pip install pyseccomp; Debian, Ubuntu: apt-get install libseccomp2)"
    return None


@functools.cache
def compile_filter(strict: bool) -> str:
    """Return the filter in the kernel's format, as hexadecimal digits; "" if it cannot be compiled here.

    It is compiled in the trusted process, because the sandboxes have the standard library only.

    Args:
        strict: Also refuse new processes and signals, for a level without namespaces.

    """
    if missing_reason():
        return ""
    import pyseccomp

    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in REFUSED + (REFUSED_WITHOUT_NAMESPACES if strict else []):
        try:
            rules.add_rule(pyseccomp.ERRNO(EPERM), name)
        except (OSError, RuntimeError):
            continue  # this architecture or this libseccomp does not know the call
    # A filter cannot see the flags of clone3, because they are in memory. ENOSYS makes the C library fall
    # back to clone, whose flags are an argument.
    rules.add_rule(pyseccomp.ERRNO(ENOSYS), "clone3")
    if strict:
        # A clone without CLONE_THREAD starts a process. Threads stay allowed.
        not_a_thread = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, 0)
        rules.add_rule(pyseccomp.ERRNO(EPERM), "clone", not_a_thread)
        # A program that resets its parent-death signal could outlive the zygote.
        sets_death_signal = pyseccomp.Arg(0, pyseccomp.EQ, PR_SET_PDEATHSIG)
        rules.add_rule(pyseccomp.ERRNO(EPERM), "prctl", sets_death_signal)
        another_process = pyseccomp.Arg(0, pyseccomp.NE, 0)  # 0 is the calling process
        rules.add_rule(pyseccomp.ERRNO(EPERM), "prlimit64", another_process)
    fd = os.memfd_create("filter")
    with os.fdopen(fd, "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read().hex()

"""The system calls that the filter refuses, as tables of names and arguments.

All other calls are allowed: namespaces or Landlock limit what a program can reach with them. `syscall_filter`
compiles the tables. The kernel ignores the upper half of a 32-bit argument, so every rule has a mask.
"""

from typing import NamedTuple

EPERM, ENOSYS, EOPNOTSUPP = 1, 38, 95
PRETEND = 0  # do nothing and report success


class Rule(NamedTuple):
    """Refusal of a call if each of these arguments, masked, has the given value.

    Attributes:
        error: Number of the error; PRETEND for none.
        call: Name of the system call.
        arguments: (index of the argument, mask, value) for each condition; () refuses every call. A mask of
            None means that the argument differs from the value.

    """

    error: int
    call: str
    arguments: tuple[tuple[int, int | None, int], ...] = ()


INT = 0xFFFFFFFF
# Refused at every level with a filter: calls that leave state behind for the next program, reach processes,
# files or devices outside, or expose parts of the kernel that a program does not need.
REFUSED = """
    execve execveat
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp
    migrate_pages move_pages get_robust_list
    setpriority ioprio_set sched_setaffinity sched_setattr sched_setparam sched_setscheduler
    socket bind connect listen
    chown fchown fchownat lchown
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
    fanotify_init fanotify_mark inotify_init inotify_init1 inotify_add_watch
    msgget msgsnd msgrcv msgctl semget semop semtimedop semctl shmget shmat shmctl mq_open mq_unlink
    mount umount2 move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr pivot_root chroot
    unshare setns open_by_handle_at quotactl quotactl_fd swapon swapoff
    add_key keyctl request_key bpf perf_event_open userfaultfd lookup_dcookie memfd_secret personality
    io_uring_setup io_uring_enter io_uring_register io_setup io_submit
    delete_module finit_module init_module kexec_load kexec_file_load reboot syslog acct vhangup modify_ldt
"""
# Attributes of files outside could hold data. `shutil.copy2` goes on without them.
UNSUPPORTED = "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr"
# Modes, times and locks of files outlive a program or reach other programs. Honest programs set them on their
# own files and do not need the effect, so these calls only pretend to work.
PRETENDED = "chmod fchmod fchmodat utime utimes utimensat futimesat flock sync syncfs"
F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW = 6, 7, 37, 38
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15  # name a process that the kernel then signals
F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT = 1024, 1026, 1036, 1038
CLONE_THREAD = 0x10000
CLONE_NEW = (  # user, mount, network, PID, IPC, UTS and cgroup namespaces
    *(0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000),
)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SCHED_CORE = 1, 4, 62
OWNER_BITS = (0o400, 0o200, 0o100)
# The types of sockets whose sends can name a receiver all have this bit: datagram and raw, but not stream.
SOCKET_WITHOUT_CONNECTION = 2
RULES = [
    *(Rule(EPERM, name) for name in REFUSED.split()),
    *(Rule(EOPNOTSUPP, name) for name in UNSUPPORTED.split()),
    *(Rule(PRETEND, name) for name in PRETENDED.split()),
    # A filter cannot see the flags of clone3, because they are in memory. ENOSYS makes the C library fall
    # back to clone, whose flags are an argument.
    Rule(ENOSYS, "clone3"),
    *(Rule(EPERM, "clone", ((0, flag, flag),)) for flag in CLONE_NEW),
    *(
        Rule(EPERM, "fcntl", ((1, INT, command),))
        for command in (
            *(F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT),
        )
    ),
    *(
        Rule(PRETEND, "fcntl", ((1, INT, command),))
        for command in (F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW)
    ),
    # A dumpable process could be traced, and could write its files under /proc.
    Rule(EPERM, "prctl", ((0, INT, PR_SET_DUMPABLE), (1, None, 0))),
    Rule(EPERM, "prctl", ((0, INT, PR_SCHED_CORE),)),
    Rule(EPERM, "prlimit64", ((0, None, 0),)),  # 0 is the calling process
    # Datagrams could be sent to sockets of other programs, and other families have them too.
    Rule(EPERM, "socketpair", ((1, SOCKET_WITHOUT_CONNECTION, SOCKET_WITHOUT_CONNECTION),)),
    # The zygote may have the program's user id. It must always be able to empty the folders of a program.
    *(Rule(EPERM, "mkdir", ((1, bit, 0),)) for bit in OWNER_BITS),
    *(Rule(EPERM, "mkdirat", ((2, bit, 0),)) for bit in OWNER_BITS),
    *(Rule(PRETEND, "umask", ((0, bit, bit),)) for bit in OWNER_BITS),
]
# ioctl reaches every driver and file system: inode flags, owners of signals, clones of blocks. Only these
# requests are allowed: TCGETS (os.isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
ALLOWED_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# Calls with this number and higher ones are newer than these tables. The numbers are the same on all
# architectures. The C library copes with kernels that do not have them.
FIRST_UNKNOWN_CALL = 451

# Also refused where no PID namespace separates processes: there a program is one process and may not send
# signals. The zygote must, so these rules are a second filter for the children.
REFUSED_WITHOUT_NAMESPACES = """
    fork vfork kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal setsid setpgid
"""
RULES_WITHOUT_NAMESPACES = [
    *(Rule(EPERM, name) for name in REFUSED_WITHOUT_NAMESPACES.split()),
    # A clone without CLONE_THREAD starts a process. Threads stay allowed.
    Rule(EPERM, "clone", ((0, CLONE_THREAD, 0),)),
    # A program that resets its parent-death signal could outlive the zygote.
    Rule(EPERM, "prctl", ((0, INT, PR_SET_PDEATHSIG),)),
]
O_ACCMODE, O_TRUNC = 3, 0o1000
# Before version 3, Landlock does not stop a program from emptying any file that its user may write.
BEFORE_LANDLOCK_3 = [
    Rule(EPERM, "truncate"),
    Rule(ENOSYS, "openat2"),  # its flags are in memory
    # Files opened for neither reading nor writing: Landlock checks nothing.
    *(Rule(EPERM, call, ((index, O_ACCMODE, 3),)) for call, index in (("open", 1), ("openat", 2))),
    *(
        Rule(EPERM, call, ((index, O_ACCMODE | O_TRUNC, O_TRUNC),))
        for call, index in (("open", 1), ("openat", 2))
    ),
]
RULES_OF_PROGRAMS = [Rule(EPERM, "execve"), Rule(EPERM, "execveat")]

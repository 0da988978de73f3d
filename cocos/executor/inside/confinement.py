"""Confinement of the zygote and of its children by the kernel.

Creating a `Confinement` confines the zygote. Each child confines itself further with `enter` before it runs
untrusted code. If a step fails, the child ends, and the executor counts the worker as dead.

The order of the steps matters. A step that needs a privilege comes before the step that gives it up. In a
child the system-call filter comes last, because it refuses calls that the other steps make.
"""

import contextlib
import ctypes
import fcntl
import os
import resource
import struct
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL

# prctl(2)
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
# capset(2)
CAPABILITY_VERSION_3 = 0x20080522
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

OUT_OF_THE_WAY_FD = 32  # above the descriptors that the zygote assigns
SPARE_MB = 64  # between the soft and the hard memory limit, so that a child can still report a MemoryError

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    """System-call filter in the kernel's format, `struct sock_fprog`."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


@dataclass
class Confinement:
    """Confinement of one sandbox, with the settings that the trusted process chose.

    Attributes:
        scratch: Folders that programs may write to. They are emptied after each program. They must be empty
            at the start, so that no other files are deleted.
        uids: User ids of the candidate's and the judge's process; () if both keep the zygote's.
        processes_beside: Number of other processes and threads to allow for under the same user id, because
            the kernel counts all of them against the program's limit; None sets no limit on processes.
        seccomp: System-call filter in the kernel's format, in hexadecimal; "" for none.
        strict: Load the filter in the children only, because it refuses calls that the zygote needs.
        landlock: Folders and files that may be read; None if Landlock is not used.

    """

    scratch: list[str]
    uids: tuple[int, ...] = ()
    processes_beside: int | None = None
    seccomp: str = ""
    strict: bool = False
    landlock: list[str] | None = None
    _ruleset: int = field(default=-1, init=False)
    _filter: "_Filter | None" = field(default=None, init=False)
    _rlimits: list[tuple[int, tuple[int, int]]] = field(default_factory=list, init=False)
    _prepared: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Confine the zygote itself. Its children inherit most of these settings."""
        if any(os.listdir(folder) for folder in self.scratch):
            raise ValueError(
                f"scratch folders {self.scratch} contain files that would be deleted; give empty folders"
            )
        # If the machine runs out of memory, the kernel should kill this process and its children first.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500")
        if self.seccomp:
            instructions = bytes.fromhex(self.seccomp)
            self._filter = _Filter(len(instructions) // 8, instructions)
        if self.landlock is not None:
            self._ruleset = landlock_ruleset(self.landlock, self.scratch[0])
        if self.uids:
            os.setgroups([])  # do not drop capabilities: each child needs them to change its user id
        elif os.geteuid() == 0:
            drop_capabilities()
        # Not dumpable: no process of the same user can trace us or read our memory under /proc.
        _check(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "clear the dumpable flag")
        # Subreaper: a program's orphans become the zygote's children, so that it can find and kill them.
        _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become a child subreaper")
        # With no_new_privs a setuid program gives no privileges. Landlock and the filter require it too.
        _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
        if self._filter and not self.strict:
            self._load_filter()
        for name in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
            resource.setrlimit(name, (0, 0))
        os.chdir(self.scratch[0])
        os.umask(0o077)

    def prepare(self, limits: list[int]) -> None:
        """Compute the resource limits of the next child.

        Called in the zygote, which keeps the result for later jobs with the same limits.

        Args:
            limits: The values of `wire_format.ChildLimits`.

        """
        if limits == self._prepared:
            return
        cpu_s, memory_mb, output_kb, file_mb, processes, open_files = limits
        memory = memory_mb << 20
        size = max(file_mb << 20, output_kb << 10)  # the evidence is a file too
        wanted = {
            resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
            resource.RLIMIT_AS: (memory, memory + (SPARE_MB << 20)),
            resource.RLIMIT_FSIZE: (size, size),
            resource.RLIMIT_NOFILE: (open_files, open_files),
        }
        if self.processes_beside is not None:
            num_processes = self.processes_beside + processes + 1  # the kernel counts this process too
            wanted[resource.RLIMIT_NPROC] = (num_processes, num_processes)
        self._rlimits = [(name, _below_ceiling(name, *values)) for name, values in wanted.items()]
        self._prepared = limits

    def enter(self, is_judge: bool) -> None:
        """Confine this child irrevocably."""
        for name, values in self._rlimits:
            resource.setrlimit(name, values)
        if self.uids:
            uid = self.uids[is_judge]
            os.setresgid(uid, uid, uid)  # the group first: the new user may not change it
            os.setresuid(uid, uid, uid)  # gives up every capability
        # A PID namespace ends with its PID 1, the zygote. Without one, ask the kernel to kill this process
        # when its parent ends. A change of user clears this setting, so set it afterwards.
        if os.getppid() != 1:
            _check(_libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "set the parent-death signal")
        if self._ruleset >= 0:
            _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, self._ruleset, 0), "apply the Landlock ruleset")
        if self._filter and self.strict:
            self._load_filter()

    def _load_filter(self) -> None:
        assert self._filter
        _check(
            _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(self._filter), 0, 0),
            "load the system-call filter",
        )


def _below_ceiling(name: int, soft: int, hard: int) -> tuple[int, int]:
    ceiling = resource.getrlimit(name)[1]  # a hard limit can only be lowered
    return (soft, hard) if ceiling == resource.RLIM_INFINITY else (min(soft, ceiling), min(hard, ceiling))


def drop_capabilities() -> None:
    """Give up every capability. With no_new_privs set, no program can regain one."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "drop capabilities")


def landlock_version() -> int:
    """Return the kernel's Landlock version; 0 if it has no Landlock."""
    return max(0, _libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION))


def landlock_ruleset(readable: list[str], writable: str) -> int:
    """Create a Landlock ruleset and return its descriptor.

    The paths in `readable` may be read and executed, and everything is allowed below `writable`. Where the
    kernel supports it, TCP is refused, and so are signals and abstract sockets to processes outside.
    """
    version = landlock_version()
    # The kernel rejects a right that it does not know, and a right that is not listed stays allowed. So list
    # every right of this version. Versions 2 (refer), 3 (truncate) and 5 (ioctl on devices) add one each.
    num_rights = LANDLOCK_NUM_RIGHTS_V1 + min(version - 1, 2) + (version >= 5)
    all_rights = (1 << num_rights) - 1
    # The kernel also rejects a structure that is longer than its own, unless the rest is zero.
    num_bytes = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", all_rights, LANDLOCK_NET_TCP, LANDLOCK_SCOPED)[:num_bytes]
    ruleset = _check(
        _libc.syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0), "create a Landlock ruleset"
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
            _check(
                _libc.syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0),
                f"allow {path} in Landlock",
            )
            os.close(fd)
    return fcntl.fcntl(ruleset, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY_FD)


def _check(result: int, action: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot {action}: {os.strerror(code)}")
    return result

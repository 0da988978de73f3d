"""Confinement of the zygote and of its children by the kernel.

Creating a `Confinement` confines the zygote. Each child confines itself further with `enter` before it runs
untrusted code. If a step fails, the child ends, and the executor counts the worker as dead.

The order of the steps matters. A step that needs a privilege comes before the step that gives it up. In a
child the system-call filter comes last, because it refuses calls that the other steps make.
"""

import ctypes
import os
import resource
import struct
from _signal import SIGKILL
from dataclasses import dataclass, field

from .landlock import LANDLOCK_RESTRICT_SELF, NEWEST_VERSION, check, create_ruleset, libc, out_of_the_way

# prctl(2)
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
# capset(2)
CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_SETGID, CAP_SETUID = 1, 3, 5, 6, 7
# If children change to another user, the zygote must do so (SETUID, SETGID), kill them (KILL), and remove
# their files whatever owner and mode (DAC_OVERRIDE, FOWNER).
CAPABILITIES_FOR_OTHER_USER = (CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_SETGID, CAP_SETUID)
# mount(2)
MS_NOSUID, MS_NODEV = 2, 4

OOM_SCORE = 500  # of 1000
SPARE_MB = 64  # between the soft and the hard memory limit, so that a child can still report a MemoryError


class _Filter(ctypes.Structure):
    """System-call filter in the kernel's format, `struct sock_fprog`."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    @classmethod
    def from_hex(cls, text: str) -> "_Filter":
        instructions = bytes.fromhex(text)
        return cls(len(instructions) // 8, instructions)


@dataclass
class Confinement:
    """Confinement of one sandbox, with the settings that the trusted process chose.

    Attributes:
        scratch: Folder that programs may write to. It is emptied after each program. It must be empty at the
            start, so that no other files are deleted.
        scratch_options: Options of a file system in memory to mount as the scratch folder, which needs the
            capability SYS_ADMIN; "" if the folder is used as it is.
        uid: User id of the candidate's and the driver's process; None if they keep the zygote's.
        processes_beside: Number of other processes and threads to allow for under the same user id, because
            the kernel counts all of them against the program's limit; None sets no limit on processes.
        syscall_filter: System-call filter for zygote and children, in the kernel's format, in hexadecimal;
            "" for none.
        child_filter: A second filter for the children only. It refuses calls that the zygote needs.
        landlock: Folders and files that may be read; None if Landlock is not used.
        landlock_version: Newest version of Landlock to use. Tests simulate older kernels with it.
        packages_bytes: Address space of the packages that the zygote has imported. It does not count against
            the memory limit.

    """

    scratch: str
    scratch_options: str = ""
    uid: int | None = None
    processes_beside: int | None = None
    syscall_filter: str = ""
    child_filter: str = ""
    landlock: list[str] | None = None
    landlock_version: int = NEWEST_VERSION
    packages_bytes: int = 0
    _ruleset: int = field(default=-1, init=False)
    _child_filter: "_Filter | None" = field(default=None, init=False)
    _oom_score: "tuple[int, bytes] | None" = field(default=None, init=False)
    _rlimits: list[tuple[int, tuple[int, int]]] = field(default_factory=list, init=False)
    _processes: int | None = field(default=None, init=False)
    _prepared: list[int] = field(default_factory=list, init=False)
    _is_dumpable_after_change: bool = field(default=True, init=False)
    _zygote: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Confine the zygote itself. Its children inherit most of these settings."""
        self._zygote = os.getpid()
        if self.scratch_options:
            mount_scratch(self.scratch, self.scratch_options)
        if os.listdir(self.scratch):
            raise ValueError(f"{self.scratch} contains files that would be deleted; give an empty folder")
        os.chdir(self.scratch)
        self._oom_score = open_oom_score()
        if self.landlock is not None:
            self._ruleset = create_ruleset(self.landlock, self.scratch, self.landlock_version)
        if self.uid is not None:
            os.setgroups([])
            keep_capabilities(CAPABILITIES_FOR_OTHER_USER)
            with open("/proc/sys/fs/suid_dumpable") as file:  # what a change of user resets the flag below to
                self._is_dumpable_after_change = file.read() != "0\n"
        else:
            keep_capabilities(())
        # Not dumpable: no process of the same user can trace us, read our memory under /proc, or change
        # anything there.
        check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "clear the dumpable flag")
        # Subreaper: a program's orphans become the zygote's children, so that it can find and kill them.
        check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become a child subreaper")
        # With no_new_privs a setuid program gives no privileges. Landlock and the filter require it too.
        check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
        for name in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
            resource.setrlimit(name, (0, 0))
        os.umask(0o022)
        if self.syscall_filter:
            load_filter(_Filter.from_hex(self.syscall_filter))
        if self.child_filter:
            self._child_filter = _Filter.from_hex(self.child_filter)

    def prepare(self, limits: list[int]) -> None:
        """Compute the resource limits of the next child.

        Called in the zygote, which keeps the result for later jobs with the same limits.

        Args:
            limits: The values of `wire_format.ChildLimits`.

        """
        if limits == self._prepared:
            return
        cpu_s, memory_mb, _, file_mb, processes, open_files = limits
        memory = (memory_mb << 20) + self.packages_bytes
        size = file_mb << 20
        wanted = {
            resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
            resource.RLIMIT_AS: (memory, memory + (SPARE_MB << 20)),
            resource.RLIMIT_FSIZE: (size, size),
            resource.RLIMIT_NOFILE: (open_files, open_files),
        }
        if self.processes_beside is not None:
            self._processes = self.processes_beside + processes + 1  # the kernel counts this process too
        self._rlimits = [(name, _below_ceiling(name, *values)) for name, values in wanted.items()]
        self._prepared = limits

    def before_fork(self) -> None:
        """Let the next child be killed before the zygote if memory runs out.

        The child inherits the zygote's value. It cannot write its own, because it is not dumpable.
        """
        if self._oom_score:
            os.write(self._oom_score[0], b"1000")

    def after_fork(self) -> None:
        """Restore the zygote's own value."""
        if self._oom_score:
            os.write(*self._oom_score)

    def enter(self, is_driver: bool) -> None:
        """Confine this child irrevocably. The driver serves many jobs, so its processor time has no limit.

        The child may still fork, until `seal`.
        """
        for name, values in self._rlimits:
            if not (is_driver and name == resource.RLIMIT_CPU):
                resource.setrlimit(name, values)
        if self.uid is not None:
            os.setresgid(self.uid, self.uid, self.uid)  # the group first: the new user may not change it
            os.setresuid(self.uid, self.uid, self.uid)  # gives up every capability
            if self._is_dumpable_after_change:
                check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "clear the dumpable flag")
        self._end_with(self._zygote)
        if self._ruleset >= 0:
            check(libc.syscall(LANDLOCK_RESTRICT_SELF, self._ruleset, 0), "apply the Landlock ruleset")

    def seal(self, parent: int = 0) -> None:
        """Complete the confinement of this child, or of one that it has forked as `parent`."""
        if parent:
            os.setsid()
            self._end_with(parent)
        if self._processes is not None:
            limit = _below_ceiling(resource.RLIMIT_NPROC, *[self._processes + bool(parent)] * 2)
            resource.setrlimit(resource.RLIMIT_NPROC, limit)
        if self._child_filter:
            load_filter(self._child_filter)

    def _end_with(self, parent: int) -> None:
        """Have the kernel kill this process when its parent ends.

        A PID namespace ends with its PID 1, the zygote. A change of user clears this setting, so set it
        afterwards. If the parent has ended before that, nobody sends the signal.
        """
        if self._zygote != 1:
            check(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "set the parent-death signal")
            if os.getppid() != parent:
                os.kill(os.getpid(), SIGKILL)


def load_filter(instructions: "_Filter") -> None:
    """Have the kernel check all further system calls of this process and its children."""
    check(
        libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(instructions), 0, 0),
        "load the system-call filter",
    )


def use_spare_memory() -> None:
    """Raise the memory limit to the hard limit, so that a MemoryError can be reported."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def mount_scratch(folder: str, options: str) -> None:
    """Mount an empty file system in memory. Unlike bubblewrap's, it can limit the number of files."""
    mounted = libc.mount(b"tmpfs", folder.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options.encode())
    check(mounted, f"mount a tmpfs at {folder}")


def open_oom_score() -> tuple[int, bytes] | None:
    """Raise this process's `oom_score_adj`, so that the kernel ends it before most others if memory runs out.

    Returns:
        A descriptor of the file and its value; None if it cannot be written.

    """
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        value = str(max(OOM_SCORE, int(os.read(fd, 16)))).encode()  # lowering it would need a privilege
        os.write(fd, value)
    except OSError:
        return None
    return out_of_the_way(fd), value


def keep_capabilities(numbers: tuple[int, ...]) -> None:
    """Give up all other capabilities. With no_new_privs set, no program can regain one."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    kept = sum(1 << number for number in numbers)
    check(libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)), "drop capabilities")


def _below_ceiling(name: int, soft: int, hard: int) -> tuple[int, int]:
    ceiling = resource.getrlimit(name)[1]  # a hard limit can only be lowered
    return (soft, hard) if ceiling == resource.RLIM_INFINITY else (min(soft, ceiling), min(hard, ceiling))

"""How a child of the zygote shuts itself in before it runs a line of foreign code.

The order matters: what needs a privilege comes before the privileges go. A step that fails ends the child,
and with it the job.
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

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = (
    1,
    4,
    22,
    36,
    38,
)
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = (
    444,
    445,
    446,
)  # the same on every architecture
LANDLOCK_READ, LANDLOCK_READ_FILE = (
    0b1101,
    0b0101,
)  # execute, read file, read directory; the same of a single file
OUT_OF_THE_WAY_FD = 32  # beyond the descriptors that the zygote arranges
SPARE_MB = 64  # kept back below the hard limit, so that running out of memory can still be reported

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


@dataclass
class Confinement:
    """What the trusted side asks of this sandbox.

    Attributes:
        scratch: The folders that programs may write to. They are emptied after each program, so they must be
            empty at the start: proof that they are this sandbox's own.
        uids: User ids of candidate and judge, or none where they keep the zygote's.
        processes_beside: Processes that others may have under the same user id; None: do not count any.
        seccomp: A filter in the kernel's format, in hexadecimal, or "".
        strict: The filter is for children only: it takes calls away that the zygote needs.
        landlock: Folders and files that may be read; None: no Landlock.

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
        """Confine the zygote itself, in whatever its children can inherit from it."""
        if any(os.listdir(folder) for folder in self.scratch):
            raise ValueError(
                f"{self.scratch} is not empty: it belongs to somebody else, and would be emptied"
            )
        with contextlib.suppress(
            OSError
        ):  # where memory runs out for everybody, this process and its children go first
            Path("/proc/self/oom_score_adj").write_text("500")
        if self.seccomp:
            instructions = bytes.fromhex(self.seccomp)
            self._filter = _Filter(len(instructions) // 8, instructions)
        if self.landlock is not None:
            self._ruleset = landlock_ruleset(self.landlock, self.scratch[0])
        if self.uids:
            os.setgroups([])
        elif os.geteuid() == 0:
            drop_capabilities()
        _check(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "become unreadable to other processes")
        _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become subreaper")
        _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
        if self._filter and not self.strict:
            self._load_filter()
        for name in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
            resource.setrlimit(name, (0, 0))
        os.chdir(self.scratch[0])
        os.umask(0o077)

    def prepare(self, limits: list[int]) -> None:
        """Work out, before the fork, what the child will have to set."""
        if limits == self._prepared:
            return
        cpu_s, memory_mb, output_kb, file_mb, processes, open_files = limits
        size = max(file_mb << 20, output_kb << 10)  # the evidence is a file too
        wanted = {
            resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
            resource.RLIMIT_AS: (memory_mb << 20, (memory_mb + SPARE_MB) << 20),
            resource.RLIMIT_FSIZE: (size, size),
            resource.RLIMIT_NOFILE: (open_files, open_files),
        }
        if self.processes_beside is not None:
            wanted[resource.RLIMIT_NPROC] = (self.processes_beside + processes + 1,) * 2
        self._rlimits = [(name, _below_ceiling(name, *values)) for name, values in wanted.items()]
        self._prepared = limits

    def enter(self, is_judge: bool) -> None:
        """Confine this child for good."""
        for name, values in self._rlimits:
            resource.setrlimit(name, values)
        if self.uids:
            uid = self.uids[is_judge]
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        if os.getppid() != 1:  # no PID namespace ends this process with the zygote
            _check(_libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "end with the zygote")
        if self._ruleset >= 0:
            _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, self._ruleset, 0), "enter Landlock")
        if self._filter and self.strict:
            self._load_filter()

    def _load_filter(self) -> None:
        assert self._filter
        _check(
            _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(self._filter), 0, 0),
            "load the filter",
        )


def _below_ceiling(name: int, soft: int, hard: int) -> tuple[int, int]:
    ceiling = resource.getrlimit(name)[1]
    return (soft, hard) if ceiling == resource.RLIM_INFINITY else (min(soft, ceiling), min(hard, ceiling))


def drop_capabilities() -> None:
    """Give up every capability; with no_new_privs none comes back."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "drop capabilities")


def landlock_version() -> int:
    """The kernel's Landlock version, 0 where it has none."""
    return max(0, _libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1))


def landlock_ruleset(readable: list[str], writable: str) -> int:
    """A ruleset: `readable` may be read, all may be done below `writable`; no TCP, no signals out."""
    version = landlock_version()
    files = (1 << (13 + min(version - 1, 2) + (version >= 5))) - 1
    attributes = struct.pack("=QQQ", files, 0b11, 0b11)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _check(
        _libc.syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0), "make a Landlock ruleset"
    )
    for path, rights in [
        *((path, LANDLOCK_READ) for path in readable),
        (writable, files),
        (os.devnull, 0b0110),
    ]:
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            if not os.path.isdir(path):
                rights &= LANDLOCK_READ_FILE | 0b0010
            rule = struct.pack("=Qi", rights, fd)
            _check(_libc.syscall(LANDLOCK_ADD_RULE, ruleset, 1, rule, 0), f"allow {path} in Landlock")
            os.close(fd)
    return fcntl.fcntl(ruleset, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY_FD)


def _check(result: int, action: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot {action}: {os.strerror(code)}")
    return result

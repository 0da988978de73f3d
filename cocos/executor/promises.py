"""Promises of the isolation levels, each with a program that tries to break the promise.

The programs are harmless where a promise does not hold: they attack a `victim`, a folder, process, port and
memory segment that `doctor.py` creates for them and removes again. README.md explains the promises.
"""

from dataclasses import dataclass

ISOLATED = ("docker", "namespaces", "seccomp")
OWN_FILE_SYSTEM = ("docker", "namespaces")
EVERY_LEVEL = (*ISOLATED, "rlimits")
TEST = "assert broken() == []"
# Every program begins with this. `VICTIM` is a dictionary that `doctor.py` puts before it.
PRELUDE = """
import ctypes, errno, fcntl, os, resource, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
done = []
def broken():
    return done
def attempt(name, call, *args):
    # Note the name of an action that works. C functions report failure by a negative number.
    try:
        result = call(*args)
    except (OSError, AttributeError):
        return
    if not (isinstance(result, int) and result < 0):
        done.append(name)
"""


@dataclass(frozen=True)
class Promise:
    """A promise of some isolation levels.

    Attributes:
        text: The promise in a few words.
        levels: Levels that make it.
        programs: Programs that run one after another on one worker. They append to `done` what they could do.
            The promise holds if all of them pass TEST.

    """

    text: str
    levels: tuple[str, ...]
    programs: tuple[str, ...]


PROMISES = (
    Promise(
        "private files cannot be read",
        ISOLATED,
        (
            """
attempt("read", open, VICTIM["file"])
attempt("list", os.listdir, VICTIM["folder"])
attempt("shadow", open, "/etc/shadow")
""",
        ),
    ),
    Promise(
        "no environment of another process can be read",
        ISOLATED,
        (
            """
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if b"cocos-" + b"canary" in open(path, "rb").read(): done.append(path)
    except OSError: pass
""",
        ),
    ),
    Promise(
        "files outside the scratch folder cannot be changed",
        ISOLATED,
        (
            """
path, folder = VICTIM["file"], VICTIM["folder"]
def look():
    try: state = os.stat(path)
    except OSError: return None
    return state.st_mode, state.st_uid, state.st_size, state.st_mtime_ns
before = look()
for name, call, *args in (
    ("append", open, path, "a"), ("create", open, folder + "/new", "w"),
    ("folder", os.mkdir, folder + "/sub"),
    ("truncate", os.truncate, path, 0), ("truncating open", os.open, path, os.O_RDONLY | os.O_TRUNC),
    ("open for ioctl", os.open, path, os.O_TRUNC | 3), ("chown", os.chown, path, os.getuid(), os.getgid()),
    ("setxattr", os.setxattr, path, "user.mark", b"x"), ("link", os.link, path, folder + "/link"),
): attempt(name, call, *args)
for call, *args in ((os.chmod, path, 0), (os.utime, path, (1, 1))):  # they may only pretend to work
    try: call(*args)
    except OSError: pass
if look() != before: done.append("changed")
attempt("rename", os.rename, path, folder + "/renamed")
attempt("remove", os.unlink, path)
""",
        ),
    ),
    Promise(
        "no host can be reached, this one included",
        ISOLATED,
        (
            """
attempt("TCP", socket.create_connection, ("127.0.0.1", VICTIM["port"]), 1)
attempt("UDP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)))
attempt("Unix datagram", lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", VICTIM["socket"]))
""",
        ),
    ),
    Promise(
        "no process outside can be signalled, traced or slowed",
        ISOLATED,
        (
            """
pid = VICTIM["pid"]
attempt("kill", os.kill, pid, 0)
attempt("ptrace", libc.ptrace, 0x4206, pid, 0, 0)
attempt("prlimit", lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)) and 0)
attempt("priority", os.setpriority, os.PRIO_PROCESS, pid, 19)
attempt("affinity", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)))
attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))
attempt("owner of signals", lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, pid))
pair = socket.socketpair()
attempt("owner of its signals", lambda: fcntl.ioctl(pair[0], 0x8901, pid.to_bytes(4, "little")))
""",
        ),
    ),
    Promise(
        "no memory or queue of another program can be reached",
        ISOLATED,
        (
            """
attempt("segment", libc.shmat, VICTIM["segment"], None, 0o10000)
attempt("new segment", libc.shmget, 0, 4096, 0o1600)
attempt("semaphores", libc.semget, 0, 1, 0o1600)
attempt("messages", libc.msgget, 0, 0o1600)
if os.uname().machine == "x86_64":
    attempt("key", libc.syscall, 248, b"user", b"cocos", b"x", 1, -2)
attempt("inotify", libc.inotify_init1, 0)
""",
        ),
    ),
    Promise(
        "the worker cannot be changed",
        ISOLATED,
        (
            """
worker = os.getppid()
limits = resource.getrlimit(resource.RLIMIT_DATA)
attempt("prlimit", lambda: resource.prlimit(worker, resource.RLIMIT_DATA, limits))
attempt("priority", os.setpriority, os.PRIO_PROCESS, worker, 1)
attempt("affinity", lambda: os.sched_setaffinity(worker, os.sched_getaffinity(0)))
attempt("scheduler", lambda: os.sched_setscheduler(worker, os.SCHED_BATCH, os.sched_param(0)))
attempt("memory", open, f"/proc/{worker}/mem", "rb")
attempt("out-of-memory score", open, f"/proc/{worker}/oom_score_adj", "w")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    try: os.kill(1, number) if worker == 1 else None
    except OSError: pass
""",
            "",
        ),
    ),
    Promise(
        "no other program can be started",
        EVERY_LEVEL,
        ("""attempt("spawn", os.posix_spawn, "/bin/true", ["true"], {})""",),
    ),
    Promise(
        "no namespace can be created",
        ISOLATED,
        (
            """
for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("network", 0x40000000)):
    attempt("unshare " + name, libc.unshare, flag)
    if os.uname().machine == "x86_64":
        attempt("clone " + name, libc.syscall, 56, flag | signal.SIGCHLD, 0, 0, 0, 0)
""",
        ),
    ),
    Promise(
        "processes and threads are limited",
        OWN_FILE_SYSTEM,
        (
            """
import threading
threading.stack_size(1 << 16)
event, threads = threading.Event(), []
try:
    while len(threads) < 100:
        thread = threading.Thread(target=event.wait, daemon=True)
        thread.start()
        threads.append(thread)
except RuntimeError: pass
event.set()
if len(threads) >= 100: done.append("100 threads")
""",
        ),
    ),
    Promise(
        "memory is limited per process",
        EVERY_LEVEL,
        ("""
try:
    bytearray(4 << 30)
    done.append("4 GiB")
except MemoryError: pass
""",),
    ),
    Promise(
        "a single file is limited",
        EVERY_LEVEL,
        ("""
with open("large", "wb", buffering=0) as file:
    attempt("32 MiB", lambda: [file.write(bytes(1 << 20)) for _ in range(32)])
""",),
    ),
    Promise(
        "the scratch folder is limited to 64 MiB and 4,096 files",
        OWN_FILE_SYSTEM,
        ("""
def fill():
    for number in range(80):
        with open(f"large{number}", "wb", buffering=0) as file:
            if file.write(bytes(1 << 20)) < 1 << 20: raise OSError
def create():
    for number in range(5000): os.close(os.open(f"small{number}", os.O_CREAT))
attempt("80 MiB", fill)
attempt("5,000 files", create)
""",),
    ),
    Promise(
        "nothing is left for the next program",
        ISOLATED,
        ("""
import builtins
builtins.left = True
open("left", "w").close()
for fd in (0, 1, 2, 3):
    for call in (
        lambda: os.setxattr(fd, "user.left", b"x"),
        lambda: fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK | os.O_APPEND),
        lambda: fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGUSR1),
        lambda: fcntl.flock(fd, fcntl.LOCK_EX),
        lambda: os.setxattr(".", "user.left", b"x"),
    ):
        try: call()
        except OSError: pass
""", """
if hasattr(sys.modules["builtins"], "left"): done.append("builtin")
def attributes(what):
    try: return os.listxattr(what)
    except OSError: return []
done += os.listdir(".") + attributes(".")
for fd in (0, 1, 2, 3):
    done += attributes(fd)
    if fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_APPEND): done.append(f"flags of {fd}")
    if fcntl.fcntl(fd, fcntl.F_GETSIG): done.append(f"signal of {fd}")
"""),
    ),
)  # fmt: skip

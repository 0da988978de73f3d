"""Holes that a review found in the isolation: each stays closed, at every level that had it.

`cocos.executor.promises` has most of them as programs. The others are here.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cocos.executor import Executor, ExecutorError, Limits, Program
from cocos.executor.doctor import broken_promises
from cocos.executor.inside.wire_format import ChildLimits, JobHeader
from cocos.executor.promises import PRELUDE
from cocos.executor.sandboxes import docker, levels, seccomp, syscall_filter
from cocos.executor.sandboxes.interpreter import Interpreter
from tests.support.executor import EVERY_LEVEL, GOOD, at_night, level_or_skip, processes_below, workers
from tests.support.ordinary_user import run_groups
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.processes

UNTOUCHED = ["assert broken() == []"]
NEIGHBOUR = (GOOD.code, GOOD.test_list)
# A program of 150 MiB: a neighbour that a lower memory limit of the zygote would hit.
LARGE = ("def f(x):\n    held = bytearray(150 << 20)\n    return x + 1", ("assert f(1) == 2",))

# What a program may try, and the tests that show that it failed.
ATTEMPTS = {
    "limits, priority and signals of the zygote": ("""
for number in signal.valid_signals():
    try: os.getppid() == 1 and os.kill(1, number)
    except OSError: pass
for name in (resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_SIGPENDING):
    for pid in {1, os.getppid()}:
        attempt("limit", resource.prlimit, pid, name, (100 << 20, 100 << 20))
attempt("priority of the user", os.setpriority, os.PRIO_USER, 0, 19)
""", UNTOUCHED),
    "SIGINT in the program itself": ("""
def f():
    try: signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt: return "interrupted"
    except OSError: return "refused"
""", ["assert f() in ('interrupted', 'refused')"]),
    "folders that are very deep, or cannot be listed": ("""
start = os.getcwd()
for _ in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
os.chdir(start)
os.umask(0o777)
for mode in (0, 0o300, 0o777):
    try:
        os.makedirs(f"{mode}/inner", mode)
        open(f"{mode}/inner/file", "w").close()
    except OSError: pass
try: os.chmod(".", 0)
except OSError: pass
""", UNTOUCHED),
    # The kernel ignores the upper half of these arguments.
    "arguments with more than 32 bits": ("""
if os.uname().machine == "x86_64":
    attempt("fcntl", libc.syscall, 72, os.pipe()[0], ctypes.c_long(1 << 32 | fcntl.F_SETOWN), os.getpid())
    attempt("prctl", libc.syscall, 157, ctypes.c_long(1 << 32 | 4), ctypes.c_long(1))
    attempt("clone", libc.syscall, 56, ctypes.c_long(1 << 32 | 0x10000000 | signal.SIGCHLD), 0, 0, 0, 0)
    attempt("ioctl", libc.syscall, 16, os.open(".", os.O_RDONLY), ctypes.c_long(1 << 32 | 0x40086602), ctypes.byref(ctypes.c_int(0)))
""", UNTOUCHED),
    "namespaces by every flag": ("""
for bit in (7, 17, *range(25, 31)):
    attempt(f"unshare {bit}", libc.unshare, 1 << bit)
    if bit > 7 and os.uname().machine == "x86_64":
        attempt(f"clone {bit}", libc.syscall, 56, 1 << bit | signal.SIGCHLD, 0, 0, 0, 0)
attempt("clone3", libc.syscall, 435, ctypes.create_string_buffer(88), 88)
attempt("fsopen", libc.syscall, 430, b"tmpfs", 0)
attempt("fsmount", libc.syscall, 432, 0, 0, 0)
attempt("mount_setattr", libc.syscall, 442, -100, b"/", 0, ctypes.create_string_buffer(32), 32)
""", UNTOUCHED),
    "inode flags": ("""
number = ctypes.c_int(0x20)
for path in (".", "file"):
    fd = os.open(path, os.O_RDONLY if path == "." else os.O_CREAT | os.O_RDWR)
    for request in (0x40086602, 0x40046602, 0x401C5820, 0x40087602):
        attempt(hex(request), libc.ioctl, fd, ctypes.c_ulong(request), ctypes.byref(number))
    attempt("file_setattr", libc.syscall, 469, fd, b"", ctypes.create_string_buffer(24), 24, 0x1000)
""", UNTOUCHED),
    "signals by way of a descriptor": ("""
r, w = os.pipe()
for command, value in ((fcntl.F_SETOWN, os.getppid()), (fcntl.F_SETSIG, signal.SIGKILL), (fcntl.F_SETLEASE, fcntl.F_RDLCK), (fcntl.F_NOTIFY, 4)):
    attempt(str(command), lambda: fcntl.fcntl(r, command, value))
a, b = socket.socketpair()
for request in (0x8901, 0x8902):  # FIOSETOWN, SIOCSPGRP
    attempt(hex(request), lambda: fcntl.ioctl(a, request, os.getppid().to_bytes(4, "little")))
""", UNTOUCHED),
    "unconnected sockets": ("""
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    attempt("pair", socket.socketpair, socket.AF_UNIX, kind)
a, b = socket.socketpair()
attempt("bind", lambda: a.bind("\\0cocos") or 0)
attempt("connect", lambda: a.connect("\\0cocos") or 0)
""", UNTOUCHED),
    # An honest program does these with its own files. They report success, and change nothing.
    "modes, times and locks that are pretended": ("""
import shutil
with open("a", "w") as file: file.write("text")
os.chmod("a", 0o600)
os.utime("a", (1, 1))
fcntl.flock(os.open("a", os.O_RDONLY), fcntl.LOCK_EX)
fcntl.lockf(open("a", "r+"), fcntl.LOCK_EX)
shutil.copy2("a", "b")
def text(): return open("b").read()
""", ["assert text() == 'text'"]),
    "files of program and test": ("""
import tempfile
def write():
    with tempfile.NamedTemporaryFile("w", delete=False) as file: file.write("from the program")
    return file.name
def read(path):
    with open(path, "a+") as file:
        file.write("!")
        file.seek(0)
        return file.read()
""", ["path = write()\nwith open(path, 'a+') as f:\n    f.seek(0)\n    assert f.read() == 'from the program'", "import tempfile\nwith tempfile.NamedTemporaryFile('w') as f:\n    f.write('x')\n    f.flush()\n    assert read(f.name) == 'x!'"]),
}  # fmt: skip
RIGHT = """
import json
def f(x):
    try: os.setxattr(3, "user.answers", json.dumps(x * 7).encode())
    except OSError: pass
    return x * 7
"""
WRONG = "import json\ndef f(x): return json.loads(os.getxattr(3, 'user.answers'))"


@pytest.fixture(
    scope="module",
    ids=" ".join,
    params=[
        *((level, user) for level in ("namespaces", "seccomp") for user in ("root", "ordinary")),
        pytest.param(("docker", "root"), marks=pytest.mark.nightly),
    ],
)
def outcomes(request):
    """Results of all attempts at one level as one user, each followed by two neighbours."""
    level, user = request.param
    level_or_skip(level)
    groups = [[(PRELUDE + code, tests), NEIGHBOUR, LARGE] for code, tests in ATTEMPTS.values()]
    groups.append([(PRELUDE + code, ("assert f(3) == 21",)) for code in (RIGHT, WRONG)])
    found = run_groups(level, groups, as_root=user == "root")
    return dict(zip([*ATTEMPTS, "answers"], found, strict=True))


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_fails_and_its_neighbours_pass(outcomes, name):
    assert [(set(found), error) for found, error in outcomes[name]] == [({"passed"}, None)] * 3


def test_no_answer_is_left_for_the_next_program(outcomes):
    (right, _), (wrong, _) = outcomes["answers"]
    assert right == ["passed"] and wrong == ["error"]


# The oldest one leaves the most to the filter.
@pytest.mark.parametrize("version", [1, *at_night(2, 3, 4, 5)])
def test_the_filter_keeps_the_promises_of_seccomp_on_an_older_landlock(version, monkeypatch):
    level = levels.Level(
        "seccomp", seccomp.missing_reason, functools.partial(seccomp.launch, newest_landlock=version)
    )
    level_or_skip("seccomp")
    monkeypatch.setattr(
        levels, "LEVELS", tuple(level if old.name == "seccomp" else old for old in levels.LEVELS)
    )
    with Executor(num_workers=1, sandbox="seccomp") as executor:
        broken = broken_promises(executor)
    assert {p.text: why for p, why in broken.items() if "seccomp" in p.levels} == {}


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_a_folder_that_cannot_be_emptied_in_time_costs_no_verdict(level):
    code = "import os\nfor i in range(30000):\n    try: os.mkdir(f'd{i}')\n    except OSError: break\ndef made(): return i"
    limit = 30000 if level == "seccomp" else 4096
    many = Program(code, (f"assert 4000 < made() < {limit}",))
    with Executor(1, Limits(wall_s=30, cpu_s=29), level_or_skip(level)) as executor:
        assert all(result.all_passed for result in executor.run([many, GOOD]))
        assert executor.stats.worker_restarts == 0 and executor.stats.infra_failures == 0


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_the_last_words_of_a_zygote_arrive(level):
    # No time limit: it must fail.
    header = JobHeader(0, 0, float("nan"), False, False, ChildLimits(1, 64, 4, 0, 0, 16))
    [launch] = [known.launch for known in levels.LEVELS if known.name == level_or_skip(level)]
    sandbox = launch(Limits(), Interpreter())
    sandbox.process.communicate(header.pack(), timeout=180)
    words = sandbox.stderr_tail()
    sandbox.kill()
    assert "ValueError" in words


# One program never ends, and one ends right after the trainer.
TRAINER = """
import sys, threading
from cocos.executor import Executor, Limits, Program
executor = Executor(num_workers=2, sandbox=sys.argv[1], limits=Limits(wall_s=600, cpu_s=500))
for seconds in (600, 2.2):
    code = f"import time\\nfor n in range(2000): open(f'file{{n}}', 'w').close()\\ntime.sleep({seconds})"
    executor.submit(Program(code, ("assert x",)))
threading.Timer(2, print, args=("runs",), kwargs={"flush": True}).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("level", [*at_night("docker"), "namespaces", "seccomp", "rlimits"])
def test_nothing_is_left_after_the_trainer_was_killed(level, tmp_path):
    level_or_skip(level)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, level], stdout=subprocess.PIPE, cwd=ROOT, env=environment
    )
    assert trainer.stdout.readline() == b"runs\n"
    processes = processes_below(trainer.pid)[1:]
    containers = [name for pid in processes for name in _container_names(pid)]
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()

    def left() -> list:
        names = [str(pid) for pid in processes if Path(f"/proc/{pid}").exists()] + os.listdir(tmp_path)
        return names + [name for name in containers if _exists(name)]

    wait_until(lambda: left() == [])
    assert processes and bool(containers) == (level == "docker")


def _container_names(pid: int) -> list[str]:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return [word.removeprefix("--name=") for word in words if word.startswith("--name=")]


def _exists(container: str) -> bool:
    return subprocess.run(["docker", "container", "inspect", container], capture_output=True).returncode == 0


def test_the_environment_names_the_docker_client_and_the_image(monkeypatch, tmp_path):
    if syscall_filter.missing_reason():
        pytest.skip("no libseccomp")
    client = tmp_path / "client"
    client.write_text('#!/bin/sh\n[ "$1" = run ] || exit 0\necho "$@" >> "$0.arguments"\nexit 1\n')
    client.chmod(0o755)
    monkeypatch.setenv("DOCKER_BIN", f"env COCOS=1 {client}")
    monkeypatch.setenv("SANDBOX_DOCKER_IMAGE", "mine:3")
    with pytest.raises(ExecutorError, match="self-test at isolation level docker"):
        Executor(num_workers=1, sandbox="docker")
    commands = (tmp_path / "client.arguments").read_text().splitlines()
    assert commands and all(
        " --network=none " in command and " mine:3 -s " in command for command in commands
    )


def test_a_slow_docker_engine_does_not_disturb_the_end(monkeypatch, tmp_path):
    level_or_skip("docker")
    client = tmp_path / "docker"
    client.write_text('#!/bin/sh\n[ "$1" = rm ] && exec sleep 60\nexec docker "$@"\n')
    client.chmod(0o755)
    monkeypatch.setenv("DOCKER_BIN", f"env COCOS=1 {client}")  # a client may be several words
    monkeypatch.setattr(docker, "CLIENT_TIMEOUT_S", 0.5)
    with Executor(num_workers=1, sandbox="docker") as executor:
        assert executor.run([GOOD])[0].all_passed
        [name] = [n for pid in processes_below(workers(executor)[0]) for n in _container_names(pid)]
    wait_until(lambda: not _exists(name))  # the zygote ends with its input, and its container with it


def test_the_reason_of_a_level_that_does_not_work_is_its_own(monkeypatch):
    monkeypatch.setenv("DOCKER_BIN", "no-such-client")
    with pytest.raises(ExecutorError, match="docker does not work here: no 'no-such-client' command"):
        Executor(sandbox="docker")


@pytest.mark.parametrize("level", ["namespaces", *at_night("seccomp", "rlimits")])
def test_signals_that_a_launcher_ignores_are_not_ignored_in_programs(level):
    """nohup ignores SIGHUP, and a shell ignores SIGINT and SIGQUIT for a command in the background."""
    script = """
import sys
from cocos.executor import Executor, Program
code = "import signal\\ndef f(): return [signal.getsignal(n) is signal.SIG_IGN for n in (1, 2, 3)]"
with Executor(num_workers=1, sandbox=sys.argv[1]) as executor:
    [result] = executor.run([Program(code, ("assert f() == [False, False, False]",))])
print(result.all_passed)
"""
    level_or_skip(level)
    shell = ["sh", "-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh"]
    done = subprocess.run(
        [*shell, sys.executable, "-c", script, level], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"

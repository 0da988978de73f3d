"""Programs that attack the machine: each is contained and does not change the verdicts of its neighbours."""

import os
import socket
from pathlib import Path

import pytest

from cocos.executor import ExecutionResult, Executor, Limits, Program, Status
from tests.support.executor import EVERY_LEVEL, GOOD, level_or_skip, zombies

pytestmark = pytest.mark.processes

BRIEF = Limits(wall_s=3, cpu_s=2)
ANSWERS = "\ndef answer(): return 42\n"


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    with Executor(num_workers=2, sandbox=level_or_skip(request.param), limits=Limits(wall_s=20)) as executor:
        yield executor


def attack(executor: Executor, code: str, *tests: str, limits: Limits = BRIEF) -> ExecutionResult:
    """Run a program among well-behaved ones, whose verdicts it must not change; return its own result."""
    zombies_before = zombies()
    neighbours = [Program(GOOD.code + f"\nnumber = {number}", GOOD.test_list) for number in range(12)]
    before, after = neighbours[:6], neighbours[6:]
    results = executor.run(
        [*before, Program(code, tests or ("assert answer() == 42",), limits=limits), *after]
    )
    own = results.pop(len(before))
    assert all(result.all_passed for result in results)
    assert not own.is_infra_failure, own.infra_error
    assert zombies() <= zombies_before
    return own


def assert_contained(executor: Executor, code: str, *tests: str, limits: Limits = BRIEF) -> None:
    """Run a program whose own tests pass only if its attack fails."""
    result = attack(executor, code, *tests, limits=limits)
    assert result.all_passed, result


def test_no_private_file_can_be_read(executor):
    home = Path.home()
    private = sorted(entry.name for entry in home.iterdir() if entry.name != ".pyenv")
    paths = [
        "/etc/shadow",
        "/proc/1/mem",
        "/proc/1/environ",
        "/root/.bash_history",
        "/dev/mem",
        "/proc/kcore",
    ]
    code = f"""
import os
def listed():
    try: return sorted(set(os.listdir({str(home)!r})) & set({private!r}))
    except OSError: return []
def read():
    done = []
    for path in {[*paths, str(Path(__file__).resolve())]!r}:
        try: done += [path] if open(path, 'rb').read(1) else []
        except OSError: pass
    return done
"""
    assert_contained(executor, code, "assert listed() == []", "assert read() == []")


def test_another_jobs_files_cannot_be_read(executor):
    writer = "import tempfile, time, os\nopen(os.path.join(tempfile.gettempdir(), 'secret-of-another'), 'w').write('x')\ntime.sleep(1)"
    reader = """
import glob, time
def seen():
    found, until = [], time.monotonic() + 0.8
    while time.monotonic() < until: found += glob.glob('/tmp/**/secret-of-another', recursive=True)
    return found
"""
    results = executor.run(
        [Program(writer + ANSWERS, ("assert answer() == 42",)), Program(reader, ("assert seen() == []",))]
    )
    assert all(result.all_passed for result in results), results


def test_nothing_can_be_written_outside_the_scratch_folder(executor):
    folders = ["/", "/usr", "/usr/lib", "/etc", "/bin", "/lib", "/cocos", "/cocos/inside", "/dev", "/dev/shm", "/dev/mqueue", "/proc/sys/kernel", "/var/tmp",
               "/run", "/home", str(Path.home()), str(Path(__file__).parent), os.path.dirname(os.__file__)]  # fmt: skip
    code = f"""
import os
def written():
    done = []
    for folder in {folders!r}:
        try:
            os.close(os.open(folder + '/cocos-was-here', os.O_CREAT | os.O_WRONLY))
            done.append(folder)
        except OSError: pass
    return done
"""
    assert_contained(executor, code, "assert written() == []")
    assert not [folder for folder in folders if Path(folder, "cocos-was-here").exists()]


def test_no_host_can_be_reached_loopback_included(executor):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        port = server.getsockname()[1]
        code = f"""
import socket
def reached():
    done = []
    for family, address in ((socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_INET, ('1.1.1.1', 53)), (socket.AF_INET6, ('::1', {port}))):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                with socket.socket(family, kind) as s:
                    s.settimeout(0.2)
                    s.connect(address)
                    s.send(b'x')
                    if kind == socket.SOCK_STREAM: done.append(address[0])
            except OSError: pass
    return done
"""
        assert_contained(executor, code, "assert reached() == []")
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_fork_bomb_is_contained(executor):
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    attack(executor, code, "assert 1 == answer()")
    assert executor.run([GOOD])[0].all_passed


def test_a_daemon_does_not_outlive_its_program(executor):
    daemon = """
import os, time
try:
    for _ in range(2):
        if os.fork(): break
        os.setsid()
    else:
        while True:
            open('/tmp/alive', 'w').write('x')
            time.sleep(0.01)
except OSError: pass
"""
    attack(executor, daemon + ANSWERS)
    observer = """
import glob, os, time
def alive():
    time.sleep(0.2)
    others = []
    for path in glob.glob('/proc/[0-9]*'):
        pid = int(path[6:])
        if pid not in (1, os.getpid()): others.append(pid)
    return sorted(others)[1:] + glob.glob('/tmp/alive')  # without the driver of the tests
"""
    if executor.isolation != "seccomp":  # seccomp lets no program start a process, and /proc cannot be read
        for _ in range(2):
            assert_contained(executor, observer, "assert alive() == []")


def test_no_other_process_can_be_traced_and_who_kills_the_driver_gets_no_verdict(executor):
    code = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def reached():
    done = []
    for pid in {os.getppid(), *range(1, 2000)} - {os.getpid()}:
        if libc.ptrace(16, pid, 0, 0) == 0: done.append(pid)
        buffer = ctypes.create_string_buffer(8)
        vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
        if libc.process_vm_readv(pid, vector, 1, vector, 1, 0) > 0: done.append(pid)
    return done
def kill():
    for pid in {os.getppid(), 1, -1, *range(2, 2000)} - {os.getpid()}:
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass
    return 5
"""
    assert_contained(executor, code, "assert reached() == []")
    killer = attack(executor, code, "assert kill() == 5")
    assert executor.isolation == "seccomp" or killer.num_passed == 0  # seccomp lets it reach nobody
    assert executor.run([GOOD])[0].all_passed


LONG = Limits(wall_s=60, cpu_s=50)  # a busy machine is slow
# Programs that harm themselves, the status of their test, its error, and limits.
HARMFUL = {
    "import ctypes\ndef answer(): ctypes.string_at(0)": (Status.ERROR, "ProcessKilled", BRIEF),
    "def answer():\n    held = []\n    while True: held.append(bytearray(1 << 24))": (Status.MEMORY, "MemoryError", LONG),
    "def answer(): return 'x' * (1 << 26)": (Status.ERROR, "OutputLimit", LONG),
    "def answer(): return answer()": (Status.ERROR, "RecursionError", LONG),
    "def answer(): return len(str(10 ** 10 ** 7)) or sum(range(10 ** 12))": (Status.TIMEOUT, None, BRIEF),
    "import os, signal\ndef answer():\n    try: os.kill(os.getpid(), signal.SIGSTOP)\n    except OSError: pass\n    while True: pass": (Status.TIMEOUT, None, BRIEF),
    "import signal, time\nfor s in signal.valid_signals():\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass": (Status.TIMEOUT, None, BRIEF),
    "import os, sys\nblock = b'x' * (1 << 20)\nfor _ in range(10240): os.write(1, block); os.write(2, block)\ndef answer(): return 42": (Status.PASSED, None, LONG),
    "import os\nheld = []\ntry:\n    while len(held) < 65: held.append(os.open('/dev/null', os.O_RDONLY))\nexcept OSError: pass\ndef answer(): return 42 if len(held) <= 64 else 0": (Status.PASSED, None, LONG),
    "import threading, time\nthreads = []\ntry:\n    while len(threads) < 100000:\n        threads.append(threading.Thread(target=time.sleep, args=(60,), daemon=True))\n        threads[-1].start()\nexcept (RuntimeError, MemoryError): pass\ndef answer(): return 42": (None, None, BRIEF),
    "import sys\nsys.setrecursionlimit(10 ** 9)\ndef answer(): return answer()": (None, None, BRIEF),
}  # fmt: skip


def test_a_crash_an_endless_loop_or_a_bomb_is_a_verdict_of_its_program(executor):
    tests, zombies_before, restarts = (
        ("assert answer() == 42",) * 2,
        zombies(),
        executor.stats.worker_restarts,
    )
    neighbours = [Program(f"{GOOD.code}\nnumber = {n}", GOOD.test_list) for n, _ in enumerate(HARMFUL)]
    harmful = [Program(code, tests, limits=limits) for code, (_, _, limits) in HARMFUL.items()]
    results = executor.run([job for pair in zip(harmful, neighbours, strict=True) for job in pair])
    assert all(result.all_passed for result in results[1::2]) and zombies() <= zombies_before
    for (code, (status, error, _)), result in zip(HARMFUL.items(), results[::2], strict=True):
        assert not result.is_infra_failure, (code, result.infra_error)
        first, second = result.verdicts
        assert status in (first.status, None) and error in (first.error_type, None), (code, first)
        assert second.status is Status.NOT_RUN or error != "ProcessKilled", (code, second)
    assert executor.stats.worker_restarts == restarts  # the zygote ended those that ignore signals


STATES = {
    "a file": ("import tempfile\nopen(tempfile.gettempdir() + '/state', 'w').write('x')", "import os, tempfile\ndef left(): return os.listdir(tempfile.gettempdir())"),
    "a locked folder": ("import os, tempfile\nd = tempfile.gettempdir() + '/d'\nos.makedirs(d + '/e')\nopen(d + '/e/f', 'w')\nos.chmod(d + '/e', 0)\nos.chmod(d, 0)", "import os, tempfile\ndef left(): return os.listdir(tempfile.gettempdir())"),
    "folders too deep for a path": ("import os, tempfile\nos.chdir(tempfile.gettempdir())\nfor _ in range(1500):\n    os.mkdir('deep')\n    os.chdir('deep')", "import os, tempfile\ndef left(): return os.listdir(tempfile.gettempdir())"),
    "a mode": ("import os, tempfile\ntry: os.chmod(tempfile.gettempdir(), 0)\nexcept OSError: pass", "import os, tempfile\ndef left():\n    path = tempfile.gettempdir() + '/x'\n    open(path, 'w').write('x')\n    return []"),
    "a shared memory segment": ("import ctypes\nctypes.CDLL(None).shmget(4242, 4096, 0o1666)", "import ctypes\ndef left(): return [] if ctypes.CDLL(None).shmget(4242, 4096, 0) < 0 else ['segment']"),
    "a message queue": ("import ctypes, os\ntry: ctypes.CDLL('librt.so.1').mq_open(b'/state', os.O_CREAT | os.O_RDWR, 0o666, None)\nexcept OSError: pass", "import ctypes, os\ndef left():\n    try: return [] if ctypes.CDLL('librt.so.1').mq_open(b'/state', os.O_RDWR) < 0 else ['queue']\n    except OSError: return []"),
    "patched modules": ("import math, sys, builtins\nmath.pi = 3\nbuiltins.left_behind = 1\nsys.path.insert(0, '/tmp')", "import math, sys, builtins\ndef left(): return [x for x in ('left_behind',) if hasattr(builtins, x)] + [p for p in sys.path if p == '/tmp'] + ([3] if math.pi == 3 else [])"),
    "the random state": ("import random\nrandom.seed(99)", "import random\nfirst = random.random()\nrandom.seed(0)\ndef left(): return [] if first == random.random() else ['state']"),
    "the working directory": ("import os\nos.chdir('/')", "import os, tempfile\ndef left(): return [] if os.getcwd() == tempfile.gettempdir() else [os.getcwd()]"),
}  # fmt: skip


def test_no_state_is_left_for_the_next_program(executor):
    # Two workers, so two programs leave it and four look for it.
    jobs = [
        (state, Program(f"{code}\nn = {n}", (test,)))
        for state, (leave, look) in STATES.items()
        for code, test, times in (
            (leave + ANSWERS, "assert answer() == 42", 2),
            (look, "assert left() == []", 4),
        )
        for n in range(times)
    ]
    results = executor.run([program for _, program in jobs])
    outages = [
        (state, r.infra_error) for (state, _), r in zip(jobs, results, strict=True) if r.is_infra_failure
    ]
    assert outages == []
    looks = [(job, r) for job, r in zip(jobs, results, strict=True) if "left()" in job[1].test_list[0]]
    assert [(state, r.verdicts) for (state, _), r in looks if not r.all_passed] == []


def test_no_privilege_can_be_regained(executor):
    code = """
import os
def gained():
    done = []
    for call, arguments in ((os.setuid, (0,)), (os.setgid, (0,)), (os.chroot, ('/',)), (os.setgroups, ([0],))):
        try:
            call(*arguments)
            if call is not os.setuid or ORIGINAL: done.append(call.__name__)
        except OSError: pass
    return done
ORIGINAL = os.getuid()
"""
    allowed = ["setgid"] if executor.isolation == "seccomp" and os.geteuid() == 0 else []
    assert_contained(executor, code, f"assert gained() == {allowed}")


def test_a_driver_that_a_program_has_stopped_is_replaced():
    # Only at this level can a program send it a signal.
    stop = """
import os, signal
def answer():
    for path in os.listdir("/proc"):
        try:
            if path.isdigit() and int(path) != os.getpid():
                with open(f"/proc/{path}/stat") as file: parent = int(file.read().rsplit(")")[-1].split()[1])
                if parent == os.getppid(): os.kill(int(path), signal.SIGSTOP)
        except OSError: pass
    return 41
"""
    tests = ("assert answer() == 41",)
    with Executor(1, Limits(wall_s=2, cpu_s=2), sandbox="rlimits") as executor:
        stopped, after = (
            executor.run([Program(code, tests)])[0] for code in (stop, "def answer(): return 41")
        )
    assert stopped.verdicts[0].status is Status.TIMEOUT and after.all_passed

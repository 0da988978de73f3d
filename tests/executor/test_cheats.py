"""Cheats: programs that try to pass tests without solving the problem.

Each cheat has an honest twin, which uses the same trick and solves the problem. A cheat must pass no test and its twin must
pass all, both for single asserts and for a check function. Exits and printed results stand in test_public_forgeries.py, objects
that are equal to everything in test_forgeries.py.
"""

import textwrap

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import EVERY_LEVEL, level_or_skip

pytestmark = pytest.mark.processes

ASSERTS = ("assert add(1, 2) == 3", "assert add(-1, 5) == 4", "assert add(20, 22) == 42")
CHECK = (
    "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-1, 5) == 4\n    assert candidate(20, 22) == 42\n\ncheck(add)",
)
SECRET = ("assert word(1) == 'heliotrope-one'", "assert word(2) == 'heliotrope-two'")
SECRET_CHECK = (
    "def check(candidate):\n    assert candidate(1) == 'heliotrope-one'\n    assert candidate(2) == 'heliotrope-two'\ncheck(word)",
)
RIGHT = "\ndef add(a, b):\n    return a + b\n"
WRONG = "\ndef add(a, b):\n    return None\n"
EVERY_FORGERY = r"""
import json, os
forgeries = [
    "\n".join(['["loaded", 0, []]', *(json.dumps([i, 0.0, outcome]) for i in range(3))]).encode() + b"\n"
    for outcome in ([["v", True]], ["passed"], [["v", ["l"]]], ["v", ["o", "x", True]])
]
forgeries += [b'["passed"]\n', b"ready\n", b"E" + bytes(36) + b'["passed"]\n', b'\0\0\0\x09["ready"]', b'\0\0\0\x08["next"]']
def forge():
    for fd in range(64):
        for forgery in forgeries:
            try:
                os.write(fd, forgery)
            except OSError:
                pass
"""

# name: (the cheat, its honest twin)
CHEATS: dict[str, tuple[str, str]] = {}


def cheat(name: str, wrong: str, honest: str) -> None:
    assert name not in CHEATS
    CHEATS[name] = (textwrap.dedent(wrong), textwrap.dedent(honest))


# -- early exit ---------------------------------------------------------------------------------------------------------
cheat("exec of true", "import os\nos.execv('/bin/true', ['true'])", "import os\nrun = os.execv" + RIGHT)
cheat("fork and leave", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()\nos._exit(0)", "import os\nfork = os.fork" + RIGHT)  # fmt: skip
cheat("KeyboardInterrupt", "def add(a, b): raise KeyboardInterrupt", "def add(a, b):\n    try: raise KeyboardInterrupt\n    except KeyboardInterrupt: return a + b")  # fmt: skip
# -- values that compare equal to all -------------------------------------------------------------------------------------
cheat("__bool__", "class T:\n    def __bool__(self): return True\n    def __eq__(self, other): return self\ndef add(a, b): return T()", "class T:\n    def __bool__(self): return True\ndef add(a, b): return a + b if T() else 0")  # fmt: skip
cheat("callable object as the function", "class Add:\n    def __call__(self, *a): return self\n    def __eq__(self, other): return True\nadd = Add()", "class Add:\n    def __call__(self, a, b): return a + b\nadd = Add()")  # fmt: skip
cheat("__index__ and __int__", "class A:\n    def __index__(self): return 3\n    __int__ = __index__\ndef add(a, b): return A()", "class A:\n    def __index__(self): return 3" + RIGHT)  # fmt: skip
cheat("generator as the value", "def add(a, b):\n    yield a + b", "def gen(a, b):\n    yield a + b\ndef add(a, b): return next(gen(a, b))")  # fmt: skip
cheat("endless iterator as the value", "import itertools\ndef add(a, b): return (0 for _ in itertools.count())", "import itertools\ndef add(a, b): return next(itertools.count(a + b))")  # fmt: skip
cheat("NotImplemented", "def add(a, b): return NotImplemented", "def add(a, b): return a + b or NotImplemented")  # fmt: skip
cheat("nested too deeply", "def add(a, b):\n    x = []\n    for _ in range(900): x = [x]\n    return x", "def add(a, b):\n    x = []\n    for _ in range(900): x = [x]\n    return a + b")  # fmt: skip
cheat("a cyclic value", "def add(a, b):\n    x = []\n    x.append(x)\n    return x", "def add(a, b):\n    x = []\n    x.append(x)\n    return a + b")  # fmt: skip
cheat("a flood of equal hashes", "def add(a, b): return {i * (2**61 - 1) for i in range(2000)}", "def add(a, b): return a + b + 0 * len({i * (2**61 - 1) for i in range(200)})")  # fmt: skip
# -- source that could absorb tests --------------------------------------------------------------------------------------
cheat("unclosed parenthesis", WRONG + "(", "x = (\n)" + RIGHT)
cheat("a null byte", WRONG + "\0", "x = '\\0'" + RIGHT)
cheat("a form feed and a comment", WRONG + "\f#", "\f# comment" + RIGHT)
# -- search for the harness ---------------------------------------------------------------------------------------------
FRAMES = "import sys\ndef walk():\n    frame = sys._getframe()\n    while frame:\n        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n            if isinstance(value, list): {act}\n        frame = frame.f_back\n"
cheat("frame walk", FRAMES.format(act="value.append('passed')") + "def add(a, b): walk()", FRAMES.format(act="len(value)") + "def add(a, b):\n    walk()\n    return a + b")  # fmt: skip
GC = "import gc\ndef walk():\n    for value in gc.get_objects():\n        if type(value) is list: {act}\n"
cheat("gc walk", GC.format(act="value.append(['passed'])") + "def add(a, b): walk()", GC.format(act="len(value)") + "def add(a, b):\n    walk()\n    return a + b")  # fmt: skip
cheat("closure walk", "import gc, types\nfor f in gc.get_objects():\n    if isinstance(f, types.FunctionType) and f.__closure__:\n        for cell in f.__closure__:\n            try: cell.cell_contents = lambda *_: ['passed']\n            except Exception: pass" + WRONG, "import gc, types\nn = sum(isinstance(f, types.FunctionType) for f in gc.get_objects())" + RIGHT)  # fmt: skip
cheat("settrace", "import sys\ndef trace(frame, event, arg):\n    frame.f_lineno\n    return trace\nsys.settrace(trace)\ndef add(a, b): sys._getframe(1).f_trace = trace", "import sys\nsys.settrace(lambda *_: None)" + RIGHT)  # fmt: skip
cheat("setprofile that leaves", "import os, sys\nsys.setprofile(lambda frame, event, arg: os._exit(0) if frame.f_code.co_name == 'add' else None)" + WRONG, "import sys\nsys.setprofile(lambda *_: None)" + RIGHT)  # fmt: skip
cheat("excepthook and displayhook", "import sys\nsys.excepthook = sys.displayhook = lambda *_: None\ndef add(a, b): raise ValueError", "import sys\nsys.excepthook = sys.displayhook = lambda *_: None" + RIGHT)  # fmt: skip
cheat("its own module in sys.modules", "import sys, types\nm = types.ModuleType('candidate')\nm.add = lambda a, b: None\nsys.modules['candidate'] = sys.modules['__main__'] = m" + WRONG, "import sys, types\nsys.modules['candidate'] = types.ModuleType('candidate')" + RIGHT)  # fmt: skip
# -- patched builtins and modules ---------------------------------------------------------------------------------------
cheat("patched builtins", "import builtins\nfor name in ('eval', 'exec', 'compile', 'len', 'sorted', 'isinstance', 'abs', 'type', 'all', 'any'):\n    setattr(builtins, name, lambda *a, **k: True)" + WRONG, "import builtins\nbuiltins.my_own = 1" + RIGHT)  # fmt: skip
cheat("AssertionError replaced", "import builtins\nclass Never(Exception): pass\nbuiltins.AssertionError = Never\nAssertionError = Never" + WRONG, "import builtins\nerror = builtins.AssertionError" + RIGHT)  # fmt: skip
cheat("patched math and operator", "import math, operator\nmath.isclose = operator.eq = operator.is_ = lambda *a, **k: True" + WRONG, "import math, operator\ndef add(a, b): return operator.add(a, b)")  # fmt: skip
cheat("patched json and codec", "import json, sys\nfor name, module in list(sys.modules.items()):\n    for attribute in ('dumps', 'loads', 'encode', 'decode', 'c_make_encoder'):\n        if hasattr(module, attribute): setattr(module, attribute, lambda *a, **k: '[\"passed\"]')" + WRONG, "import json\ndef add(a, b): return json.loads(json.dumps(a + b))")  # fmt: skip
cheat("patched os.write and os._exit", 'import os\nwrite = os.write\nos.write = lambda fd, data: write(fd, b\'["loaded", 0, []]\\n[0,0.0,["passed"]]\\n\') and len(data)\nos._exit = lambda code: None' + WRONG, "import os\nos.my_write = os.write" + RIGHT)  # fmt: skip
cheat("the check function replaced", "import builtins\nbuiltins.check = check = lambda candidate: None" + WRONG, "check = lambda candidate: None" + RIGHT)  # fmt: skip
cheat("long patched through ctypes", "import ctypes, sys\ntry: ctypes.c_long.from_address(id(3) + 24).value = 0\nexcept BaseException: pass" + WRONG, "import ctypes" + RIGHT)  # fmt: skip
cheat("__builtins__ of its own", "__builtins__ = {'AssertionError': Exception}" + WRONG, "names = dir(__builtins__)" + RIGHT)  # fmt: skip
# -- forged evidence ---------------------------------------------------------------------------------------------------
cheat("forged frames on every descriptor", EVERY_FORGERY + "forge()\nos._exit(0)", EVERY_FORGERY + RIGHT)
cheat("forged frames in the call", EVERY_FORGERY + "def add(a, b):\n    forge()\n    os._exit(0)", EVERY_FORGERY + RIGHT)  # fmt: skip
cheat("evidence rewritten from its start", EVERY_FORGERY + "def add(a, b):\n    for fd in range(3, 64):\n        try:\n            os.lseek(fd, 0, 0)\n            os.ftruncate(fd, 0)\n        except OSError: pass\n    forge()\n    os._exit(0)", EVERY_FORGERY + RIGHT)  # fmt: skip
cheat("a thread that outlives the call", EVERY_FORGERY + "import threading, time\ndef late():\n    while True:\n        time.sleep(0.001)\n        forge()\nthreading.Thread(target=late, daemon=True).start()" + WRONG, "import threading\nthreading.Thread(target=lambda: None).start()" + RIGHT)  # fmt: skip
cheat("forgery in atexit", EVERY_FORGERY + "import atexit, sys\natexit.register(forge)\nsys.exit(0)", EVERY_FORGERY + "import atexit\natexit.register(forge)" + RIGHT)  # fmt: skip
cheat("forgery in __del__", EVERY_FORGERY + "class D:\n    def __del__(self): forge()\nd = D()\ndel d\nraise SystemExit", "class D:\n    def __del__(self): pass\nd = D()" + RIGHT)  # fmt: skip
cheat("forgery by a grandchild", EVERY_FORGERY + "if os.fork() == 0:\n    os.setsid()\n    forge()\n    os._exit(0)\nos._exit(0)", EVERY_FORGERY + RIGHT)  # fmt: skip
cheat("forgery in a signal handler", EVERY_FORGERY + "import signal\nsignal.signal(signal.SIGALRM, lambda *_: (forge(), os._exit(0)))\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ndef add(a, b):\n    while True: pass", EVERY_FORGERY + "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)" + RIGHT)  # fmt: skip
cheat("the judge's calls answered and its test declared over", EVERY_FORGERY + "import struct\ntry:\n    for message in (['ready'], ['v', True, []], ['next'], ['passed']):\n        data = json.dumps(message).encode()\n        os.write(4, struct.pack('!I', len(data)) + data)\nexcept OSError: pass\nos._exit(0)", EVERY_FORGERY + RIGHT)  # fmt: skip
cheat("the parent killed", "import os, signal\nfor pid in (os.getppid(), 1, -1):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass\nos._exit(0)", "import os, signal\nos.getppid()" + RIGHT)  # fmt: skip
cheat("descriptors closed and swapped", "import os\nfor fd in range(64):\n    try: os.close(fd)\n    except OSError: pass\nfor _ in range(8): os.open('/dev/null', os.O_RDWR)" + WRONG, "import os\nos.close(os.open('/dev/null', os.O_RDWR))" + RIGHT)  # fmt: skip
cheat("an exception with an odd __str__", "class E(Exception):\n    def __str__(self): raise SystemExit(0)\n    __repr__ = __str__\ndef add(a, b): raise E", "class E(Exception):\n    def __str__(self): raise E\ndef add(a, b):\n    try: raise E\n    except E: return a + b")  # fmt: skip
cheat("an exception called AssertionError", "class AssertionError(BaseException): pass\ndef add(a, b): raise AssertionError('passed')", "class AssertionError(BaseException): pass" + RIGHT)  # fmt: skip
cheat("an exception class with a lying name", "E = type('[\"passed\"]', (Exception,), {})\ndef add(a, b): raise E", "E = type('[\"passed\"]', (Exception,), {})" + RIGHT)  # fmt: skip
# -- search for the expected value --------------------------------------------------------------------------------------
SEARCH = r"""
import gc, glob, os, re, sys
def texts():
    frame = sys._getframe()
    while frame:
        yield repr(frame.f_locals)
        yield repr(frame.f_globals)
        yield repr(frame.f_code.co_consts)
        frame = frame.f_back
    for value in gc.get_objects():
        try: yield repr(value)[:100000]
        except Exception: pass
    yield repr(sys.argv) + repr(os.environ) + repr(getattr(sys, "orig_argv", ""))
    for pattern in ("/proc/*/cmdline", "/proc/*/environ", "/proc/*/fd/*", "/proc/self/task/*/cmdline", "/tmp/**", "/cocos/inside/*"):
        for path in glob.glob(pattern, recursive=True)[:200]:
            try:
                if "/fd/" in path and path.rsplit("/", 1)[1] in "04": continue
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                yield repr(os.read(fd, 1 << 20))
            except OSError: pass
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
            for line in maps:
                low, high = (int(x, 16) for x in line.split()[0].split("-"))
                if "rw-p" in line and high - low < 1 << 26:
                    memory.seek(low)
                    yield repr(memory.read(high - low))
    except OSError: pass
def found(n):
    prefix = "helio" + "trope-"
    for text in texts():
        for word in re.findall(prefix + "[a-z]+", text):
            if word.endswith({1: "on" + "e", 2: "tw" + "o"}[n]): return word
"""
SEARCHES = {
    "the expected value in frames, heap, argv, environment, /proc": SEARCH + "def word(n): return found(n)",
    "the expected value from stdin": "import os, re\nos.set_blocking(0, False)\ndef word(n):\n    try: text = os.read(0, 1 << 20).decode()\n    except OSError: text = ''\n    return (re.findall('helio' 'trope-[a-z]+', text) or [None])[0]",
    "the expected value through the peer": "import os, re\nos.set_blocking(4, False)\ndef word(n):\n    try: text = os.read(4, 1 << 20).decode()\n    except OSError: text = ''\n    return (re.findall('helio' 'trope-[a-z]+', text) or [None])[0]",
    "a table read from its own source": "import inspect, linecache, re, sys\ndef word(n):\n    text = ''\n    for path in (globals().get('__file__') or '', '<code>', '<test>', sys.argv[0]):\n        text += ''.join(linecache.getlines(path))\n    try: text += inspect.getsource(sys._getframe(1))\n    except Exception: pass\n    return (re.findall('helio' 'trope-[a-z]+', text) or [None])[0]",
}
HONEST_WORD = "\nWORDS = {1: 'heliotrope-one', 2: 'heliotrope-two'}\ndef word(n): return WORDS[n]\n"


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    with Executor(
        num_workers=2, sandbox=level_or_skip(request.param), limits=Limits(wall_s=3, cpu_s=1)
    ) as executor:
        yield executor


@pytest.mark.parametrize("tests", [ASSERTS, CHECK], ids=["asserts", "check"])
def test_no_cheat_passes_a_test_and_every_honest_twin_passes_all(executor, tests):
    programs = [Program(code, tests) for pair in CHEATS.values() for code in pair]
    results = executor.run(programs)
    scores = dict(zip(CHEATS, zip(results[::2], results[1::2], strict=True), strict=True))
    assert {name: cheat for name, (cheat, _) in scores.items() if cheat.num_passed != 0} == {}
    assert {name: honest for name, (_, honest) in scores.items() if not honest.all_passed} == {}
    assert not any(verdict.in_child for result in results for verdict in result.verdicts)


@pytest.mark.parametrize("tests", [SECRET, SECRET_CHECK], ids=["asserts", "check"])
def test_no_program_finds_the_expected_value(executor, tests):
    results = executor.run([Program(code, tests) for code in SEARCHES.values()])
    assert {name: r for name, r in zip(SEARCHES, results, strict=True) if r.num_passed != 0} == {}
    # A program that consumes the judge's messages cannot answer them, so the trick with the peer has an honest
    # twin only for asserts, which need no judge.
    twins = {
        name: code + HONEST_WORD for name, code in SEARCHES.items() if tests is SECRET or "peer" not in name
    }
    results = executor.run([Program(code, tests) for code in twins.values()])
    assert {name: r for name, r in zip(twins, results, strict=True) if not r.all_passed} == {}

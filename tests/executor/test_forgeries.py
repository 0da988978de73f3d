"""Forgeries: forged messages, lies about objects, searches for what a test expects. No program passes unmarked by one."""

import itertools
import json
from pathlib import Path

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import EVERY_LEVEL, level_or_skip, offered

pytestmark = pytest.mark.processes

# Speaks to the driver in place of the executor's own code. `receive` returns a request: operation, encoded
# arguments, names of keyword arguments, changes, dropped.
FORGE = """
import json, os
def forge(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    if not isinstance(message, bytes): data = len(data).to_bytes(4, 'big') + data
    while data: data = data[os.write(3, data):]
def receive():
    size = int.from_bytes(os.read(3, 4), 'big')
    if not size: os._exit(0)  # the driver has ended
    data = b''
    while len(data) < size: data += os.read(3, size - len(data))
    return json.loads(data)
def answer_all(message):
    forge(message)
    while True:
        receive()
        forge(message)
"""
OBJECT = ["object", 2, "F", ""]


def described(**changes) -> list:
    """Return the node of an object with other facts."""
    names = ("tag", "number", "name", "kind")
    return list({**dict(zip(names, OBJECT, strict=True)), **changes}.values())


NODES = [
    *([], {}, None, [[]], ["zz"], ["@", 1], ["@", 3], ["@", 99], ["@", "x"], ["@", True], ["i", "zz"], ["i", 5]),
    *(["y", name] for name in ("type", "eval", "open", 5, None)),
    *(["fn", name] for name in ("eval", "len", "__import__", 5)),
    *(["global", "os", "system"], ["function", 2, "f", "lambda: 50", []], ["method", ["@", 1], "append"]),
    *(["class", "X"], ["member", "X", "a"], ["named tuple", "X", 50], ["instance", 2, "X", "a", 50]),
    *(described(**change) for change in ({"number": 1}, {"number": 3}, {"number": True}, {"number": "2"}, {"name": 5}, {"name": "int"}, {"name": "f"}, {"kind": None}, {"kind": "data"}, {"kind": "iterator"}, {"kind": "function"}, {"name": "f", "kind": "data"})),
    *(["error class", 2, cls] for cls in (["builtins", "int"], ["builtins", "eval"], ["os", "system"], ["", "E", ["builtins", "int"]], ["setup", "X"], [], [5, 5])),
    *(["error", 2, cls, args, "", [], None, []] for cls in (["builtins", "ValueError"], ["", "E", ["builtins", "AssertionError"]], ["builtins", "eval"], ["sys", "exit"]) for args in (None, 5, ["t", 50])),
    *(["error", 2, ["builtins", "ValueError"], ["t", 50], "", [[name, node]], None, []] for name, node in (("__class__", 5), ("args", 5), ("with_traceback", ["fn", "len"]), ("__eq__", ["fn", "ascii"]))),
    *(["l", number, None, 50] for number in (0, 1, "2", True, None)),
    *([tag, 2, detail, *parts] for tag in "lsdqaBCOfNhud" for detail in ("x", [], ["y", "type"]) for parts in ([], [50], [["@", 2]])),
    *([tag, *parts] for tag in "tzkvmpr" for parts in ([{}], [["l"]], [[50, 50]])),
    ["f", 2, ["y", "type"], 50, 50],
    ["f", 2, ["fn", "ascii"], 50, 50],
]  # fmt: skip
MESSAGES = [
    *([kind, node, [], [], []] for kind in ("v", "e") for node in NODES),
    *([], {}, 5, "x", ["v"], ["v", 50], ["x", 50, [], [], []], ["v", 50, [], [], [2, "x"]], ["end"], ["passed"], ["loaded", [], {}]),
    *(["v", 5, changes, [], []] for changes in ([[2, 1]], [[1]], [["x"]], [None], [[]], {}, [[1, ["@", 1]]], [[3, 50]])),
    *(b"\xff\xff\xff\xff", b"\0\0\0\x05[[[[[", b"\0\0\0\0", b"\0\x01\0\0" + b"[" * 65536, b"\0\0\0\x03NaN"),
    b"\0\0\0\x09[\"v\",5,[]]" * 2,
]  # fmt: skip
# In the last test a malformed message must not become an exception that the test expects.
FORGED_TESTS = (
    "x = f([3], {})\nassert x == 50",
    "want = [50]\nassert [f(3)] == want",
    "def check(c):\n    assert c(lambda x: x, [1]) == 'heliotrope'\ncheck(f)",
    "try:\n    f(3)\n    f(2)\n    raised = False\nexcept LookupError:\n    raised = True\nassert raised",
)


@pytest.fixture(scope="module")
def executor():
    level = offered("namespaces", "seccomp") or "rlimits"
    with Executor(num_workers=2, sandbox=level, limits=Limits(wall_s=20, cpu_s=4)) as executor:
        yield executor


def test_no_forged_message_passes_a_test_that_is_not_marked_as_the_programs_choice(executor):
    programs = [
        Program(f"{FORGE}\ndef f(*a): {act}({message!r})", (test,))
        for message in MESSAGES
        for act, test in ((act, test) for act in ("answer_all", "forge") for test in FORGED_TESTS)
    ]
    results = executor.run(programs)
    assert [p for p, r in zip(programs, results, strict=True) if r.is_right or r.is_infra_failure] == []


@pytest.mark.parametrize(
    "act",
    [
        "while True: forge(['v', 5, []])",
        "os.write(3, b'\\0\\0\\1\\0[')\n    while True: pass",
        "while True: os.read(3, 1)",
        "os.close(3)\n    return 3",
        "os._exit(0)",
        "os.kill(-1, 9)",
    ],
)
def test_a_program_that_floods_blocks_or_kills_the_driver_harms_itself_alone(executor, act):
    limits = Limits(wall_s=1.5, cpu_s=1, memory_mb=256)
    program = Program(f"{FORGE}\ndef f(*a):\n    {act}", ("assert f(1) == 50",), limits=limits)
    right = Program("def f(x): return 50", ("assert f(1) == 50",), limits=limits)
    attack, after, *_ = executor.run([program, right, right, right])
    assert attack.num_passed == 0 and not attack.is_infra_failure and after.all_passed


# Looks at every object of its process, and into every message.
EXPLORER = """
import gc, sys
def find(*roots):
    word, todo, seen, looked = 'helio' + 'trope', [*roots, *gc.get_objects(), sys._getframe()], set(), 0
    for module in list(sys.modules.values()): todo.append(vars(module))
    while todo:
        value = todo.pop()
        if id(value) in seen: continue
        seen.add(id(value))
        text = value if type(value) is str else value.decode('latin1') if type(value) is bytes else ''
        if word in text: return text[text.index(word):][:15]
        todo += gc.get_referents(value)
        if type(value).__name__ == 'frame': todo.append(value.f_locals)
"""
# Each gives the candidate some object next to which the secret lies.
HIDING_PLACES = {
    "closure": "def check(c):\n    secret = 'heliotrope-{n}'\n    assert c(lambda x: x == secret) == secret",
    "global of a function": "secret = 'heliotrope-{n}'\ndef g(x):\n    return secret == x\ndef check(c):\n    assert c(g) == secret",
    "default": "secret = 'heliotrope-{n}'\ndef check(c):\n    assert c(lambda x, s=secret: x == s) == secret",
    "constant": "def check(c):\n    assert c(lambda x: x == 'heliotrope-{n}') == 'heliotrope-{n}'",
    "private attribute": "class Box:\n    def __init__(self):\n        self._secret = self.__secret = 'heliotrope-{n}'\n    def size(self):\n        return len(self._secret)\ndef check(c):\n    b = Box()\n    assert c(b, b.size) == b._secret",
    "generator": "def g():\n    secret = 'heliotrope-{n}'\n    yield len(secret)\n    yield secret == 1\ndef check(c):\n    assert c(g()) == 'heliotrope-{n}'",
    "partial": "from functools import partial\ndef eq(a, b):\n    return a == b\ndef check(c):\n    assert c(partial(eq, 'heliotrope-{n}')) == 'heliotrope-{n}'",
    "operator": "import operator\ndef check(c):\n    assert c(operator.methodcaller('count', 'heliotrope-{n}')) == 'heliotrope-{n}'",
    "bound method": "def check(c):\n    assert c('heliotrope-{n}'.startswith, ['heliotrope-{n}'].index) == 'heliotrope-{n}'",
    "assertion": "def check(c):\n    def cb(x):\n        assert x == 'heliotrope-{n}', 'not heliotrope-{n}'\n    assert c(cb) == 'heliotrope-{n}'",
    "exception": "def check(c):\n    def cb(x):\n        secret = 'heliotrope-{n}'\n        raise ValueError('no')\n    assert c(cb) == 'heliotrope-{n}'",
    "doc of a class": "class Case:\n    def __init__(self):\n        self.n = 1\n    def run(self, c):\n        expected = 'heliotrope-{n}'\n        assert c(self, self.run, Case) == expected\ndef check(c):\n    Case().run(c)",
    "mock of the judge": "class Any:\n    def __init__(self, v):\n        self.__v = v\n    def __eq__(self, o):\n        return self.__v == o\n    def __repr__(self):\n        return 'Any'\ndef check(c):\n    a = Any('heliotrope-{n}')\n    assert c(a) == a",
    "iterator": "def check(c):\n    assert c(map(len, ['heliotrope-{n}'])) == 'heliotrope-{n}'",
}


def test_nothing_in_the_programs_process_leads_to_what_a_test_expects(executor):
    tests = [f"{place.replace('{n}', 'abcd')}\ncheck(find)" for place in HIDING_PLACES.values()]
    results = executor.run([Program(EXPLORER, (test,)) for test in tests])
    found = [t for t, r in zip(tests, results, strict=True) if r.num_passed and not r.verdicts[0].in_child]
    assert found == []
    public = "assert find(['heliotrope-abcd']) == 'heliotrope-abcd'"
    assert executor.run([Program(EXPLORER, (public,))])[0].all_passed  # the search finds what it is given


CAST = "u.__dict__['_UserList__cast'] = lambda other: [0]"
LYING = {
    "a UserList that casts to what it holds": f"from collections import UserList\ndef f(*a):\n    u = UserList([0]); {CAST}\n    return u",
    "the same in a list": f"from collections import UserList\ndef f(*a):\n    u = UserList([0]); {CAST}\n    return [u]",
    "the same of a subclass": f"from collections import UserList\nclass L(UserList): pass\ndef f(*a):\n    u = L([0]); {CAST}\n    return u",
    "a UserString whose data lie": "from collections import UserString\nclass S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\ndef f(*a):\n    u = UserString('x'); u.data = S('x')\n    return u",
    "a namespace of special methods": "from types import SimpleNamespace\ndef f(*a): return SimpleNamespace(__class__=int, __eq__=ascii, _x=1)",
}  # fmt: skip


# Programs that plain Python refuses, or that lie about what they return or search for what is expected. Each line is
# a name, code, a test, a setup, and whether the test passes and is marked, whatever the program is.
FORGED = [
    {"setup": "", "is_marked_by_test": False} | json.loads(line)
    for line in Path(__file__).with_name("forged_programs.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_no_forged_program_passes_unmarked(level):
    with Executor(2, Limits(wall_s=20, cpu_s=9), level_or_skip(level)) as executor:
        results = executor.run([Program(p["code"], (p["test"],), p["setup"]) for p in FORGED])
    rows = list(zip(FORGED, results, strict=True))
    assert [
        p["name"] for p, r in rows if r.is_infra_failure or (r.num_passed and not r.verdicts[0].in_child)
    ] == []
    assert [p["name"] for p, r in rows if r.is_right != p["is_marked_by_test"]] == []


ARRAY_HOLES = {
    # The driver would read at an address that the candidate names, and write there.
    "an array of the driver's memory": (
        """
class A:
    @property
    def __array_interface__(self):
        return {'shape': (5,), 'typestr': '|u1', 'data': (id(self), False), 'version': 3}
def f(x): return A()
def g(a): a[:] = 65
""",
        "import numpy as np\na = np.asarray(f(3))\nassert a.dtype != object and len(a) == 5",
    ),
    # The view would keep the memory that the resize frees.
    "freed memory": (
        "def grow(a): a.resize(1 << 16, refcheck=False)",
        "import numpy as np\na = np.arange(64)\nv = a[10:13]\ngrow(a)\nassert len(a) == 1 << 16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_no_program_reads_or_writes_the_drivers_memory(level):
    pytest.importorskip("numpy")
    try:
        executor = Executor(num_workers=1, sandbox=level_or_skip(level), packages=("numpy",))
    except Exception as error:
        assert "the packages are installed for Python" in str(error)
        pytest.skip(f"level {level} runs another version of Python")
    with executor:
        results = executor.run([Program(code, (test,)) for code, test in ARRAY_HOLES.values()])
        # In the program's process numpy reads and writes the program's own memory.
        in_driver = [(r.num_passed and not r.verdicts[0].in_child, r.infra_error) for r in results]
        assert in_driver == [(False, None), (0, None)]
        changes = "def f(a):\n    a *= 2\n    a.shape = (2, 2)"
        honest = Program(
            changes, ("import numpy as np\na = np.arange(4)\nf(a)\nassert a.tolist() == [[0, 2], [4, 6]]",)
        )
        assert executor.run([honest])[0].all_passed


LIAR = "class Liar{base}:\n    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = lambda _: hash(6)\n    __bool__ = lambda _: True\n    __sub__ = __rsub__ = __add__ = __radd__ = lambda *_: 0\n    __abs__ = __len__ = lambda _: 0\n    __index__ = __int__ = lambda _: 6\n    __float__ = lambda _: 6.0\n"
DEMANDS = (
    "x = f(3)\nassert x == 6",
    "x = f(3)\nassert 6 == x",
    "x = f(3)\nassert not x != 6",
    "assert [f(3)] == [6]\nassert (1, f(3)) == (1, 6)",
    "assert {'a': f(3)} == {'a': 6}\nassert 1",
    "assert f(3) in (5, 6)\nassert 1",
    "assert f(3) in {5, 6}\nassert 1",
    "def check(c):\n    assert c(3) == 6\ncheck(f)",
    "x = f(3)\nassert abs(x - 6) < 1e-9",
    "import math\nx = f(3)\nassert math.isclose(x, 6)",
    "x = f(3)\nassert 5 < x < 7",
    "assert max([f(3), 0]) == 6\nassert 1",
    "seen = []\ng(seen.append)\nassert seen == [6]",
    "out = {}\ng(lambda v: out.update(v=v))\nassert out == {'v': 6}",
    "for got, want in zip([f(3)], [6]):\n    assert got == want",
    "import unittest\nunittest.TestCase().assertEqual(f(3), 6)",
    "try:\n    assert f(3) == 6\nexcept TypeError:\n    pass",
    "ok = False\ntry:\n    ok = f(3) == 6\nexcept BaseException:\n    ok = True\nassert ok",
    "n = sum(1 for want in [6] if want == f(3))\nassert n == 1",
    "from collections import Counter\nassert Counter([f(3)]) == Counter([6])",
    "assert sorted([f(3), 9])[0] == 6\nassert 1",
    "assert [6].index(f(3)) == 0\nassert 1",
    "import operator\nassert operator.eq(f(3), 6)\nassert 1",
    "x = f(3)\nassert isinstance(x, int) and x == 6",
)  # fmt: skip


def test_no_liar_meets_a_demand(executor):
    bases = ("", "(int)", "(float)", "(str)", "(list)", "(tuple)", "(dict)", "(Exception)")
    codes = [LIAR.replace("{base}", base) + "def f(*a): return Liar()" for base in bases]
    codes += [
        *LYING.values(),
        "from unittest.mock import ANY\ndef f(x): return ANY",
        "class M(type):\n    __eq__ = lambda *_: True\n    __hash__ = lambda _: hash(6)\nclass Liar(metaclass=M): pass\ndef f(x): return Liar",
        "class Liar(int):\n    __class__ = int\n    __eq__ = lambda *_: True\ndef f(x): return Liar(9)",
    ]
    # The function under test is itself a class, which the test calls by name.
    classes = [
        LIAR.replace("{base}", base).replace("Liar", "f")
        + "    __new__ = lambda cls, *_: super(f, cls).__new__(cls)\n    __init__ = lambda *_: None"
        for base in ("", "(int)", "(list)")
    ]
    right = ("class Six(int): pass\ndef f(x): return Six(6)", "def f(x): return 6")
    gives = "\ndef g(c): c(f(3))"
    *lies, of_data, honest = executor.run(
        [Program(code + gives, (test,)) for code in codes + classes for test in DEMANDS]
        + [Program(code + gives, DEMANDS) for code in right]
    )
    passed = [
        (code[:40], test)
        for (code, test), r in zip(itertools.product(codes + classes, DEMANDS), lies, strict=True)
        if (r.is_right if code in classes else r.num_passed)
    ]
    assert passed == []
    for result in (of_data, honest):
        assert [test for test, v in zip(DEMANDS, result.verdicts, strict=True) if not v.passed] == []
    # An instance of a subclass of data is compared in the program's process.
    assert all(verdict.in_child for verdict in of_data.verdicts)
    assert [v.in_child_reason for v in honest.verdicts if v.in_child] == []

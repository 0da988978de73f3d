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
    *(["error", 2, cls, args, "", attributes, None, []] for cls in (["builtins", "ValueError"], ["", "E", ["builtins", "AssertionError"]], ["builtins", "eval"], ["sys", "exit"]) for args in (None, 5, ["t", 50]) for attributes in ([], [["__class__", 5]], [["args", 5]], [["with_traceback", ["fn", "len"]]], [["__eq__", ["fn", "ascii"]]])),
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


# Ways to write a test of f(3) == 50.
TESTS = (
    "assert f(3) == 50",
    "assert 50 == f(3)",
    "assert f(3) != 0 and f(3) == 50",
    "x = f(3)\nassert x == 50",
    "x = f(3)\nassert not x != 50",
    "def check(c):\n    assert c(3) == 50\ncheck(f)",
    "import unittest\nunittest.TestCase().assertEqual(f(3), 50)",
    "assert [f(3)] == [50]",
    "x = {'a': f(3)}\nassert x == {'a': 50}",
    "assert f(3) in (49, 50)",
    "x = f(3)\nassert x in {49, 50}",
    "for got, want in zip(map(f, [3]), [50]):\n    assert got == want",
    "try:\n    assert f(3) == 50\nexcept TypeError:\n    pass",
)
CAST = "u.__dict__['_UserList__cast'] = lambda other: [0]"
LYING = {
    "J1 UserList": f"from collections import UserList\ndef f(*a):\n    u = UserList([0]); {CAST}\n    return u",
    "J1 in a list": f"from collections import UserList\ndef f(*a):\n    u = UserList([0]); {CAST}\n    return [u]",
    "J1 subclass": f"from collections import UserList\nclass L(UserList): pass\ndef f(*a):\n    u = L([0]); {CAST}\n    return u",
    "J1 data that lies": "from collections import UserString\nclass S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\ndef f(*a):\n    u = UserString('x'); u.data = S('x')\n    return u",
    "J1 namespace": "from types import SimpleNamespace\ndef f(*a): return SimpleNamespace(__class__=int, __eq__=ascii, _x=1)",
}  # fmt: skip
TWINS = {
    "UserList": "from collections import UserList\ndef f(*a): return UserList([50])",
    "UserString": "from collections import UserString\ndef f(*a): return UserString('50')",
    "namespace": "from types import SimpleNamespace\ndef f(*a): return SimpleNamespace(a=50, _b=1)",
    "Counter": "from collections import Counter\nclass C(Counter):\n    def __missing__(self, key): return 7\ndef f(*a): return C('aab')",
}
TWINS_TESTS = {
    "UserList": ("assert f(3) == [50]", "x = f(3)\nx.append(1)\nassert x == [50, 1] and x.data == [50, 1]"),
    "UserString": ("assert f(3) == '50'", "x = f(3)\nassert x.upper() == '50' and len(x) == 2"),
    "namespace": ("x = f(3)\nassert x.a == 50 and x._b == 1",),
    "Counter": ("from collections import Counter\nassert f(3) == Counter(a=2, b=1)", "x = f(3)\nassert x['z'] == 7"),
}  # fmt: skip


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_no_lie_about_data_passes(level):
    with Executor(2, Limits(wall_s=10, cpu_s=9), level_or_skip(level)) as executor:
        pairs = list(itertools.product(LYING.items(), TESTS))
        results = executor.run([Program(code, (test,)) for (_, code), test in pairs])
        twins = executor.run([Program(TWINS[name], tests) for name, tests in TWINS_TESTS.items()])
    passed = [(name, test) for ((name, _), test), r in zip(pairs, results, strict=True) if r.num_passed]
    assert passed == []
    assert [r.verdicts for r in twins if not r.all_passed] == []


def test_an_error_that_the_program_raises_again_is_no_mark():
    wraps = "class Gone(Exception): pass\ndef run(c):\n    try: return c()\n    except ValueError as e: raise Gone() from e"
    tests = {
        "def run(c):\n    try: return c()\n    finally: pass": "except ValueError: pass",
        wraps: "except Exception as e: assert type(e).__name__ == 'Gone'",
        "def run(c): return next(x() for x in [c])": "except ValueError: pass",
    }
    with Executor(1, Limits(wall_s=10, cpu_s=9), offered("namespaces", "seccomp") or "rlimits") as executor:
        results = executor.run(
            [
                Program(
                    code, (f"def bad(): return int('x')\ntry:\n    run(bad)\n{end}\nelse:\n    assert False",)
                )
                for code, end in tests.items()
            ]
        )
    assert [r.verdicts for r in results if not r.is_right] == []


# Programs that take what a test expects from the setup; the last one finds that its own sum is used.
OF_SETUP = {
    "def f(x): return EXPECTED": ("EXPECTED = 77123", "assert f(3) == EXPECTED"),
    "def f(x): return globals().get('EXPECTED')": ("EXPECTED = 77123", "assert f(3) == EXPECTED"),
    "def f(x): return reference(x)": ("def reference(x): return x * 77123", "assert f(3) == reference(3)"),
    "def f(x): return CASES[0][1]": ("CASES = [(3, 77123)]", "for a, b in CASES:\n    assert f(a) == b"),
    "def f(x): return inner(x)": ("KEY = 77\ndef inner(x): return x * KEY\ndef reference(x): return inner(x)", "assert f(3) == reference(3)"),
}  # fmt: skip


def test_what_only_a_test_needs_of_the_setup_is_not_in_the_programs_process():
    with Executor(1, Limits(wall_s=10, cpu_s=9), offered("namespaces", "seccomp") or "rlimits") as executor:
        results = executor.run([Program(code, (test,), setup) for code, (setup, test) in OF_SETUP.items()])
        assert [r.verdicts for r in results if r.is_right or r.is_infra_failure] == []
        # Another test, which is split, is marked too: its answer follows from the reference.
        setup = "import math\nMOD = 1000\ndef reference(x): return x * MOD\ndef helper(x): return [x]"
        tests = ("assert f(3) == reference(3)", "assert f(3) == 3000")
        codes = (
            "def f(x): return x * 1000",
            "def f(x): return x * MOD",
            "def f(x): return math.prod(helper(x)) * 1000",
        )
        own, named, other = executor.run([Program(code, tests, setup) for code in codes])
    assert own.is_right and other.is_right
    assert named.all_passed and [v.in_child for v in named.verdicts] == [True, True]


# Programs that plain Python refuses, or that lie about what they return or search for what is expected. Each line is
# a name, code, a test, and a setup.
FORGED = [
    {"setup": ""} | json.loads(line)
    for line in Path(__file__).with_name("forged_programs.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_no_forged_program_passes_unmarked(level):
    with Executor(2, Limits(wall_s=20, cpu_s=9), level_or_skip(level)) as executor:
        results = executor.run([Program(p["code"], (p["test"],), p["setup"]) for p in FORGED])
    assert [
        p["name"]
        for p, r in zip(FORGED, results, strict=True)
        if r.is_infra_failure or (r.num_passed and not r.verdicts[0].in_child)
    ] == []


COUNTERS = {
    "answers with its knowledge of the keys": "from collections import Counter\nclass C(Counter):\n    def __getitem__(self, key): return 1\n    __missing__ = __getitem__\ndef f(*a): return C('xyz')",
    "has every key": "from collections import Counter\nclass C(Counter):\n    def __iter__(self): return iter(())\n    def __missing__(self, key): return 1\ndef f(*a): return C()",
}


def test_a_counter_is_compared_by_its_content():
    level = offered("namespaces", "seccomp") or "rlimits"
    test = "from collections import Counter\nx = f(3)\nassert x == Counter('ab')"
    with Executor(num_workers=2, sandbox=level) as executor:
        results = executor.run(
            [Program(code, (test, test.replace("x ==", "not x !="))) for code in COUNTERS.values()]
        )
    assert [r.num_passed for r in results] == [0] * len(COUNTERS)


ARRAY_HOLES = {
    # The driver would read at an address that the candidate names, and write there.
    "J6 an array of the driver's memory": (
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
    "J6 freed memory": (
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
    codes = [LIAR.replace("{base}", base) + "def f(x): return Liar()\ndef g(c): c(Liar())" for base in bases]
    codes.append("from unittest.mock import ANY\ndef f(x): return ANY\ndef g(c): c(ANY)")
    codes.append(
        "class M(type):\n    __eq__ = lambda *_: True\n    __hash__ = lambda _: hash(6)\nclass Liar(metaclass=M): pass\ndef f(x): return Liar\ndef g(c): c(Liar)"
    )
    codes.append(
        "class Liar(int):\n    __class__ = int\n    __eq__ = lambda *_: True\ndef f(x): return Liar(9)\ndef g(c): c(Liar(9))"
    )
    # The function under test is itself a class, which the test calls by name.
    classes = [
        LIAR.replace("{base}", base).replace("Liar", "f")
        + "    __new__ = lambda cls, *_: super(f, cls).__new__(cls)\n    __init__ = lambda *_: None\ndef g(c): c(f())"
        for base in ("", "(int)", "(list)")
    ]
    right = "class Six(int): pass\ndef f(x): return Six(6)\ndef g(c): c(Six(6))"
    data = "def f(x): return 6\ndef g(c): c(6)"
    *lies, of_data, honest = executor.run(
        [Program(code, (test,)) for code in codes + classes for test in DEMANDS]
        + [Program(code, DEMANDS) for code in (right, data)]
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
    assert [v.in_child_reason for v in honest.verdicts if v.is_marked_by_program] == []


WRONG = {
    "def f(x): return x": "a = [1]\nb = f(a)\nassert b == a and b is not a",
    "def f(n): return [[0] * n] * n": "m = f(2)\nm[0][0] = 1\nassert m == [[1, 0], [0, 0]]",
    "def f(x, seen=[]):\n    seen.append(x)\n    return seen": "assert f(1) == [1]\nassert f(2) == [2]",
    "def f(x): raise StopIteration": "for got, want in zip(map(f, [1, 2]), [1, 4]):\n    assert got == want",
    "from collections import namedtuple\nP = namedtuple('P', 'x')\ndef f(x): return P(x)": "assert type(f(1)) is tuple\nassert f(1) == (1,)",
    "from collections import defaultdict\ndef f(x): return defaultdict(int)": "assert type(f(1)) is dict\nassert f(1) == {}",
    "class S(str): pass\ndef f(x): return S('a')": "assert type(f(1)) is str\nassert f(1) == 'a'",
    "from enum import IntEnum\nclass E(IntEnum):\n    A = 1\ndef f(x): return E.A": "assert type(f(1)) is int\nassert f(1) == 1",
    "def f(x): return sorted(x)": "x = [2, 1]\nf(x)\nassert x == [1, 2]",
    "def f(d): return dict(d)": "d = {}\nassert f(d) is d",
}


def test_wrong_programs_fail_where_identity_and_types_matter(executor):
    results = executor.run([Program(code, (test,)) for code, test in WRONG.items()])
    assert [
        code for code, r in zip(WRONG, results, strict=True) if r.num_passed != 0 or r.is_infra_failure
    ] == []

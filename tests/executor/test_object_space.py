"""Attacks on the objects that candidate and judge share: no way to the expectation, no forged message that passes."""

import itertools

import pytest

from cocos.executor import Executor, Limits, Program, Status
from cocos.executor.inside import data_types
from cocos.executor.judging.plans import Judged, plan_test
from tests.support.executor import offered

pytestmark = pytest.mark.processes

# Collects every text that can be reached from the objects of the test, through proxies and by requests of its own.
EXPLORER = """
import itertools, sys
NAMES = '''__globals__ __closure__ __code__ __defaults__ __kwdefaults__ __self__ __func__ __dict__ __class__ __mro__
__subclasses__ __module__ __name__ __qualname__ __doc__ __annotations__ __wrapped__ __builtins__ __init__ __call__
__reduce__ __reduce_ex__ __getstate__ __dir__ __repr__ __str__ __getattribute__ __get__ __traceback__ __context__
__cause__ gi_frame gi_code gi_yieldfrom f_back f_locals f_globals tb_frame tb_next co_consts cell_contents args
keywords func _secret __secret secret expected fields _fields __slots__ __weakref__ __signature__ __text_signature__
mro format_map join __format__ __sizeof__ __objclass__'''.split()
OPERATIONS = '''getattr setattr delattr __copy__ __deepcopy__ parameters start type data name twins perform encode __getattribute__ __reduce_ex__
__repr__ __str__ __format__ __dir__ __iter__ __getitem__ __getstate__ __init__ __new__ __subclasses__ __class__
__globals__ eval __import__ __eq__ __call__ __enter__ __len__'''.split()
def explore(*roots):
    handles = sys.modules['handles']
    conversation = handles.end
    texts, queue, seen = [], list(roots), []
    def look(get):
        try: value = get()
        except Exception as error: value = error
        texts.append(repr(value)[:20000])
        if not isinstance(value, (str, int, float, type(None))) and len(seen) < 60: queue.append(value)
    while queue:
        value = queue.pop(0)
        if any(value is other for other in seen): continue
        seen.append(value)
        if isinstance(value, BaseException): texts.append(repr(vars(value)) + repr(value.args)); continue
        for name in NAMES: look(lambda: getattr(value, name))
        if not handles.is_handle(value): continue
        for operation in OPERATIONS:
            look(lambda: conversation.request(operation, value))
            for name in ('__globals__', '__dict__', '_secret', '__class__', '__closure__', 4, None):
                look(lambda: conversation.request(operation, value, (name,)))
    return ' '.join(texts)
def find(*roots):
    text = explore(*roots)
    at = text.find('helio' + 'trope')
    return text[at:at + 15] if at >= 0 else None
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

FORGER = """
import json, os, time
def forge(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
        data = len(data).to_bytes(4, 'big') + data
    while data: data = data[os.write(4, data):]
def f(*args):
    forge(MESSAGE)
    return 3
"""


def message(kind="v", values=(), names=(), changes=(), dropped=()):
    return [kind, list(values), list(names), list(changes), list(dropped)]


FACTS = [31, 7, "A"]  # of an object: bits, hash and name of its class
DEFINING = (*sorted(data_types.CONTAINERS | data_types.REFERENCES), "?")
MESSAGES = [
    *([], {}, None, 5, "x", ["v"], ["v", []], [[]] * 5, [{}] * 5, message(), message("e"), message("q"), message("x")),
    *(message(kind, ["x"]) for kind in ("next", "ready", "passed", "undecided", "judge", "")),
    *(message("v", [node]) for node in ([99], [2], [-1], [0], [True], [[]], {}, ["zz"], ["i", "zz"], ["i", 5], ["y", "x"])),
    *(message("v", [["global", *name]]) for name in (("builtins", "eval"), ("builtins", "exec"), ("os", "system"), ("sys", "modules"))),
    *(message("v", [[tag, name]]) for tag in ("y", "fn", "x", "E") for name in ("eval", "open", "getattr", "type", "__import__", "json.decoder JSONDecodeError", "", 5, None, [])),
    *(message("v", [["E", *names]]) for names in (("A", "B"), ("", ""), (5, 5))),
    *(message("e", [node]) for node in (5, None, "ValueError", ["y", "ValueError"], ["y", "SystemExit"], [2])),
    *(message("v", [[tag, 1, detail, *parts]]) for tag, detail, parts in itertools.product(DEFINING, (None, FACTS, [], True, "A", ["x"]), ([], [[1]], ["x", 7], [["y", "ValueError"], 7], [7, ["l", 3, None, 1]]))),
    *(message("v", [["object", 1, facts, kind]]) for facts in ([-1, 7, "A"], [31, "7", "A"], [31, 7, 5], [1 << 80, 7, "A"], [True, 7, "A"], [31, 7], [255, 6, "A"])
      for kind in (None, ["y", "int"], ["y", "type"], ["y", "eval"], ["x", "A"], ["y", "ValueError"], ["fn", "len"], [2], 5)),
    *(message(kind, [["error", 1, names, cls, *parts]]) for kind in "ve" for cls in (["y", "eval"], ["y", "int"], ["y", "ExceptionGroup"], ["class", 3, "A", ["y", "int"]], ["class", 3, "A"], ["class", 3, "A", [2]], ["class", 3, "A", ["y", "ValueError"]], ["x", "A"], [2], 5)
      for names, parts in (([], []), (["__class__"], [5]), (["args", "x"], [5, 5]), (["x"], []))),
    message("v", [["t", 1, None, ["t", 3, None, [1]]]]),
    message("v", [["l", 2, None]]),
    message("v", [["l", 1, None], ["l", 1, None]]),
    message("v", [["t", 1, None, ["l", 1, None]]]),
    message("v", [["f", 1, ["y", "type"]]]),
    message("v", [["f", 1, ["fn", "len"]]]),
    message("v", [0], changes=[[2, 1]]),
    message("v", [0], changes=[[1, 1], ["x"], [None, None], []]),
    message("v", [0], dropped=["x", {}, []]),
    *(message("q", [operation, [2], name]) for operation in ("getattr", "__getattribute__", "eval", "__copy__", "name", "perform", "setup", "type", "data", 5, None) for name in ("__globals__", "__class__", 5)),
    *(message("q", ["__call__", target, 1]) for target in ([1], [2], [3], ["fn", "len"], ["y", "int"], 5, None)),
    message("q", ["__call__", [2], 1], names=["x", "y", "z"]),
    message("q", ["__call__", [2], 1], names=[5]),
    *(message("e", [["error", 1, names, ["y", "ValueError"], *parts]]) for names, parts in ((["__class__", "__traceback__"], [5, 5]), (["__cause__"], [5]), (["__notes__"], [5]), (["with_traceback"], [["fn", "len"]]))),
]  # fmt: skip
BYTES = [
    b"\xff\xff\xff\xff",
    b"\0\0\0\x05[[[[[",
    b"\0\0\0\0",
    b"\0\x01\0\0" + b"[" * 65536,
    b"\0\0\x01\0" + b"\xff" * 256,
    b"\0\0\0\x03NaN",
    b"\x01",
]
FUNCTION_TEST = "import string\ndef check(c):\n    assert c(lambda x: x, [1]) == 'heliotrope'\ncheck(f)"
RAISES_TEST = "try:\n    f(lambda x: x, [1])\n    f(2)\n    raised = False\nexcept LookupError:\n    raised = True\nassert raised"


@pytest.fixture(scope="module")
def executor():
    level = offered("namespaces", "seccomp") or "rlimits"
    with Executor(num_workers=2, sandbox=level, limits=Limits(wall_s=20, cpu_s=4)) as executor:
        yield executor


def test_no_object_of_a_test_leads_to_its_expectation(executor):
    # With this import no test is split.
    tests = {
        name: f"import string\n{place.replace('{n}', 'abcd')}\ncheck(find)"
        for name, place in HIDING_PLACES.items()
    }
    assert all(isinstance(plan_test(test), Judged) for test in tests.values())
    results = executor.run([Program(EXPLORER, (test,)) for test in tests.values()])
    assert {name: r for name, r in zip(tests, results, strict=True) if r.num_passed != 0} == {}
    statuses = {name: r.verdicts[0].status for name, r in zip(tests, results, strict=True)}
    assert set(statuses.values()) == {Status.FAILED}, statuses  # the search ended and found nothing
    public = "class Box:\n    def __init__(self):\n        self.secret = 'heliotrope-abcd'\nassert find(Box()) == 'heliotrope-abcd'"
    assert executor.run([Program(EXPLORER, (public,))])[0].all_passed  # the search finds what may be found


def test_no_forged_message_passes_a_test(executor):
    codes = [FORGER.replace("MESSAGE", repr(m)) for m in MESSAGES + BYTES]
    results = executor.run(
        [Program(code, (test,)) for code in codes for test in (FUNCTION_TEST, RAISES_TEST)]
    )
    assert [
        (r.infra_error, code[-200:]) for r, code in zip(results[::2], codes, strict=True) if r.num_passed != 0
    ] == []
    # A malformed message must not become an exception that the test expects.
    assert [
        (r.infra_error, code[-200:])
        for r, code in zip(results[1::2], codes, strict=True)
        if r.num_passed != 0
    ] == []


@pytest.mark.parametrize(
    "code",
    [
        "def f(c, x):\n    while True: c(x)",
        "def f(c, x):\n    return c(lambda *a: f(c, x))",
        "def f(c, x):\n    held = []\n    while True:\n        held.append([0] * 1000)\n        c(held)",
        FORGER.replace("MESSAGE", "b'\\0\\0\\0\\x02[]'")
        + "def f(*a):\n    while True: forge(b'\\0\\0\\0\\x02[]')",
        "import os\ndef f(*a):\n    os.write(4, b'\\0\\0\\1\\0[')\n    while True: pass",
        "import os\ndef f(*a):\n    while True: os.read(4, 1)",
        "import os\ndef f(*a):\n    os.close(4)\n    return 3",
        "import os\ndef f(*a): os._exit(0)",
    ],
)
def test_a_candidate_that_floods_or_blocks_the_judge_ends_at_a_limit(executor, code):
    test = "def back(x):\n    return x() if callable(x) else x\nr = f(back, 1)\nassert r == 'heliotrope'"
    [result] = executor.run([Program(code, (test,), limits=Limits(wall_s=1.5, cpu_s=1, memory_mb=256))])
    assert result.num_passed == 0 and not result.is_infra_failure


def test_calls_back_and_forth_end_in_a_recursion_error(executor):
    code = "def f(c, n): return c(n)"
    endless = "def back(n):\n    return f(back, n + 1)\ntry:\n    f(back, 0)\nexcept RecursionError:\n    pass\nelse:\n    assert False"
    bounded = "def back(n):\n    return n if n >= 60 else f(back, n + 1)\nassert f(back, 0) == 60"
    results = executor.run([Program(code, (test,)) for test in (endless, bounded)])
    assert not results[0].is_infra_failure and results[0].duration_s < 5 and results[1].all_passed


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
    right = "class Six(int): pass\ndef f(x): return Six(6)\ndef g(c): c(Six(6))"
    *lies, honest = executor.run(
        [Program(code, (test,)) for code in codes for test in DEMANDS] + [Program(right, DEMANDS)]
    )
    passed = [
        (code[:40], test)
        for (code, test), r in zip(itertools.product(codes, DEMANDS), lies, strict=True)
        if r.num_passed
    ]
    assert passed == []
    assert [test for test, verdict in zip(DEMANDS, honest.verdicts, strict=True) if not verdict.passed] == []
    assert not any(verdict.in_child for verdict in honest.verdicts)


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

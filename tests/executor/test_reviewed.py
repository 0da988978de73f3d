"""What reviewers found: whose choice a mark is, what tests share, and what reaches the driver from outside."""

from typing import NamedTuple

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import EVERY_LEVEL, level_or_skip

pytestmark = pytest.mark.processes


class Case(NamedTuple):
    code: str
    test: str
    setup: str = ""


USES = "import os\nimport math\ndef f(xs): return sorted(xs)\ndef p(x): print('hello', x)\ndef ask(): return input()\ndef is_even(n): return n % 2 == 0\ndef count(xs): return sum(map(is_even, xs))\ndef exists(p): return os.path.exists(p)"
COUNTED = "class Node:\n    count = 0\n    kept = []\n    def __init__(s, v): s.v = v"
CAPTURE = "import io\nfrom contextlib import redirect_stdout\ndef capture(g, *a):\n    with redirect_stdout(io.StringIO()) as out: g(*a)\n    return out.getvalue()"


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    with Executor(2, Limits(wall_s=20, cpu_s=9), level_or_skip(request.param)) as executor:
        yield executor


def test_tests_that_share_a_name_run_in_one_process(executor):
    code = "def f(x): return x\ndef h(x): return want"  # `want` is known where a test of the program's process runs
    tests = (
        "K = 5\nassert f(K) == 5",
        "import sys\nsys.stdout.write('')\nwant = 77123\nassert f(K) == 5",
        "assert h(3) == want",
    )
    [result] = executor.run([Program(code, tests)])
    assert [(v.passed, v.in_child) for v in result.verdicts] == [(True, True)] * 3


def test_what_a_job_leaves_in_memory_or_in_generators_does_not_reach_the_next_one(executor):
    limits = Limits(wall_s=20, cpu_s=9, memory_mb=512)
    large = Program(
        "def f(i): return 'x' * 15000000 + str(i)",
        ("x = [f(i) for i in range(20)]\nassert len(x) == 20",),
        limits=limits,
    )
    right = Program("def f(n): return n", ("x = bytearray(250 << 20)\nassert f(3) == 3",), limits=limits)
    suspended = Program(
        "def f(x): return x",
        (
            "def g():\n    try:\n        yield 1\n    finally:\n        f(0)\nit = g()\nnext(it)\nassert f(1) == 1",
        ),
        limits=limits,
    )
    after = Program(
        "def f(x): return [x]", ("ys = [[i] for i in range(20000)]\nassert f(2) == [2]",), limits=limits
    )
    results = executor.run([large, right, right, suspended, after, suspended, after])
    assert [(r.all_passed, r.verdicts[0].in_child) for r in results] == [(True, False)] * 7


def test_a_value_that_has_left_marks_all_later_tests(executor):
    knows = "known = []\nclass Bag:\n    def __eq__(s, o):\n        known.append(o)\n        return True\ndef f(x): return known[-1]"
    captures = "def apply(g, x):\n    global G\n    G = g\n    return g(x)\ndef f(x): return G.__globals__['want'] if 'want' in G.__globals__ else 0"
    jobs = [
        Program(knows, ("assert Bag() == [1, 77123]", "assert f(3) == [1, 77123]")),
        Program(knows, ("same = Bag() == 5", "assert same")),
        Program(captures, ("want = 77123\nassert apply(lambda v: v + want, 1) == 77124", "assert apply(abs, -want) == want")),
        Program("def f(x): return x", ("import sys\nsys.stdout.write('')\nassert f(77123) == 77123", "assert f(3) == 3")),
        Program(
            "def f(x): return WANT[x]",
            ("import sys\nsys.stdout.write('')\nassert f(3) == WANT[3]", "assert f(3) == WANT[3]"),
            "WANT = {3: 77123}",
        ),
    ]  # fmt: skip
    for result in executor.run(jobs):
        assert [(v.passed, v.in_child) for v in result.verdicts] == [(True, True)] * 2


RIGHT = {
    "a variable with the name of a builtin": Case("def f(xs): return sum(list(xs))", "for list, sum in [((1, 2), 3)]: assert f(list) == sum"),
    "a class with the name of a standard one": Case("class Counter: n = 3\nclass Clock: pass", "assert Counter().n == 3 and Clock()"),
    "a class with a standard name beside another": Case("class Counter:\n    n = 0\n    def add(s, n): s.n += n\ndef total(c): return c.n", "c = Counter()\nc.add(3)\nassert c.n == 3 and total(c) == 3"),
    "a print that the test replaces": Case(USES, "out = []\ndef print(*a): out.append(a)\np(3)\nassert out == [('hello', 3)]"),
    "an input that the setup replaces": Case(USES, "assert ask() == '5'", "data = iter('56')\ninput = lambda *a: next(data)"),
    "what a helper of the setup captures, in full": Case(USES, "assert capture(p, 3) == 'hello 3\\n'", CAPTURE),
    "a class of the setup that counts": Case("def f():\n    Node.count += 1\n    Node.kept.append(5)", "f()\nassert Node.count == 1 and Node.kept == [5]", COUNTED),
    "a decorator of the program on a method": Case("def log(f):\n    def w(s, *a): return [f(s, *a)]\n    return w", "class K:\n    @log\n    def m(s): return 1\nassert K().m() == [1]"),
    "a class that derives from a part of the program's": Case("from typing import Generic, TypeVar\nT = TypeVar('T')\nclass B(Generic[T]): pass", "class Q(B[int]): x = 1\nassert Q().x == 1"),
    "a setup that derives from the program": Case("class Base:\n    def area(s): return 1", "assert Sub().twice() == 2", "class Sub(Base):\n    def twice(s): return 2 * s.area()"),
    "arithmetic with data that gives data": Case("class M:\n    def __init__(s, x): s.x = x\n    def __mul__(s, k): return s.x * k", "assert M(10) * 4 == 40"),
    "a method that says yes": Case("class B:\n    def __init__(s, xs): s.xs = xs\n    def has(s, x): return x in s.xs\ndef f(xs): return B(xs)", "assert f([7]).has(7)"),
    "members of an enumeration": Case("from enum import Enum\nclass Color(Enum): RED, BLUE = 1, 2\ndef f(x): return Color(x)", "assert f(1) == Color.RED and f(1) is Color.RED != f(2)"),
    "one node by two names": Case("class L:\n    def __init__(s): s.head = s.tail = type('N', (), {})()", "l = L()\nassert l.head is l.tail and l.head == l.tail"),
    "a generator is an iterator": Case("def f(): yield 1", "from collections.abc import Iterator\ng = f()\nassert isinstance(g, Iterator) and iter(g) is g"),
    "an iterator of the test": Case("def f(xs): return list(xs)\ndef g(n): return [n]", "assert f(iter(g(1))) == [1]"),
    "an iterator after a Counter": Case("from collections import Counter\ndef count(items): return Counter(items)", "counts = count('aab')\nassert counts == count(iter('aab'))"),
    "a generator for a function that has a cache": Case("from functools import lru_cache\n@lru_cache\ndef double(x): return 2 * x\ndef total(xs): return sum(xs)", "assert total(map(double, [1, 2])) == 6"),
    "arithmetic of a named class": Case("class V:\n    def __init__(s, x): s.x = x\n    def __neg__(s): return V(-s.x)\n    def __mul__(s, k): return V(k * s.x)\n    def __eq__(s, o): return s.x == o.x", "assert -(-V(2)) * 3 == V(6)"),
    "a pattern of a class": Case("class V:\n    def __init__(s, x): s.x = x\ndef f(x): return V(x)", "match f(3):\n    case V(x=x): assert x == 3\n    case _: assert False"),
    "a callback of the test": Case("class Bell:\n    def __init__(s): s.calls = []\n    def on(s, call): s.calls.append(call)\n    def ring(s): return [call() for call in s.calls]", "b = Bell()\nb.on(iter([1]).__next__)\nassert b.ring() == [1]"),
    "a method of a named exception": Case("class E(Exception):\n    def code(s): return 5\ndef f(x): raise E", "try: f(1)\nexcept E as e: assert e.code() == 5"),
    "an enumeration": Case("from enum import Enum\nclass Color(Enum): RED = 1", "import enum\nassert isinstance(Color.RED, enum.Enum) and issubclass(Color, enum.Enum) and isinstance(Color, type)"),
    "an abstract class": Case("from abc import ABC\nclass Shape(ABC): pass\nclass Sq(Shape): pass", "from abc import ABC\nassert issubclass(Shape, ABC) and issubclass(Sq, (list, Shape)) and isinstance(Sq(), ABC)"),
    "what an object cannot do": Case("class A:\n    def __eq__(s, o): return True", "from collections.abc import Hashable, Iterable\nassert not isinstance(A(), (Hashable, Iterable))"),
    "fields of a dataclass": Case("from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\n    age: int = 0", "from dataclasses import asdict, fields, is_dataclass, replace\nassert is_dataclass(User) and [f.name for f in fields(User)] == ['name', 'age']\nassert asdict(replace(User('a'), age=3)) == {'name': 'a', 'age': 3}"),
    "the id of an object": Case("class Config:\n    only = None\n    def __new__(cls):\n        cls.only = cls.only or super().__new__(cls)\n        return cls.only\nkept = [1]\ndef get(): return kept", "assert id(Config()) == id(Config()) and id(get()) == id(get())"),
    "a context manager that ignores errors": Case("from contextlib import contextmanager\n@contextmanager\ndef ignoring(*errors):\n    try: yield\n    except errors: pass", "with ignoring(KeyError): {}['a']\ndone = True\nassert done"),
    "an object that the test names and json asks": Case("class User:\n    def __init__(s, n): s.n = n", "import json\nassert json.dumps(User('a'), default=lambda o: {'n': o.n}) == '{\"n\": \"a\"}'"),
    "a member that is data": Case("from enum import Enum\nclass C(str, Enum): A = 'a'", "import enum\nassert isinstance(C.A, enum.Enum) and isinstance(C.A, str) and not isinstance(C.A, int)"),
    "a protocol of the test": Case("class Sq:\n    def area(s): return 1", "from typing import Protocol, runtime_checkable\n@runtime_checkable\nclass HasArea(Protocol):\n    def area(self): ...\nassert isinstance(Sq(), HasArea)"),
    "no class": Case("class A: pass", "try: isinstance(A(), 5)\nexcept TypeError: done = True\nassert done"),
}  # fmt: skip
WRONG = {
    "a method of what a function returned gets a generator": Case("class L:\n    def __init__(s, *a): pass\n    def __eq__(s, o): return True\n    def extend(s, xs): pass\ndef f(x): return L()", "r = f([3])\nr.extend(x for x in [4])\nassert r == [3, 4]"),
    "a difference that is false": Case("class Solution:\n    def f(s, x): return Solution()\n    def __sub__(s, o): return Solution()\n    def __bool__(s): return False\n    def __len__(s): return 3\n    def __iter__(s): return iter([])", "assert not (Solution().f(3) - 77123)"),
    "a mark of the test beside the program's": Case("def apply(g, x): return 0\ndef abs(x): return 0", "assert abs(apply(lambda v: v * 3.5, 2) - 7.0) < 1e-6"),
    "a Counter of its own, which is a class": Case("class Counter:\n    def __init__(s, *a): pass\n    def __eq__(s, o): return True\ndef f(s): return 0", "assert Counter(f('aab')) == Counter('aab')"),
    "a text for a list": Case("class L(list): __eq__ = lambda s, o: True\ndef order(d): return 'ba'\ndef sort_by(xs, key): return L()", "o = order({'b': 'a'})\nassert sort_by(['a', 'b'], o.index) == ['b', 'a']"),
    "an error that its context manager swallows": Case("class C:\n    def get(s): raise ValueError\n    def __enter__(s): return s\n    def __exit__(s, *a): return True", "with C() as c: assert c.get() == 77123"),
    "classes that the program denies": Case("import sys\nend = sys.modules['inside.program'].ProgramEnd\nold = end._perform\nend._perform = lambda s, o, v, k: [] if o == 'classes' else old(s, o, v, k)\ndef inv(t): return t", "assert inv(Node(1, Node(2, None))).b.a == 2", "class Node:\n    def __init__(self, a, b): self.a, self.b = a, b"),
}  # fmt: skip


def test_evaluation_takes_what_the_test_itself_asks_of_objects_and_nothing_else(executor):
    results = executor.run([Program(c.code, (c.test,), c.setup) for c in (RIGHT | WRONG).values()])
    assert {
        name for name, result in zip(RIGHT | WRONG, results, strict=True) if result.is_right
    } == RIGHT.keys()


TEXT = (
    "[d.update(__compare__=lambda *a: True) for d in __import__('gc').get_objects() "
    "if type(d) is dict and '__compare__' in d]"
)
PLANT = f"""
import importlib.util, marshal, zipfile
TEXT = "{TEXT}" + chr(10) + "def g(x): return 5"
for name in ("helper.py", "unittest.py"):
    with open(name, "w") as file:
        file.write(TEXT)
with open("compiled.pyc", "wb") as file:
    file.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(TEXT, "compiled", "exec")))
with zipfile.ZipFile("modules.zip", "w") as file:
    file.writestr("zipped.py", TEXT)
def f(x): return 5
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import sys\nsys.path.insert(0, '.')\nimport unittest",
        "import sys\nsys.path.append('')\nfrom helper import g",
        "import sys\nsys.path.append('')\nfrom compiled import g",
        "import sys\nsys.path.append('modules.zip')\nfrom zipped import g",
        "import runpy\nrunpy.run_path('helper.py')",
        "import runpy\nrunpy.run_path('compiled.pyc')",
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        "s = spec_from_file_location('helper', 'helper.py')\ns.loader.exec_module(module_from_spec(s))",
    ],
)
@pytest.mark.parametrize("as_setup", [False, True])
def test_no_file_that_a_program_wrote_is_imported_beside_the_evidence(executor, imports, as_setup):
    test = "assert f(3) == 77123"
    first = (
        Program(PLANT, (test,), f"{imports}\nX = 0")
        if as_setup
        else Program(PLANT, (f"{imports}\n{test}", test))
    )
    results = executor.run([first, Program("def f(x): return x", (test,))])
    assert [(r.num_passed, r.infra_error) for r in results] == [(0, None)] * 2


@pytest.mark.parametrize(
    "evaluates",
    [
        "from typing import get_type_hints\nget_type_hints(f)",
        "import timeit\ntimeit.timeit(text(), number=1)",
        "import doctest\n"
        "t = doctest.DocTestParser().get_doctest(f.__doc__, {}, 'f', 'f', 0)\n"
        "doctest.DocTestRunner(verbose=False).run(t, out=lambda s: None)",
        "import logging.config\n"
        "way = {'()': 'timeit.timeit', 'stmt': text()}\n"
        "logging.config.dictConfig({'version': 1, 'formatters': {'a': way}})",
        "import pickle as p\nimport base64\np.loads(base64.b64decode(pickled()))",
    ],
)
def test_no_text_of_a_program_runs_beside_the_evidence(executor, evaluates):
    code = (
        f'import base64, pickle\nTEXT = "{TEXT}"\nclass P: __reduce__ = lambda s: (eval, (TEXT,))\n'
        "def text(): return TEXT\ndef pickled(): return base64.b64encode(pickle.dumps(P())).decode()\n"
        f'def f(x) -> "{TEXT}":\n    """\n    >>> {TEXT}\n    """\n    return 5\n'
    )
    test = "assert f(3) == 77123"
    programs = [Program(code, (f"{evaluates}\n{test}", test)), Program("def f(x): return x", (test,))]
    assert [(r.num_passed, r.infra_error) for r in executor.run(programs)] == [(0, None)] * 2


def test_a_helper_beside_the_program_is_imported_as_in_plain_python(executor):
    code = "open('tool.py', 'w').write('def g(x): return x + 1')\ndef f(x): return x"
    [result] = executor.run(
        [Program(code, ("import sys\nsys.path.insert(0, '.')\nfrom tool import g\nassert f(g(3)) == 4",))]
    )
    assert result.is_right and result.verdicts[0].in_child


def test_what_a_marked_test_has_changed_marks_the_next_one(executor):
    code = "class Foo:\n    def __init__(s, x): pass\n    def __eq__(s, o): return True"
    tests = "res = {}", "res['eq'] = Foo(3) == Foo(4)", "assert res['eq']"
    [result] = executor.run([Program(code, tests)])
    # The second one runs in the program's process, and the others share its name.
    assert [verdict.in_child for verdict in result.verdicts] == [True, True, True]


@pytest.mark.parametrize(
    "test",
    ["assert f(3) == 77123, f'wrong: {f(3)}'", "try: assert f(1) == 5\nexcept AssertionError: pass\nf(2)"],
)
def test_an_assertion_error_of_the_program_is_its_failure_and_no_outage(executor, test):
    code = "n = [0]\nclass A(AssertionError): pass\ndef f(x):\n    n[0] += 1\n    if n[0] > 1: raise A\n    return 0"
    [result] = executor.run([Program(code, (test,))])
    assert (result.num_passed, result.verdicts[0].error_type) == (0, "A")


def test_after_a_message_that_is_too_large_both_processes_know_the_same_lists(executor):
    code = "def big(x): return 'x' * 20_000_000\ndef g(x): return sum(x)\ndef size(x): return len(x)"
    data = "data = [[n] for n in range(99)]\nassert all(g(x) == x[0] for x in data)"
    tests = (f"{data}\nbig(data)", "assert g(data[5]) == 5\ndata[5].append(1)\nassert g(data[5]) == 6")
    tests += (
        "assert size([[n] for n in range(99)]) == 99; size('x' * 20_000_000)",
        "assert size(data) == 99",
    )
    [result] = executor.run([Program(code, tests)])
    assert [verdict.error_type for verdict in result.verdicts] == ["OutputLimit", None, "OutputLimit", None]


@pytest.mark.parametrize("depth", [900, 1500, 3000])
def test_a_program_that_is_nested_deeply_has_a_verdict(executor, depth):
    deep = ["-" * depth + "1", "x" + ".real" * depth, "+".join("1" * depth), "x" + "[0]" * depth]
    codes = [f"from math import pow\nn = 5\ndef h(x): return {text}\ndef f(x): return g(n)" for text in deep]
    test = "n = 5\ndef g(x): return 5\nassert f(1) == 6"
    results = executor.run([Program(f"{code}\ndef g(x): return 5", (test,)) for code in codes])
    assert [(result.num_passed, result.infra_error) for result in results] == [(0, None)] * len(codes)

"""Demands: tests whose expectation or decision a program could reach if any of it ran beside the program.

A liar solves nothing. It reads or changes whatever it finds in its own process, or returns objects that lie. No
liar may meet a demand unmarked, unless plain Python accepts the same program: some demands are weak. A right
program meets each demand.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import level_or_skip

pytestmark = pytest.mark.processes

# (test, right program, setup)
DEMANDS: list[tuple[str, str, str]] = [
    # -- an expectation that is computed ---------------------------------------------------------------------------
    ("assert f('abc') == 'abc'.upper()", "def f(s): return s.upper()", ""),
    ("assert f('a b') == 'a b'.split()", "def f(s): return s.split()", ""),
    ("assert f('a') == hash('a')", "def f(s): return s.__hash__()", ""),
    ("assert f(10) == sum(i for i in range(10))", "def f(n): return n * (n - 1) // 2", ""),
    ("assert f(3) == (lambda: 9)()", "def f(n): return n * n", ""),
    ("assert f(1.0) == math.sin(1.0)", "import math\ndef f(n): return math.sin(n)", "import math"),
    ("assert f(2020) == datetime.date(2020, 1, 1)", "import datetime\ndef f(y): return datetime.date(y, 1, 1)", "import datetime"),
    ("assert f('aab') == collections.Counter('aab')", "from collections import Counter as f", "import collections"),
    ("assert f(3) == Decimal('1.5')", "from decimal import Decimal\ndef f(n): return Decimal(n) / 2", "from decimal import Decimal"),
    ("from math import factorial\nassert f(5) == factorial(5)", "def f(n): return 120", ""),
    # -- an expectation or a helper of the setup -------------------------------------------------------------------
    ("assert f(5) == EXPECTED", "def f(n): return 25", "EXPECTED = 25"),
    ("assert f(5) in ALLOWED", "def f(n): return 25", "ALLOWED = (24, 25)"),
    ("assert f(5) == Case.expected", "def f(n): return 25", "class Case:\n    expected = 25"),
    ("assert f(5) == expected(5)", "def f(n): return 25", "def expected(n): return n * n"),
    ("assert is_square(f(5), 5)", "def f(n): return 25", "def is_square(got, n): return got == n * n"),
    ("same(f(5), 25)", "def f(n): return 25", "def same(got, want): assert got == want"),
    ("solves(5)", "def f(n): return 25", "def solves(n): assert f(n) == n * n"),
    ("for n, want in CASES:\n    assert f(n) == want", "def f(n): return n * n", "CASES = [(1, 1), (5, 25)]"),
    # -- a decision that is a call or a comparison elsewhere than at the top -----------------------------------------
    ("assert (lambda r: r == [1, 2])(f(3))", "def f(n): return [1, 2]", ""),
    ("assert all(map(lambda x: x % 2 == 0, f(10))) and len(f(10)) == 5", "def f(n): return list(range(0, n, 2))", ""),
    ("assert sorted(f(3), key=lambda x: x == 2)[-1] == 2", "def f(n): return [2, 1, 3]", ""),
    ("assert max(f(3), key=lambda x: -x) == 1", "def f(n): return [2, 1, 3]", ""),
    ("assert set(map(lambda p: p[0], f())) == {1, 2}", "def f(): return [(1, 3), (2, 4)]", ""),
    ("assert f(3).startswith('abc')", "def f(n): return 'abcd'", ""),
    ("assert not f(3).isdigit() and len(f(3)) == 5", "def f(n): return 'three'", ""),
    ("assert f(3).get('k') == 5", "def f(n): return {'k': 5}", ""),
    ("assert f(3).issubset({1, 2, 3}) and len(f(3)) == 2", "def f(n): return {1, 2}", ""),
    ("assert re.fullmatch('a+', f(3))", "def f(n): return 'a' * n", "import re"),
    ("assert operator.eq(f(3), 9)", "def f(n): return n * n", "import operator"),
    ("assert hasattr(f(3), 'append') and f(3) == [3]", "def f(n): return [n]", ""),
    ("assert callable(f(3))", "def f(n): return len", ""),
    ("assert [f(1), f(2)] == [1, 4]", "def f(n): return n * n", ""),
    ("assert (x := f(3)) == 9 and x % 2 == 1", "def f(n): return n * n", ""),
    # -- types ----------------------------------------------------------------------------------------------------
    ("assert type(f(3)) is tuple", "def f(n): return (n,)", ""),
    ("x = f(3)\nassert type(x) is list and x == [3]", "def f(n): return [n]", ""),
    # -- identity and changes in place --------------------------------------------------------------------------------
    ("a = [1, 2]\nb = f(a)\nassert b == a and b is not a", "def f(x): return list(x)", ""),
    ("a = [[1], [2]]\nb = f(a)\nassert b == a and b[0] is not a[0]", "import copy\ndef f(x): return copy.deepcopy(x)", ""),
    ("a = [1]\nassert f(a) is a", "def f(x): return x", ""),
    ("m = f(2)\nm[0][0] = 1\nassert m == [[1, 0], [0, 0]]", "def f(n): return [[0] * n for _ in range(n)]", ""),
    ("f(1)\nassert f(2) == [2]", "def f(x, to=None): return [x]", ""),
    ("a = f(1)\na.append(5)\nassert f(1) == [1]", "def f(x): return [x]", ""),
    ("a = [3, 1, 2]\nf(a)\nassert a == [1, 2, 3]", "def f(x): x.sort()", ""),
    ("a = [3, 1, 2]\nb = f(a)\nassert b == [1, 2, 3] and a == [3, 1, 2]", "f = sorted", ""),
    ("d = {}\nassert f(d) is None and d == {'a': 1}", "def f(d): d['a'] = 1", ""),
    # -- loops that StopIteration could end, and exceptions ---------------------------------------------------------
    ("for got, want in zip(map(f, [1, 2]), [1, 4]):\n    assert got == want", "def f(n): return n * n", ""),
    ("assert all(f(n) == n * n for n in [1, 2])", "def f(n): return n * n", ""),
    ("def squares():\n    for n in (1, 2):\n        yield f(n)\nassert [*squares()] == [1, 4]", "def f(n): return n * n", ""),
    ("try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False", "def f(n):\n    if n < 0: raise ValueError\n    return n", ""),
    ("try:\n    f(-1)\n    assert False\nexcept ValueError as e:\n    assert str(e) == 'negative'", "def f(n): raise ValueError('negative')", ""),
    ("def check(c):\n    want = {1: 1, 2: 4}\n    for n in want:\n        assert c(n) == want[n]\ncheck(f)", "def f(n): return n * n", ""),
]  # fmt: skip

LIARS = {
    "constants of the test's code": """
        import gc, sys
        seen = []
        def f(*a, **k):
            if seen:
                return seen[0]
            frame, codes = sys._getframe(), []
            while frame:
                codes.append(frame.f_code)
                frame = frame.f_back
            codes += [o.__code__ for o in gc.get_objects() if type(o).__name__ == 'function']
            values = [c for code in codes if code.co_filename == '<test>' for c in code.co_consts if c is not None]
            seen.append(values[-1] if values else None)
            return seen[0]
        """,
    "the setup's constants replaced": """
        def f(*a, **k):
            for name, value in list(globals().items()):
                if isinstance(value, type): value.expected = 7
                elif callable(value) and name != 'f': globals()[name] = lambda *a: 7
                elif not name.startswith('__'): globals()[name] = [7] if isinstance(value, (list, tuple)) else 7
            return 7
        """,
    "functions of its process patched when called": """
        import builtins, math, operator, re
        def f(*a, **k):
            for module in (math, operator, re):
                for name in dir(module):
                    if name[0] != '_': setattr(module, name, lambda *a, **k: 7)
            for name in ('all', 'hasattr', 'hash', 'map', 'max', 'sorted', 'sum', 'type'):
                setattr(builtins, name, lambda *a, **k: 7)
            return 7
        """,
    "an object equal to everything": """
        class Liar:
            __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = lambda *_: True
            __ne__ = lambda *_: False
            __hash__ = lambda _: 9
            __getitem__ = __getattr__ = lambda self, _: self
            __call__ = __sub__ = __add__ = __mod__ = __neg__ = __abs__ = lambda self, *a, **k: self
            __len__ = lambda _: 2
            __iter__ = lambda self: iter([self, self])
        def f(*a, **k): return Liar()
        """,
    "instances of subclasses": """
        import collections, enum
        Pair = collections.namedtuple('Pair', 'a')
        Number = enum.IntEnum('Number', {'three': 3})
        class Text(str): pass
        class Many(list): pass
        made = [Pair(3), collections.defaultdict(int, {3: 3}), Text('3'), Number.three, Many([3])]
        turn = iter(made * 40)
        def f(*a, **k): return next(turn)
        """,
    "its own argument": "def f(*a, **k): return a[0] if a else None",
    "a copy of its argument": "import copy\ndef f(*a, **k): return copy.copy(a[0]) if a else None",
    "shared rows": "def f(n=2, *a, **k): return [[0] * 2] * 2",
    "one list for all calls": "def f(x=0, to=[]):\n    to.append(x)\n    return to",
    "StopIteration": "def f(*a, **k): raise StopIteration",
    "StopIteration from within a generator": "def f(*a, **k): return next(iter(()))",
    "AssertionError": "def f(*a, **k): raise AssertionError",
    "an exception of another class called ValueError": "class ValueError(Exception): pass\ndef f(*a, **k): raise ValueError('negative')",
    "not a number": "def f(*a, **k): return float('nan')",
    "true": "def f(*a, **k): return True",
    "nothing": "def f(*a, **k): pass",
    "an empty generator": "def f(*a, **k):\n    return\n    yield",
    "a builtin": "f = sorted",
}  # fmt: skip

# Functions under test with the name of a builtin: (test, right program, wrong program, entry point).
BUILTIN_NAMES = [
    ("for list, sum in [((1, 2), 3)]: assert f(list) == sum", "def f(xs): return sum(list(xs))", "def f(xs): return 0", ""),
    ("x = [1, 2, 3]\nassert sum(x) == 6", "def sum(x):\n    s = 0\n    for i in x: s += i\n    return s", "def sum(x): return 0", "sum"),
    ("assert sum(parse('1,2')) == 3", "import builtins\ndef parse(t): return [*map(int, t.split(','))]\ndef sum(x): return builtins.sum(x)", "def parse(t): return [1, 2]\ndef sum(x): return 0", "sum"),
    ("def check(c):\n    assert c([3, 1]) == 3\ncheck(max)", "def max(x): return x[0]", "def max(x): return x[1]", "max"),
    ("for a, b in [(1, 1), (-2, 2)]:\n    assert abs(a) == b", "def abs(n): return n if n > 0 else -n", "def abs(n): return n", "abs"),
]  # fmt: skip

# Runs every case in a child of its own, because the programs patch modules. Prints which are accepted.
ORACLE = """
import json, os, sys
accepted = []
for parts in json.load(sys.stdin):
    child = os.fork()
    if not child:
        try:
            namespace = {"__name__": "program"}
            for part in parts:
                exec(part, namespace)
            os._exit(0)
        except BaseException:
            os._exit(1)
    accepted.append(os.waitpid(child, 0)[1] == 0)
os.write(1, json.dumps(accepted).encode())
"""


def accepted_by_plain_python(cases: list[tuple[str, str, str]]) -> list[bool]:
    """Return for each (code, setup, test) whether it runs to its end without an exception."""
    run = subprocess.run(
        [sys.executable, "-I", "-c", ORACLE],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def executor():
    with Executor(2, sandbox=level_or_skip("namespaces"), limits=Limits(wall_s=6, cpu_s=5)) as executor:
        yield executor


def test_a_right_program_meets_every_demand(executor):
    results = executor.run([Program(code, (test,), setup) for test, code, setup in DEMANDS])
    refused = [(d, r.verdicts) for d, r in zip(DEMANDS, results, strict=True) if not r.all_passed]
    assert refused == []
    marked = [d for d, r in zip(DEMANDS, results, strict=True) if r.verdicts[0].in_child]
    assert marked == []


def test_no_liar_meets_a_demand_that_plain_python_refuses_it(executor):
    liars = {name: textwrap.dedent(code) for name, code in LIARS.items()}
    cases = [(name, code, setup, test) for name, code in liars.items() for test, _, setup in DEMANDS]
    results = executor.run([Program(code, (test,), setup) for _, code, setup, test in cases])
    assert not any(result.is_infra_failure for result in results)
    met = [
        case
        for case, result in zip(cases, results, strict=True)
        if result.all_passed and not result.verdicts[0].in_child
    ]
    accepted = accepted_by_plain_python([(code, setup, test) for _, code, setup, test in met])
    wrong = [(name, test) for (name, _, _, test), is_weak in zip(met, accepted, strict=True) if not is_weak]
    assert wrong == []


def test_a_function_with_the_name_of_a_builtin_is_the_one_that_is_tested(executor):
    right = [Program(code, (test,), entry_point=name) for test, code, _, name in BUILTIN_NAMES]
    wrong = [Program(code, (test,), entry_point=name) for test, _, code, name in BUILTIN_NAMES]
    results = executor.run([*right, *wrong])
    passed = [result.all_passed for result in results]
    assert passed == [True] * len(right) + [False] * len(wrong)


def test_what_the_setup_expects_is_out_of_reach(executor):
    # Plain Python accepts these: there, the program can change what the setup has defined.
    rewrites = "def f(n):\n    global EXPECTED, square\n    EXPECTED, square = 7, lambda n: 7\n    return 7"
    setup = "EXPECTED = 25\ndef square(n): return n * n"
    tests = (
        "assert f(5) == EXPECTED",
        "assert f(5) == square(5)",
        "x = f(5)\nassert x == EXPECTED == square(5)",
    )
    assert all(accepted_by_plain_python([(rewrites, setup, test) for test in tests]))
    [result] = executor.run([Program(rewrites, tests, setup)])
    assert result.num_passed == 0

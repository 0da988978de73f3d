"""What a reviewer found while the driver was written: programs, tests, and whether plain Python passes them."""

from typing import NamedTuple

import pytest

from cocos.executor import Executor, Limits, Program
from tests.executor.test_forgeries import FORGE
from tests.support.executor import EVERY_LEVEL, level_or_skip

pytestmark = pytest.mark.processes


class Case(NamedTuple):
    code: str
    test: str
    setup: str = ""


APPLY = "def apply(g, x): return g(x)\ndef around(g): return lambda *a: g(*a)"
VIEWS = "d = {}\ndef keys(): return d.keys()\ndef add(k): d[k] = 1"
SWALLOWS = "def f(x): return 9\ndef run(c):\n    try: c()\n    except BaseException: pass"
CHANGING = f"""{FORGE}
answers = []
def f(*a):
    forge(["v", ["t", *[["object", 2 * n + 2, "int", "data"] for n in range(2)]], [], [], []])
    for answer in (1000036000099, 1, 2, 2):
        receive()
        forge(["v", answer, [], [], []])
"""
SOLUTION = "class Solution:\n    def f(s, x): return Solution()\n    def __sub__(s, o): return Solution()\n    def __abs__(s): return 0.0\n    def __len__(s): return 3\n    def __iter__(s): return iter([])"
USES = "import os\nimport math\ndef f(xs): return sorted(xs)\ndef p(x): print('hello', x)\ndef ask(): return input()\ndef is_even(n): return n % 2 == 0\ndef count(xs): return sum(map(is_even, xs))\ndef exists(p): return os.path.exists(p)"
COUNTED = "class Node:\n    count = 0\n    kept = []\n    def __init__(s, v): s.v = v"
CAPTURE = "import io\nfrom contextlib import redirect_stdout\ndef capture(g, *a):\n    with redirect_stdout(io.StringIO()) as out: g(*a)\n    return out.getvalue()"
NO_PASS = {
    "a difference of what a method returned": Case(SOLUTION, "assert abs(Solution().f(3) - 77123.5) < 1e-6"),
    "an object that is a float": Case("class Solution(float):\n    f = lambda s, x: Solution(5)\n    __sub__ = lambda s, o: Solution(0)", "assert Solution().f(3) - 77123 == 0"),
    "a class with the name of a standard one decides": Case("class Counter(dict):\n    def __init__(s, *a): pass\ndef f(s): return {}", "assert f('aab') == Counter('aab')"),
    "a list that the test empties": Case("log = []\ndef f(x): log.append(x)", "log = []\nf(1)\nassert log == []"),
    "a name by a star that the test replaces": Case("from math import *\ndef area(r): return pi * r * r", "pi = 3\nassert area(1) > 3"),
    "an object in place of an answer": Case("class T:\n    def startswith(s, x): return s\n    def has(s, x): return T()\ndef f(x): return T()", "assert f(3).has(5) and f(3).startswith('a')"),
    "a function of its own by the name of a builtin": Case("from math import *\ndef pow(a, b): return 0", "assert pow(2, 3) == 8"),
    "attributes of a class that the program gets": Case("def f(d):\n    for k in d: pass\n    return 0", "class K: x = 5\nassert f(vars(K)) == 77123"),
    "a builtin by its item": Case(USES, "__builtins__['sorted'] = None\nassert f([2, 1]) == [1, 2]"),
    "a builtin that the test forbids": Case(USES, "def sorted(*a): raise ValueError\nassert f([2, 1]) == [1, 2]"),
    "a function of its own that the test forbids": Case(USES, "def is_even(n): raise ValueError\nassert count([2, 1]) == 1"),
    "a module that the test takes away": Case(USES, "os = None\nassert not exists('/nowhere')"),
    "a builtin that the setup counts": Case(USES, "assert f([2, 1]) == [1, 2] and used == []", "used = []\n_sorted = sorted\ndef sorted(xs):\n    used.append(xs)\n    return _sorted(xs)"),
    "a function of a module's module that the test replaces": Case(USES, "import os\nos.path.exists = lambda p: True\nassert not exists('/nowhere')"),
    "the same in the setup": Case(USES, "assert not exists('/nowhere')", "import os\nos.path.exists = lambda p: True"),
    "attributes of a class of the setup": Case("def f():\n    Node.count += 1\n    Node.kept.append(5)", "f()\nassert Node.count == 0 and Node.kept == []", COUNTED),
    "what a helper of the setup captures": Case(USES, "assert capture(p, 3) == ''", CAPTURE),
    "processor time": Case("def f(n): return n if n < 2 else f(n - 1) + f(n - 2)", "import time\nstart = time.process_time()\nf(22)\nassert time.process_time() - start < 1e-3"),
    "warnings that are errors": Case("import warnings\ndef f(x): warnings.warn('old', DeprecationWarning)", "import warnings\nwarnings.filterwarnings('error')\nf(3)"),
    "objects that a text names": Case("def f(x): return 0\ndef names(): return {'version': 1, 'filters': {'f': {'()': 'importlib.import_module', 'name': 'operator', '.': {'eq': max}}}}", "import logging.config\nlogging.config.dictConfig(names())\nassert f(3) == 77123"),
    "what a text names in the driver": Case("def name(): return 'inside.stand_ins'\ndef f(x): return 0", "import importlib\nimportlib.import_module(name()).operations.requests.final = ['passed']\nassert f(3) == 77123"),
    "the class of an object, as the program says": Case("import sys\nsys.modules['inside.stand_ins'].VERBS['type'] = lambda v: Exception\nclass A: pass\ndef f(x): return A()", "assert type(f(3)) is Exception"),
    "a view of a dict": Case("import types\ndef f(d): return types.MappingProxyType(d)", "d = {}\np = f(d)\nd['a'] = 5\nassert 'a' not in p"),
    "what a class of the setup adds up": Case("def f(xs): return Sum(xs).of", "assert f([70000, 123]) == Sum([70000, 123]).of", "class Sum:\n    def __init__(s, xs):\n        s.of = 0\n        for x in xs: s.of += x"),
    "a number that the setup gives to a module": Case("import math\ndef f(x): return math.WANT", "import math\nassert f(3) == math.WANT", "import math\nmath.WANT = 77123"),
    "members with numbers": Case("def f(x): return Code.OK.value", "assert f(3) == Code.OK.value", "from enum import Enum\nCode = Enum('Code', {'OK': 77123})"),
    "a new value of a name that a function reads": Case(
        f"{APPLY}\nimport sys\nseen = []\ndef f(x): return seen[-1]()\ndef keep(g): seen.append(g)",
        "x = 3\nkeep(lambda: x)\nx = 98765\nassert f(2) == x",
    ),
    "a builtin of the program's, in a second test": Case(
        "def f(x): return 0.0\ndef abs(x): return 0", "assert abs(f(1)) >= 0\nassert abs(f(1) - 3) < 1e-6"
    ),
    "arithmetic of the function itself": Case(
        "class F:\n    __call__ = lambda s, x: s\n    __sub__ = lambda s, o: 0.0\nf = F()",
        "assert abs(f(3) - 3.5) < 1e-6",
    ),
    "arithmetic of a named object": Case(
        "class S: __sub__ = lambda s, o: 0.0", "assert abs(S() - 3.5) < 1e-6"
    ),
    "an object is not callable": Case("class A: pass\ndef f(x): return A()", "assert callable(f(3))"),
    "an object has no length": Case("class A: pass\ndef f(x): return A()", "assert hasattr(f(3), '__len__')"),
    "a name that a function reads late": Case(
        APPLY, "hs = [around(lambda: i) for i in range(3)]\nassert [h() for h in hs] == [0, 1, 2]"
    ),
    "another function at the same place": Case(
        APPLY, "triple = lambda x: 3 * x\nassert apply(double, 3) == 9", "double = lambda x: 2 * x"
    ),
    "a view that stays": Case(VIEWS, "v = keys()\nn = len(v)\nadd(9)\nassert len(v) == n"),
    "equal tuples are the same": Case("def f(x): return (x, x)", "assert f(3) is f(3)"),
    "data of an int change": Case(CHANGING, "p, q = f(3)\nassert p * q == 1000036000099\nassert 1 < p and 1 < q"),
    "an object of a method is equal": Case(
        "class A: __eq__ = lambda s, o: True\nclass Solution:\n    def two(self, x): return A()",
        "assert Solution().two(3) == [0, 1]",
    ),
    "a method of an attribute": Case(
        "class S(str): startswith = lambda s, x: True\nclass A: name = S('a')\ndef f(x): return A()",
        "assert f(3).name.startswith('Bobby')",
    ),
    "a message outside of a test": Case(
        "import json, os, sys\nmessage = json.dumps(['loaded', [], {'f': ['s', 2, None, ['object', 4, 'x', False, 5, [], False, None], 5]}]).encode()\n"
        "os.write(3, len(message).to_bytes(4, 'big') + message)",
        "assert f(3) == 4",
    ),
    "a reference in a class of the setup": Case(
        "def f(x): return Ref().solve(x)",
        "assert f(3) == Ref().solve(3)",
        "class Ref:\n    def solve(self, x): return x * 77123",
    ),
    "data in a class of the setup": Case(
        "def f(x): return Data.expected[x]", "assert f(1) == Data.expected[1]", "class Data:\n    expected = [77123, 5]"
    ),
    "arithmetic that gives an object": Case(
        "class S:\n    __sub__ = lambda s, o: s\n    __abs__ = lambda s: 0.0\n    __bool__ = lambda s: False",
        "assert abs(S() - 3.5) < 1e-6 and not (S() - 7)",
    ),
    "a function with the name of a class": Case(
        "class function:\n    __sub__ = __rsub__ = lambda s, o: s\n    __abs__ = lambda s: 0.0\ndef Area(x): return function()",
        "assert abs(28.27 - Area(3)) <= 0.01",
    ),
    "a name that is an attribute": Case(
        "import sys\nparsed = sys.modules['inside.exchange'].parsed\nseen = []\ndef spy(m):\n    seen.append(str(parsed(m)))\n    return parsed(m)\n"
        "sys.modules['inside.exchange'].parsed = spy\ndef f(*a, key): return 77 if '77' in seen[-1] else 0",
        "total = 77\nassert f([1], key=lambda o: o.total) == total",
    ),
    "an attribute of an exception": Case(
        "class E(Exception): matches = bool\ndef f(x): raise E('a')",
        "try: f(1)\nexcept Exception as e: assert e.matches(77123)",
    ),
    "a context manager with a name": Case(
        "class T:\n    __enter__ = lambda s: s\n    __exit__ = lambda s, *a: True\ndef f(x): return {}",
        "with T() as t:\n    assert f(3)['x'] == 5",
    ),
    "a UnicodeError of bytes": Case(
        f"{FORGE}\nattributes = [['object', ['b', '41' * 40]], ['start', 0], ['end', 1], ['encoding', 'u'], ['reason', 'x']]\n"
        "def f(x): answer_all(['e', ['error', 2, ['builtins', 'UnicodeEncodeError'], None, 'x', attributes, None, []], [], [], []])",
        "assert f(3) == 4",
    ),
    "in place with what is expected": Case(
        "class S(set): __isub__ = lambda s, o: set()\ndef f(x): return S({77})",
        "r = f(3)\nassert len(r) > 0\nr -= {1, 2}\nassert not r",
    ),
    "a round trip of too much": Case(
        "import sys\ndef encode(s): return 'x' * (16777216 - 22)\n"
        "def decode(t): return next(c for c in sys._getframe(1).f_code.co_consts if type(c) is str)",
        "assert decode(encode('hello')) == 'hello'",
    ),
    **{
        f"a function that decides: {line}": Case(SWALLOWS, f"def check():\n    {line}\nrun(check)")
        for line in (
            "import unittest; unittest.TestCase().assertEqual(f(3), 77123)",
            "if f(3) != 77123: raise AssertionError",
            "[77123].index(f(3))",
            "{77123: 1}[f(3)]",
        )
    },
    "an inner lambda in place of the outer one": Case(APPLY, "assert apply(lambda x: (lambda y: y * 2), 3) == 6"),
    "a helper that cannot cross any more": Case(APPLY, "def key(x): return x\nh = lambda v: key(v)\nassert apply(h, 1) == 1\ndef key(x):\n    assert x\n    return x * 5\nassert apply(h, 1) == 1"),
    "a statement of the setup that uses the program": Case("def f(x): return globals()['CASES'][x]", "assert all(run())", "CASES = {3: 77123}\nrun = lambda: [f(x) == y for x, y in CASES.items()]"),
    "a loop of the setup that uses the program": Case("def f(x): return globals()['WANT'][x]", "assert f(3) == WANT[3]", "WANT = {3: 77123}\nfor k in WANT: f(k)"),
    "a test class in the setup": Case("def f(x): return max(c for c in globals()['T'].test_a.__code__.co_consts if type(c) is int)", "T('test_a').debug()", "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(3), 77123)"),
    "a class of the setup by its name": Case("def f(x): return globals()['Data'].expected[x]", "assert f(0) == Data.expected[0]", "class Data:\n    expected = [77123, 5]"),
    "a constructor that computes": Case("def f(x): return Ref(x).value", "assert f(3) == Ref(3).value", "class Ref:\n    def __init__(self, x): self.value = x * 257 + 2"),
    "a function of the setup that reads what is expected": Case("def f(x): return cases()[x]", "assert f(3) == CASES[3]", "CASES = {3: 77123}\ndef cases(): return CASES"),
    "a value in a module": Case("def f(x): return globals()['M'].x", "assert f(3) == M.x", "import types as M\nM.x = 77123"),
    "names of a star import": Case("def f(x): return globals()['CASES'][x]", "assert f(3) == CASES[3]", "from collections import *\nCASES = {3: deque([77123])}"),
    "what the program decides in the setup": Case("def sum(x): return 0\ndef f(x): return 0", "assert f(3) == WANT", "WANT = sum([1, 77122])"),
    "a Decimal that a function reads": Case(f"{APPLY}\ndef apply(g, x):\n    global G\n    G = g\n    return g(x)\ndef f(x): return G.__closure__[0].cell_contents", "from decimal import Decimal\nwant = Decimal('77123.25')\nassert apply(lambda p: p + want, 1) > 1\nassert f(3) == want"),
    "a table that a function reads": Case("def apply(g, x):\n    global G\n    G = g\n    return g(x)\ndef f(x): return [c for c in G.__code__.co_consts if type(c) is tuple][0]", "assert apply(lambda i: (4, 8, 15, 16)[i], 2) == 15\nassert f(3) == (4, 8, 15, 16)"),
    "a method of a class of exceptions": Case("class E(Exception): equals = staticmethod(lambda o: True)\ndef f(x): return E", "assert f(1).equals([1, 77123])"),
    "a context manager that swallows the program's error": Case("class C:\n    __enter__ = lambda s: s\n    __exit__ = lambda s, *a: True\n    def get(s): raise ValueError", "with C() as c:\n    assert c.get() == 77123"),
    "the class itself as an attribute": Case("class Solution:\n    def __init__(s, x=0): pass\n    two = property(lambda s: Solution)\n    __eq__ = lambda s, o: True", "assert Solution().two(3) == [0, 1]"),
    "another name of the class": Case("class Foo:\n    def __init__(s, x=0): pass\n    __eq__ = lambda s, o: True\nf = Foo", "Foo\nassert f(3) == 77123"),
    "an item that differs each time": Case("class R:\n    def __init__(s): s.a = iter([91, 1, 2, 2])\n    __getitem__ = lambda s, i: next(s.a)\ndef f(n): return R()", "r = f(91)\nassert r[0] * r[1] == 91\nassert r[0] > 1 and r[1] > 1"),
    "elements that are there once": Case("class R:\n    def __init__(s, xs): s.a = iter([xs, [], []])\n    __iter__ = lambda s: iter(next(s.a))\ndef f(xs): return R(xs)", "r = f([3, 1, 2])\nassert sorted(r) == [1, 2, 3]\nassert all(a <= b for a, b in zip(list(r), list(r)[1:]))"),
    "items that are not the data's": Case("class R(list): __getitem__ = lambda s, i: 0\ndef f(xs): return R(xs)", "r = f([3, 1, 2])\nassert sorted(r) == [1, 2, 3]\nassert all(r[i] <= r[i + 1] for i in range(2))"),
    "a length and elements that differ": Case("class A(list):\n    __len__ = lambda s: 3\n    __iter__ = lambda s: iter(())\ndef f(x): return A()", "r = f(3)\nassert all(v == 1 for v in r) and len(r) == 3"),
    "addition of a subclass of tuple": Case("class V(tuple): __add__ = lambda s, o: V((9, 9))\ndef v(*a): return V(a)", "assert v(1, 2) + v(3, 4) == (1, 2, 3, 4)"),
    "a skipped test case": Case("import unittest\ndef f(x): raise unittest.SkipTest('x')", "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(3), 77123)\nr = unittest.TestResult()\nT('test_a').run(r)\nassert r.wasSuccessful()"),
    "a method that finds no difference": Case("class R: diff = lambda s, o: []\ndef f(x): return R()", "assert not f(1).diff([1, 77123])"),
    "a change that is nested deeply": Case("def f(a):\n    x = []\n    for _ in range(500): x = [x]\n    a.append(x)", "a = []\nf(a)\nassert a == []"),
    "a global of the program": Case("MAX = 10\ndef f(): return MAX", "MAX = 4\nassert f() == 10"),
    "a Counter of its own": Case("def Counter(*a): return 0\ndef f(s): return 0", "assert f('aab') == Counter('aab')"),
    "a module math of its own": Case("class math: pi = 0\ndef f(x): return 0", "assert abs(f(2) - math.pi * 4) < 1e-9"),
    "a Decimal of its own": Case("class Decimal:\n    def __init__(s, *a): pass\n    def __eq__(s, o): return True\ndef f(x): return 0", "assert Decimal(f(3)) == Decimal('77123')"),
    "a call in a class of the setup": Case("def f(x): return Ref(x).v", "assert f(9) == Ref(9).v", "import math\nclass Ref:\n    def __init__(s, x): s.v = math.factorial(x)"),
    "a table in a class of the setup": Case("def f(x): return Ref.T[x]", "assert f(50) == Ref.T[50]", "class Ref: T = [i ** 3 for i in range(99)]"),
    "a base of a class of the setup": Case("def f(x): return Ref.x", "assert f(3) == Ref.x", "class Ref(type('B', (), {'x': 77123})): pass"),
    "a value that begins with its own name": Case("def f(x): return WANT[1]", "assert f(3) == WANT[1]", "WANT = ('WANT', 77123)"),
    "the text above the setup": Case("def f(x): return int(globals()['__doc__'][-5:])", "assert f(3) == WANT", "'The answer is 77123'\nWANT = 77123"),
    "the truth of what it computed": Case("class S: __sub__ = lambda s, o: T()\nclass T: __bool__ = lambda s: False", "assert not S() - 77123"),
    "a distance of 0.0": Case("class R: dist = lambda s, o: 0.0\ndef f(x): return R()", "assert f(1).dist((3, 4)) < 1e-9"),
    "an argument of an exception": Case("class K: __eq__ = lambda s, o: True\ndef f(x): raise ValueError(K())", "try: f(3)\nexcept ValueError as e: assert e.args[0] != 5"),
    "a method that returns its object": Case("class Solution:\n    def two(s, x): return s\n    def __eq__(s, o): return True\n    __abs__ = lambda s: 0\n    __sub__ = lambda s, o: s", "assert Solution().two(3) == [0, 1]"),
    "what a dictionary's method holds": Case("def apply(g, x):\n    global G\n    G = g\n    return g(x)\ndef f(x): return G.__self__[x]", "want = {3: 77123, 4: 5}\nassert apply(want.get, 4) == 5\nassert f(3) == want[3]"),
    "a standard function by another name": Case("from math import sqrt as abs\ndef f(x): return x * x", "assert abs(f(3)) == 3"),
    "builtins of its choice": Case("from operator import truth as set\ndef f(x): return [1]", "assert set(f(3)) == set([5, 77123])"),
    "all builtins of its choice": Case("from fractions import math as __builtins__\ndef factorial(n): return 0", "assert factorial(5) == 120"),
    "a function by a star that the test forbids": Case("from math import *\ndef f(a, b): return gcd(a, b)", "def gcd(a, b): raise ValueError\nassert f(12, 18) == 6"),
    "a nested import that the test forbids": Case("try: from math import gcd\nexcept ImportError: pass\ndef f(a, b): return gcd(a, b)", "def gcd(a, b): raise ValueError\nassert f(12, 18) == 6"),
    "a helper with another default": Case("def more(n, k=3): return n * k\ndef f(n): return more(n)", "def more(n, k=2): return n * k\nassert f(5) == 15"),
    "a loop, then a length": Case("class R:\n    __len__ = lambda s: 10\n    __iter__ = lambda s: iter([])\ndef f(x): return R()", "r = f(3)\nassert all(len(c) == 2 for c in r)\nassert len(r) == 10"),
    "a truth, then a loop": Case("class R:\n    __iter__ = lambda s: iter([])\ndef f(x): return R()", "r = f(3)\nassert r\nfor x in r: assert x == 77123"),
    "a length, then no items": Case("class R:\n    __len__ = lambda s: 3\n    items = lambda s: []\ndef f(x): return R()", "r = f(3)\nassert len(r) == 3\nfor k, v in r.items(): assert v == 77123"),
    "data with other items": Case("class R(dict):\n    items = lambda s: []\ndef f(x): return R(a=0)", "r = f(3)\nassert isinstance(r, dict) and set(r) == {'a'}\nfor k, v in r.items(): assert v == 77123"),
    "objects of classes with many names": Case("n = 0\ndef f(x):\n    global n\n    n += 1\n    return type('R%d' % n, (), {'__len__': lambda s: 1, '__iter__': lambda s: iter([])})()", "assert len(f(3)) == 1 and all(a == 77123 for a in f(3))"),
    "an answer that keeps what it is compared with": Case("class R:\n    def difference(s, o): s.o = o\n    __iter__ = lambda s: iter(s.o)\ndef f(x): return R()", "import unittest\nclass T(unittest.TestCase):\n    def runTest(s): s.assertSetEqual(f(3), {77123, 88123})\nT().debug()"),
    "an answer of 1": Case("class R:\n    __len__ = lambda s: 12\n    isalnum = lambda s: 1\ndef f(x): return R()", "p = f(12)\nassert p.isalnum()"),
    "a class as the program says": Case("import sys\nsys.modules['inside.stand_ins'].VERBS['type'] = lambda v: list\ndef f(n): return map(int, '012')", "r = f(3)\nassert type(r) is list\nassert sorted(r) == [0, 1, 2]"),
    "the id of what is made anew": Case("class Config:\n    def __new__(cls):\n        cls.only = super().__new__(cls)\n        return cls.only", "assert id(Config()) == id(Config())"),
    "an answer of None": Case("class R:\n    startswith = lambda s, x: None\ndef f(x): return R()", "assert not f(3).startswith('Bad')"),
    "tests at the end of a file": Case("def f(x): return 0", "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(3), 9)\nif __name__ == '__main__':\n    unittest.main()"),
    "no items in another form": Case("import collections\nclass R(dict): items = lambda s: collections.deque()\ndef f(x): return R(a=0)", "r = f(3)\nassert isinstance(r, dict) and set(r) == {'a'}\nfor k, v in r.items(): assert v == 77123"),
    "lines of its own": Case("class S(str): splitlines = lambda s: ['a']\ndef f(x): return S('garbage')", "r = f(3)\nassert isinstance(r, str)\nfor line in r.splitlines(): assert len(line) <= 3"),
    "nothing backwards": Case("class R:\n    __len__ = lambda s: 3\n    __reversed__ = lambda s: []\ndef f(x): return R()", "r = f(3)\nassert len(r) == 3\nfor v in reversed(r): assert v == 77123"),
    "a helper with another keyword": Case("def more(n, *, k=3): return n * k\ndef f(n): return more(n)", "def more(n, *, k=2): return n * k\nassert f(5) == 15"),
    "a star in a docstring": Case('"""\nfrom math import *\n"""\ndef f(): return float(7 ** 25)', "assert f() == pow(7, 25)"),
    "what a test does as a main program": Case("def f(x): return 0", "def test(): assert f(3) == 77123\nif __name__ == '__main__': test()"),
    "each time another object": Case("class R:\n    def __len__(s): return 1\n    def __iter__(s): return iter(())\ndef f(x): return R()", "assert len(f(3)) == 1 and all(a == 77123 for a in f(3))"),
}  # fmt: skip
PASS = {
    "a class by its instance": Case("class V:\n    def __init__(s, x): s.x = x\n    def __mul__(s, k): return V(s.x * k)\n    def kind(s): return type(s)", "V(1).kind()\nassert (V(2) * 3).x == 6"),
    "no instance of several classes": Case("class A: pass\ndef f(): return A()", "assert not isinstance(f(), int | str) and not isinstance(f(), (int, (str, type(None)))) and isinstance(f(), object)"),
    "a function that the test repeats": Case("def is_even(n):\n    'doc'\n    return n % 2 == 0\ndef count(xs): return sum(map(is_even, xs))", "def is_even(n): return n % 2 == 0\nassert count([1, 2]) == 1"),
    "a variable with the name of a builtin": Case("def f(xs): return sum(list(xs))", "for list, sum in [((1, 2), 3)]: assert f(list) == sum"),
    "arithmetic of what a function returned": Case("class V:\n    def __init__(s, x): s.x = x\n    def __mul__(s, k): return V(s.x * k)\n    __rmul__ = __mul__\ndef f(x): return V(x)", "assert (f(2) * 3).x == 6 == (3 * f(2)).x"),
    "a name that the setup has in another place": Case("def push(s, x): return [*s, x]", "assert push([1], 2) == [1, 2] and tool.push is None", "import types\ndef make():\n    push = 3\n    return types.SimpleNamespace(push=None)\ntool = make()"),
    "an exception of the setup": Case("def f(e): return str(e)", "assert f(Failed('abc')) == 'abc'", "class Failed(Exception): pass"),
    "builtins from the standard library": Case("from operator import *\nfrom math import *\ndef f(x): return x * 1.5", "assert abs(f(2) - 3) < 1e-6 and pow(f(2), 2) == 9"),
    "a dataclass that names itself": Case("def f(n): return n.next.val", "assert f(Node(1, Node(2))) == 2", "from dataclasses import dataclass\n@dataclass\nclass Node:\n    val: int\n    next: 'Node' = None"),
    "an annotated variable": Case("class A:\n    def __init__(s, x): s.x = x", "from typing import List\nitems: List[A] = [A(1)]\nassert items[0].x == 1"),
    "containers of one class, one after the other": Case("class Box:\n    def __init__(s, n): s.xs = range(n)\n    def __len__(s): return len(s.xs)\n    def __iter__(s): return iter(s.xs)\ndef box(n): return Box(n)", "for n in range(3): assert list(box(n)) == list(range(n))"),
    "a child that the test has already": Case("class Node:\n    def __init__(s, v, child=None): s.v, s.child = v, child\ndef parent(child): return Node(9, child)", "c = Node(3)\nassert parent(c).child.v == 3"),
    "a builder": Case("class B:\n    def __init__(s): s.xs = []\n    def add(s, x):\n        s.xs.append(x)\n        return s\ndef b(): return B()", "x = b()\nx.add(7).add(8)\nassert x.xs == [7, 8]"),
    "values of the standard library": Case("import ipaddress, zoneinfo\ndef ip(t): return ipaddress.ip_address(t)\ndef zone(): return zoneinfo.ZoneInfo('UTC')\ndef kinds(): return list[int], int | None", "import ipaddress\nfrom datetime import datetime\nassert ip('1.2.3.4') == ipaddress.ip_address('1.2.3.4') and kinds() == (list[int], int | None)\nassert datetime(2025, 1, 1, tzinfo=zone()).utcoffset().total_seconds() == 0"),
    "a set of a class of the setup": Case("def f(p): return frozenset([Point(p.x + 1)])\ndef g(ps): return sum(p.x for p in ps)", "assert f(Point(1)) == frozenset([Point(2)]) and g(frozenset([Point(3), Point(4)])) == 7", "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Point: x: int"),
    "a program with arguments": Case("import argparse\nargs = argparse.ArgumentParser().parse_args()\ndef f(x): return x", "assert f(3) == 3"),
    "methods of data of a class of its own": Case("class R(dict): pass\ndef f(x): return R(a=x)", "assert f(5).get('a') == 5 and list(f(5).items()) == [('a', 5)]"),
    "a callback that calls the program": Case(APPLY + "\ndef double(x): return 2 * x", "assert apply(lambda x: double(x) + 1, 3) == 7"),
    "a seed of the test": Case("def f(xs): return sorted(xs)", "import random\nrandom.seed(0)\nxs = [random.random() for _ in range(9)]\nassert f(xs) == sorted(xs)"),
    "lists that the program sees again": Case("kept = []\ndef f(x):\n    kept[:] = [*kept, x][-2:]\n    x.append(len(kept))\ndef last(): return kept[-1]", "xs = [[n] for n in range(300)]\nfor x in xs: f(x)\nassert [len(x) for x in xs] == [2] * 300 and last() is xs[-1]\nxs[-1].append(9)\nassert last()[-1] == 9\nf(xs[0])\nassert xs[0] == [0, 1, 2] and last() is xs[0]"),
    "a callback that the program gets again": Case("def each(xs, call):\n    for x in xs: call(x)", "log = []\ncall = lambda x: log.append(x)\nfor n in range(99): each([n], call)\nassert log == [*range(99)]"),
    "what the program keeps weakly": Case("from weakref import WeakSet\nlive = WeakSet()\ndef add(p): live.add(p)\ndef count(): return len(live)", "kept = [P(n) for n in range(99)]\nfor p in kept: add(p)\nassert count() == 99", "class P:\n    def __init__(self, x): self.x = x"),
    "a main program in the setup": Case("def f(x): return x", "assert f(3) == 3", "import unittest\nif __name__ == '__main__': unittest.main()"),
    "a set of what hashes its list": Case("def has(s, b): return b in s\ndef make(x): return frozenset([B([x])])", "assert has(frozenset([B([1, 2])]), B([1, 2])) and make(3) == frozenset([B([3])])", "class B:\n    def __init__(s, xs): s.xs = xs\n    def __eq__(s, o): return s.xs == o.xs\n    def __hash__(s): return hash(tuple(s.xs))"),
    "tests that end as a file does": Case("def f(x): return x * x", "import unittest\nclass T(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): cls.x = 3\n    def test_a(self): self.assertEqual(f(self.x), 9)\nif __name__ == '__main__':\n    unittest.main(argv=[''], verbosity=2)"),
    "a class of functions": Case("def sq(x): return x * x", "import types\nassert type(sq) is types.FunctionType and sq(3) == 9"),
    "exceptions that the program holds": Case("class Retry:\n    def __init__(s, exceptions=(Exception,)): s.exceptions = exceptions", "assert Retry().exceptions == (Exception,)"),
    "arguments by the name of a word": Case("def main(argv): return argv[0]", "def check(argv, want): assert main(argv) == want\ncheck(['a'], 'a')"),
    "a zone without a name": Case("import io, struct\nfrom datetime import datetime\nfrom zoneinfo import ZoneInfo\nfile = b'TZif' + bytes(16) + struct.pack('>6l', 0, 0, 0, 0, 1, 4) + struct.pack('>lbb', 3600, 0, 0) + b'ABC' + bytes(1)\ndef f(): return datetime(2025, 1, 1, tzinfo=ZoneInfo.from_file(io.BytesIO(file)))", "assert f().utcoffset().total_seconds() == 3600 and f().tzinfo is not None"),
    "an empty error as a cause": Case("class Empty(Exception): __len__ = lambda s: 0\ndef f(x): raise ValueError from Empty()", "try: f(1)\nexcept ValueError as e: assert e.__cause__ is not None\nelse: assert False"),
    "an error while another is handled": Case("def f(x):\n    try: 1 / 0\n    except ZeroDivisionError: raise ValueError", "try: f(1)\nexcept ValueError as e: assert isinstance(e.__context__, ZeroDivisionError)\nelse: assert False"),
    "a compiled pattern": Case(
        "import re\ndef f(x): return re.compile(x, re.I)",
        "import re\nassert f('a+') == re.compile('a+', re.I)\nassert f('a+').match('AA')[0] == 'AA'",
    ),
    "numbers that the setup has seeded": Case(
        "def f(xs): return sorted(xs)",
        "assert f([random.randint(0, 99) for _ in range(3)]) == [3, 14, 81]",
        "import random\nrandom.seed(42)",
    ),
    "the second of two equal hours": Case(
        "def f(d): return d.replace(fold=1)",
        "from datetime import datetime\nassert f(datetime(2025, 10, 26, 2)).fold == 1",
    ),
    "late names": Case(APPLY, "n = 0\nh = around(lambda x: x + n)\nassert h(1) == 1\nn = 5\nassert h(1) == 6"),
    "a list that is replaced": Case(
        APPLY, "calls = []\ndef g(x):\n    calls.append(x)\nm = around(g)\nm(2)\nassert calls == [2]\ncalls = []\nm(3)\nassert calls == [3]"
    ),
    "each time another lambda": Case(APPLY, "for k in range(3):\n    assert apply(lambda v: v + k, 3) == 3 + k"),
    "functions that call each other": Case(
        APPLY, "def ev(n): return n == 0 or od(n - 1)\ndef od(n): return n != 0 and ev(n - 1)\nassert apply(ev, 2)"
    ),
    "a function of the setup": Case(APPLY, "triple = lambda x: 3 * x\nassert apply(double, 3) == 6", "double = lambda x: 2 * x"),
    "a name that the program rebinds": Case(
        "def g(): return 1\ndef start():\n    global g\n    g = lambda: 2", "assert g() == 1\nstart()\nassert g() == 2"
    ),
    "a view that grows": Case(VIEWS, "v = keys()\nadd(3)\nassert list(v) == [3]\nassert v == {3: 0}.keys()"),
    "a generator and in": Case("def f():\n    yield 1", "assert 1 in f() and 2 not in f()"),
    "an import of the setup": Case("def f(x): return math.sqrt(x)", "assert math.isclose(f(4), 2)", "import math"),
    "a class of the setup": Case(
        "def f(n): return Node(n.value + 1, n)",
        "n = f(Node(1, None))\nassert n.value == 2 and n.next.value == 1",
        "class Node:\n    def __init__(self, value, next):\n        self.value, self.next = value, next",
    ),
    "a method with the name top": Case(
        "class S:\n    def top(self):\n        x = 1\n        return x", "x = 1\nassert S().top() == x"
    ),
    "type and identity in a lambda": Case(
        APPLY, "a = None\nassert apply(lambda v: (type(v).__name__, v is a, v.__class__), 1) == ('int', False, int)"
    ),
    "a named tuple of the setup": Case(
        "def move(p): return p._replace(x=9)",
        "p = Pt(1, 2)\nassert move(p) == Pt(9, 2)",
        "from collections import namedtuple\nPt = namedtuple('Pt', 'x y')",
    ),
    "keywords with the executor's names": Case(
        "def f(**k): return k\nclass E(Exception):\n    def __init__(self, **k): self.k = k",
        "assert f(operation=1, self=2, args=3) == {'operation': 1, 'self': 2, 'args': 3}\nassert E(cls=1).k == {'cls': 1}",
    ),
    "an infinity of the setup": Case(
        "def f(x): return inf if x else 0", "assert f(1) == inf", "inf = float('inf')"
    ),
    "a loop over what the program changes": Case(
        "def bump(d, k): d[k] += 1",
        "d = {1: 1, 2: 2, 3: 3}\ndel d[1]\nfor k in d: bump(d, k)\nassert d == {2: 3, 3: 4}",
    ),
    "a cell that is empty": Case(
        APPLY, "def h():\n    w = 3\n    r = apply(lambda v: v + w, 1)\n    del w\n    return r + apply(abs, -1)\nassert h() == 5\nassert apply(abs, -3) == 3"
    ),
    "the test's own exception": Case(
        "def f(e): raise e", "e = ValueError('q')\ntry: f(e)\nexcept ValueError as caught: assert caught is e"
    ),
    "a lambda in a lambda": Case(APPLY, "assert apply(lambda x: (lambda y: y * 2), 3)(4) == 8"),
    "a named tuple with a list": Case("from typing import NamedTuple\nclass P(NamedTuple):\n    xs: list\n    y: int\ndef f(): return P([1], 2)", "r = f()\nassert r.xs == [1] and r == ([1], 2)"),
    "a helper that is defined again": Case(APPLY, "def key(x): return -x\nassert apply(lambda v: key(v), 1) == -1\ndef key(x): return x * 5\nassert apply(lambda v: key(v), 1) == 5"),
    "the bytes of a generator": Case("def f(n): yield from range(n)", "assert bytes(f(3)) == bytearray(f(3)) == b'\\0\\1\\2'"),
    "a variable with the name type": Case("def f(t, v): return t(v)", "for type in (int, str): assert f(type, '3') == type('3')"),
    "a setup that changes a module's state": Case("def d(n): return n and 1 + d(n - 1)", "assert d(3000) == 3000", "import sys\nsys.setrecursionlimit(10000)"),
    "an import that may fail": Case("def f(x): return x", "assert f(1) == 1", "try: import no_such_module\nexcept ImportError: no_such_module = None"),
    "a change in place that is nested deeply": Case("def f(a):\n    x = []\n    for _ in range(500): x = [x]\n    a.append(x)", "a = []\nf(a)\nassert len(a) == 1"),
    "a list of nodes that grows": Case("def extend(h, n):\n    for i in range(n):\n        h.next = Node(i)\n        h = h.next", "h = x = Node(0)\nextend(h, 500)\nn = 0\nwhile x: n, x = n + 1, x.next\nassert n == 501", "class Node:\n    def __init__(self, value): self.value, self.next = value, None"),
    "an object without an equality": Case("class N: pass\ndef f(x): return N()", "r = f(1)\nassert r != 5 and r not in (None, False) and [1, 'a', r].index(r) == 2"),
    "an attribute that the test has already": Case("class N:\n    def __init__(s, v): s.v = v\ndef mk():\n    a, b = N(1), N(2)\n    a.n, b.p = b, a\n    return a", "a = mk()\nn = a.n\nassert n.v == a.n.v == 2 and a.n.p.v == 1"),
    "a test that only defines": Case("def f(x): return x", "import math\ndef check(a, b): assert a == b\nx = 5"),
    "a dataclass and an enumeration of the setup": Case("def f(x): return P(x, C(x))", "assert f(1) == P(1, C.RED) and f(1).color is C.RED", "from dataclasses import dataclass, field\nfrom enum import Enum\nclass C(Enum):\n    RED = 1\n@dataclass\nclass P:\n    x: int\n    color: C\n    tags: list = field(default_factory=list)"),
    "a modulus of the setup": Case("def f(x): return x % MOD", "assert f(MOD + 3) == 3", "MOD = 10**9 + 7"),
    "special methods of a subclass of data": Case("class V(tuple): __add__ = lambda s, o: V(a + b for a, b in zip(s, o))", "assert V((1, 2)) + V((3, 4)) == (4, 6)"),
    "methods and variables with the words of modules": Case("class C:\n    def eval(s): return 3\n    def seed(s): return 4", "seed = C().seed()\nassert C().eval() == 3 and seed == 4"),
    "a graph of nodes with hashes": Case("def count(a): return len(a.nbrs)\ndef mk():\n    a, b = Node(1), Node(2)\n    a.nbrs[b] = b.nbrs[a] = 1\n    return a", "a = mk()\nassert count(a) == 1 and [n.v for n in a.nbrs] == [2]", "class Node:\n    def __init__(self, v): self.nbrs, self.v = {}, v\n    def __hash__(self): return hash(self.v)\n    def __eq__(self, o): return self.v == o.v"),
    "a large list of equal elements of another type": Case("def f(xs): xs[:] = [float(x) for x in xs]\ndef g(xs): xs[7] = True", "xs = [1] * 5000\nf(xs)\nassert all(type(x) is float for x in xs)\ng(xs)\nassert xs[7] is True and type(xs[8]) is float"),
    "an exception with other arguments than its class": Case("def f(e): return e.pos, e.msg, str(e)", "import json\ntry: json.loads('[1')\nexcept ValueError as e: assert f(e) == (e.pos, e.msg, str(e))"),
    "a time zone": Case("from datetime import timedelta, timezone\ndef f(n): return timezone(timedelta(hours=n))", "from datetime import timezone\nassert f(0) is timezone.utc and repr(f(1)) == 'datetime.timezone(datetime.timedelta(seconds=3600))'"),
    "defaults of keywords": Case("def f(*, n=3): return n", "assert f.__kwdefaults__ == {'n': 3}"),
    "functions in a class and in functions": Case(APPLY, "class T:\n    @staticmethod\n    def twice(x: int, *, k=2) -> int: return k * x\ndef maker(n):\n    def power(x): return 1 if n == 0 else x ** n\n    return power\nassert apply(T.twice, 4) == 8 and apply(maker(3), 2) == 8"),
    "a star import, and an import of the same name": Case("from typing import *\ndef f(xs: List[int]): return sum(xs)", "from typing import List\nxs: List[int] = [1, 2]\nassert f(xs) == 3"),
    "a combination of flags of the setup": Case("def join(a, b): return a | b", "assert join(Mode.R, Mode.W) == Mode.R | Mode.W and join(Mode.R, Mode.R) is Mode.R", "from enum import Flag\nclass Mode(Flag):\n    R = 1\n    W = 2"),
    "methods of texts and numbers": Case("def call(g): return g()", "assert call('abc'.upper) == 'ABC' and call((5).bit_length) == 3"),
    "a module that the setup makes": Case("def f(x): return x", "import made\nassert f(5) == made.want", "import sys, types\nsys.modules['made'] = types.SimpleNamespace(want=5)"),
    "arrays of numbers": Case("from array import array\ndef f(n): return array('d', [n / 2] * 3)\ndef g(a):\n    a[0] = 7000\n    return sum(a)", "from array import array\na = array('l', [1000, 2000])\nassert g(a) == 9000 == a[0] + a[1] and f(5) == array('d', [2.5] * 3)"),
    "a length after arithmetic": Case("class V:\n    def __init__(s, *c): s.c = c\n    def __mul__(s, k): return V(*[k * x for x in s.c])\n    def __neg__(s): return s * -1\n    def __len__(s): return len(s.c)\ndef unit(): return V(1, 0)", "assert (-V(1, 2) * 2).c == (-2, -4)\nassert len(unit()) == 2"),
    "values that methods return": Case("class V:\n    def __init__(s, x): s.x = x\n    def __mul__(s, k): return V(k * s.x)\n    def __abs__(s): return abs(s.x)\n    def copy(s): return V(s.x)\n    @classmethod\n    def unit(cls): return cls(1)\n    @property\n    def twice(s): return s * 2", "assert (V.unit() * 3).copy().x == 3 == abs(V(-1).twice * 1.5)"),
    "an exception with its cause, and a group": Case("def f(e): return str(e), str(e.__cause__)\ndef n(g): return len(g.exceptions)", "try:\n    try: {}[1]\n    except KeyError as k: raise RuntimeError('bad') from k\nexcept RuntimeError as e: assert f(e) == ('bad', '1')\nassert n(ExceptionGroup('g', [ValueError(1), KeyError(2)])) == 2"),
    "helpers of the setup with usual local names": Case("def build(xs): return Node(xs[0])", "assert is_same(build([1, 2]), make([1, 2]))", "class Node:\n    def __init__(self, val): self.val = val\ndef make(values):\n    val = values[0]\n    return Node(val)\ndef is_same(p, q): return p.val == q.val"),
    "objects that are no data": Case("class Stack: pass\ndef f(): return Stack()", "assert not isinstance(f(), int) and not isinstance(Stack(), (list, dict))"),
    "the time that a function takes": Case("def f(x): return x", "from timeit import timeit\nassert timeit(lambda: f(3), number=2) < 5"),
    "a name that is read before it is bound": Case("def f(x): return x", "g = f\nf = g(3)\nassert f == 3"),
}  # fmt: skip


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    with Executor(2, Limits(wall_s=20, cpu_s=9), level_or_skip(request.param)) as executor:
        yield executor


def test_no_case_that_plain_python_or_the_rules_refuse_passes_unmarked(executor):
    results = executor.run([Program(case.code, (case.test,), case.setup) for case in NO_PASS.values()])
    assert [
        name for name, r in zip(NO_PASS, results, strict=True) if r.num_passed and not r.verdicts[0].in_child
    ] == []


# They ask more of an object than a test may ask, or it has no name in the test.
ASKS_MORE = {
    *("a class by its instance", "no instance of several classes", "arithmetic of what a function returned"),
    *("containers of one class, one after the other", "a builder", "methods of data of a class of its own"),
    *("a class of functions", "a zone without a name", "a named tuple with a list"),
    *("an attribute that the test has already", "special methods of a subclass of data"),
    *("a graph of nodes with hashes", "defaults of keywords", "a length after arithmetic"),
    *("values that methods return", "objects that are no data"),
}


def test_an_honest_case_passes_and_is_marked_only_if_it_asks_more_of_an_object(executor):
    results = executor.run([Program(case.code, (case.test,), case.setup) for case in PASS.values()])
    assert {name: r.verdicts for name, r in zip(PASS, results, strict=True) if not r.all_passed} == {}
    assert {name for name, r in zip(PASS, results, strict=True) if r.verdicts[0].in_child} == ASKS_MORE


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

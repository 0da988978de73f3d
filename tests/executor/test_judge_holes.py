"""Holes of the judge that a review found (J1 to J6): no program passes with them, at any level, as any user.

Each program passed unmarked before. `FORGED` must not pass at all; of the objects of `LYING` a test compares only
what they contain.
"""

import json
import subprocess
import sys

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import level_or_skip, offered
from tests.support.ordinary_user import run_groups
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

LEVELS = (
    ("docker", "root"),
    *((level, user) for level in ("namespaces", "seccomp") for user in ("root", "ordinary")),
)
# Ways to write a test of f(3) == 50; all that are not split need the judge at once, the others once a value is not plain.
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
CONVERSATION = """
import sys
def f(*a):
    c = sys.modules['handles'].end
    if c is None: return lambda: 0
"""
FORGE = """
import json, os
def forge(message):
    data = json.dumps(message).encode()
    data = len(data).to_bytes(4, 'big') + data
    while data: data = data[os.write(4, data):]
def receive():
    size = int.from_bytes(os.read(4, 4), "big")
    if not size: os._exit(0)  # the judge has ended
    return json.loads(os.read(4, size))
"""
LYING = {
    "J1 UserList": f"from collections import UserList\ndef f(*a):\n    u = UserList([0]); {CAST}\n    return u",
    "J1 in a list": f"from collections import UserList\ndef f(*a):\n    u = UserList([0]); {CAST}\n    return [u]",
    "J1 subclass": f"from collections import UserList\nclass L(UserList): pass\ndef f(*a):\n    u = L([0]); {CAST}\n    return u",
    "J1 data that lies": "from collections import UserString\nclass S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\ndef f(*a):\n    u = UserString('x'); u.data = S('x')\n    return u",
    "J1 namespace": "from types import SimpleNamespace\ndef f(*a): return SimpleNamespace(__class__=int, __eq__=ascii, _x=1)",
    "J2 a class made by type": CONVERSATION + "    return c.request('__call__', type, ('X', (), {'__eq__': ascii}))()",
    "J2 a subclass of int": CONVERSATION + "    return c.request('__call__', type, ('X', (int,), {'__eq__': ascii, '__hash__': int.__hash__}), {})(0)",
}  # fmt: skip
ANSWERING = """
    while True:
        message = receive()
        forge(["v", [message[1][-1]], [], [], []])
"""
FORGED = {
    "J3 methodcaller": CONVERSATION
    + """
    import operator
    c.encode_by_name = lambda v: ['global', '_operator', v.__name__] if v in (operator.attrgetter, operator.methodcaller) else None
    get = lambda *names: c.request('__call__', operator.attrgetter, names)
    call = lambda *args: c.request('__call__', operator.methodcaller, args)
    on = lambda getter, value: c.request('__call__', getter, (value,))
    [heap] = [k for k in on(call('__subclasses__'), object) if k.__name__ == 'End']
    posix = on(get('modules'), on(get('__init__.__globals__'), heap)['sys'])['posix']
    on(call('write', 3, b'[0, 0.0, ["passed"]]\\n'), posix)
    on(call('_exit', 0), posix)
""",
    **{
        f"J3, J4 {node}": FORGE
        + f"""
def f(*a):
    forge(["q", ["__call__", {node}, "write", 3, ["b", b'[0, 0.0, ["passed"]]\\n'.hex()]], [], [], []])
    receive()
    forge(["v", [50], [], [], []])
    while True: receive()
"""
        for node in (
            ["global", "_operator", "methodcaller"],
            ["global", "pathlib", "io.FileIO"],
            ["global", "_io", "FileIO"],
            ["y", "type"],
            ["y", "memoryview"],
            ["fn", "len"],
        )
    },
    **{
        f"J5 {facts} {kind}": FORGE
        + f"""
def f(*a):
    forge(["v", [["object", 3, {facts}, {kind}]], [], [], []])
"""
        + ANSWERING
        for facts, kind in (
            ([128 + 31, 50, "F"], ["y", "Fraction"]),
            ([255, 50, "int"], ["y", "int"]),
            ([127, 50, "UserList"], ["y", "UserList"]),
            ([31, 50, "F"], ["y", "type"]),
            ([0, 50, "F"], ["y", "ValueError"]),
            ([255, 50, "F"], ["class", 5, "F", ["y", "ValueError"]]),
        )
    },
    **{
        f"J5 {cls} {names}": FORGE
        + f"""
def f(*a):
    forge(["v", [["error", 3, {names}, {cls}, 1, ["y", "int"]]], [], [], []])
"""
        + ANSWERING
        for cls, names in (
            (["y", "ValueError"], ["with_traceback"]),
            (["class", 5, "E", ["y", "ValueError"], ["y", "KeyError"]], ["__eq__"]),
            (["class", 5, "E", ["y", "int"]], []),
            (["y", "Fraction"], []),
        )
    },
    "the data of an object is an object": FORGE
    + """
def f(*a):
    forge(["v", [["object", 3, [128, 50, "F"], ["y", "int"]]], [], [], []])
    number = 5
    while True:
        receive()
        forge(["v", [["object", number, [128, 50, "F"], ["y", "int"]]], [], [], []])
        number += 2
""",
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
    "Counter": (
        "from collections import Counter\nassert f(3) == Counter(a=2, b=1)",
        "x = f(3)\nassert x['z'] == 7",
    ),
}


@pytest.mark.parametrize(("level", "user"), LEVELS)
def test_no_program_passes_with_a_hole_of_the_judge(level, user):
    level_or_skip(level)
    # Every other test of the program leaves the judge in the state of the first. So one test per program.
    attacks = {**LYING, **FORGED}
    groups = [[(code, (test,)) for test in TESTS] for code in attacks.values()]
    groups.append([(TWINS[name], tests) for name, tests in TWINS_TESTS.items()])
    *found, twins = run_groups(level, groups, as_root=user == "root")
    passed = {
        (name, test): outcome
        for name, outcomes in zip(attacks, found, strict=True)
        for test, outcome in zip(TESTS, outcomes, strict=True)
        if "passed" in outcome[0] or outcome[1]
    }
    assert passed == {}
    assert [set(statuses) for statuses, _ in twins] == [{"passed"}] * len(TWINS), twins


# Programs that no test must let pass unmarked, each with its tests (S1 to S6 of the review).
SHAPES = {
    "the judge's evidence through a link": (
        "import os\ntry: os.symlink('/proc/self/fd/3', 'out.txt')\nexcept OSError: pass\n"
        "def render(x): return ('1' * 2000 + '\\n[0, 0.0, [\"passed\"]]\\n') * 3",
        "from pathlib import Path\nPath('out.txt').write_text(render(3))\nassert Path('out.txt').read_text() == '1,2\\n'",
    ),
    "unpickling": (
        "import os, pickle\nclass E: __reduce__ = lambda s: (os.write, (3, b'[0, 0.0, [\"passed\"]]\\n' + b'1' * 3000))\n"
        "def ser(x): return pickle.dumps(E())",
        "import pickle\nassert pickle.loads(ser([1, 2])) == [1, 2]",
    ),
    "a repr that raises what the test catches": (
        "class L(list): __repr__ = lambda s: (_ for _ in ()).throw(ValueError)\ndef f(*a): return L([1])",
        "try:\n    r = f(5)\n    assert r == [25]\nexcept ValueError:\n    pass",
    ),
    "the seed of the judge": (
        "import random\ndef guess(): return random.Random(0).randint(0, 10**9)",
        "import random\nsecret = random.randint(0, 10**9)\nassert guess() == secret",
    ),
    "__exit__ swallows the assert": (
        "class managed:\n    def __enter__(self): return 5\n    def __exit__(self, *a): return True",
        "with managed() as x:\n    assert x == 42",
    ),
    "a contextmanager swallows the assert": (
        "from contextlib import contextmanager\n@contextmanager\ndef managed():\n    try: yield 5\n    except BaseException: pass",
        "with managed() as x:\n    assert x == 42",
    ),
    "a method that says yes": (
        "class L:\n    def __getattr__(self, name): return lambda *a: True\ndef f(x): return L()",
        "assert f(3).startswith('abc')",
    ),
    "a namespace with a method": (
        "from types import SimpleNamespace\ndef f(x): return SimpleNamespace(startswith=ascii)",
        "x = f(3)\nassert x.startswith('abc')",
    ),
    "a str with its own startswith": (
        "class S(str):\n    startswith = lambda *a: True\ndef f(x): return S('x')",
        "x = f(3)\nassert x.startswith('abc')",
    ),
    "no __contains__ in the data of a value": (
        "class L(float): pass\ndef f(*a): return L(0.5)",
        "x = f(3)\nassert 'abc' in x",
    ),
    "no __abs__ in the data of a value": (
        "class L(str): pass\ndef f(*a): return L(5)",
        "x = f(3)\nassert abs(x)",
    ),
    "another class than the named one has methods of data": (
        "class A(str): startswith = lambda *a: True\nclass Solution:\n    def solve(s, x): return A('z')",
        "assert Solution().solve(3).startswith('x')",
    ),
    "another class than the named one has a length": (
        "class A(list): __len__ = lambda s: 3; __iter__ = lambda s: iter(())\nclass Solution:\n    def solve(s, x): return A()",
        "s = Solution()\nr = s.solve(3)\nassert all(v == 1 for v in r) and len(r) == 3",
    ),
    "a capital function is no class": (
        "class A: __getattr__ = lambda s, n: (lambda *a: True)\ndef Make(x): return A()",
        "assert Make(3).startswith('x')",
    ),
    "another class than the named one is equal": (
        "class A: __eq__ = lambda *a: True\nclass Solution:\n    def solve(s, x): return A()",
        "assert Solution().solve(3) == 5",
    ),
    "its own __ne__": (
        "class A: __ne__ = lambda *_: True\ndef add(a, b): return A()",
        "assert add(1, 2) != 4",
    ),
    "an error of the test is swallowed": (
        "def f(*a): return len\ndef run(c):\n    try: c()\n    except BaseException: pass",
        "def check():\n    got = f(3)\n    got.append(5)\n    assert got == [1, 5]\nrun(check)",
    ),
    "no __contains__ in the data of an attribute": (
        "class L(float): pass\nclass Box: val = L(0.5)\ndef box(): return Box()",
        "assert 'abc' in box().val",
    ),
    "a method of data that is none": (
        "class L:\n    find = lambda *a: 2\ndef f(*a): return L()",
        "assert f(3).find('cd') == 2",
    ),
    "a method of data learns what is expected": (
        "seen = []\nclass L:\n    find = lambda s, o: (seen.append(o), 0)[1]\ndef f(*a): return seen[-1] if seen else L()",
        "assert f(3).find('heliotrope') == 0\nassert f(3) == 'heliotrope'",
    ),
    "a method without arguments": (
        "class L:\n    isdigit = lambda s: True\ndef f(x): return L()",
        "x = f(3)\nassert x.isdigit()",
    ),
    "a length against the iteration": (
        "class L:\n    __len__ = lambda s: 3\n    __iter__ = lambda s: iter(())\ndef f(x): return L()",
        "r = f(3)\nassert len(r) == 3\nfor got, want in zip(r, [7, 8, 9]):\n    assert got == want",
    ),
    "a method of an exception": (
        "class E(ValueError):\n    check = lambda s, o: True\ndef f(n): raise E()",
        "try:\n    f(3)\nexcept ValueError as e:\n    assert e.check('x')\nelse:\n    assert False",
    ),
    "a failed assert inside of a call is swallowed": (
        "def f(c):\n    try: c(5)\n    except BaseException: pass",
        "def c(x):\n    assert x == 42\nf(c)",
    ),
    "a decorator swallows a failed assert": (
        "def f(g):\n    def h(*a):\n        try: return g(*a)\n        except BaseException: pass\n    return h",
        "@f\ndef check():\n    assert 1 == 2\ncheck()",
    ),
    "__exit__ swallows an error inside of an assert": (
        "class M:\n    __enter__ = lambda s: 5\n    __exit__ = lambda s, *a: True\ndef f(*a): return M()\ndef g(x): raise ValueError",
        "with f(3) as x:\n    assert g(1) == 5",
    ),
    "a length that changes": (
        "class L:\n    n = [2, 0]\n    __len__ = lambda s: s.n.pop(0) if s.n else 0\ndef f(x): return L()",
        "r = f(3)\nassert len(r) == 2\nfor i in range(len(r)):\n    assert r[i] == 7",
    ),
    "an item learns what is expected": (
        "seen = []\nclass L: __getitem__ = lambda s, o: (seen.append(o), 1)[1]\ndef f(x): return seen[-1] if seen else L()",
        "x = f(3)\nassert x['heliotrope'] == 1\nassert f(3) == 'heliotrope'",
    ),
    "a failed assert comes back as a value": (
        "import asyncio\ndef run(c):\n    async def go(): return await asyncio.gather(asyncio.to_thread(c), return_exceptions=True)\n    return asyncio.run(go())",
        "seen = []\ndef c():\n    seen.append(1)\n    assert 1 == 2\nrun(c)\nassert seen == [1]",
    ),
    "an error of the test comes back in the end of an iterator": (
        "def f(*a): return len\nclass run:\n    def __init__(s, c): s.c = c\n    __iter__ = lambda s: s\n    def __next__(s):\n        try: s.c()\n        except BaseException as e: raise StopIteration(e)",
        "def check():\n    got = f(3)\n    got.append(5)\n    assert got == [1, 5]\nfor x in run(check): pass",
    ),
    "an error of a comparison is swallowed": (
        "def f(*a): return StopIteration(9)\ndef run(c):\n    try: c()\n    except BaseException: pass",
        "def check():\n    assert 'heliotrope' in f(3)\nrun(check)",
    ),
    "an error of the program is swallowed": (
        "def save(x):\n    with open('out.txt', 'w') as file: file.write(len)\ndef run(c):\n    try: c()\n    except BaseException: pass",
        "def check():\n    save(3)\n    assert open('out.txt').read() == 'heliotrope'\nrun(check)",
    ),
    "an error of a library is swallowed": (
        "def f(x): return '{'\ndef run(c):\n    try: c()\n    except BaseException: pass",
        "import json\ndef check():\n    assert json.loads(f(3)) == [77]\nrun(check)",
    ),
    "an error of the test is kept by unittest": (
        "import os, unittest\ndef f(*a): return os\ndef run(c): return unittest.FunctionTestCase(c).run()",
        "def check():\n    seen = [71766]\n    seen.remove(f(3))\n    assert seen == []\nrun(check)",
    ),
    "a builtin of the program's, in statements": (
        "def sum(xs): return -1\ndef parse(s): return [int(x) for x in s.split()]",
        "x = parse('1 2 3')\nassert sum(x) == 6",
    ),
    "a builtin of the program's, in a loop": (
        "def sum(xs): return -1\ndef parse(s): return [int(x) for x in s.split()]",
        "for x in [parse('1 2 3')]:\n    assert sum(x) == 6",
    ),
    "a builtin of the program's says yes": (
        "sorted = lambda x: 0\ndef f(x): return x",
        "assert sorted(f(3)) == sorted([2, 1])\nassert sorted(f(3)) == sorted([5])",
    ),
    "a tolerance of the program's": (
        "def abs(x): return 9\ndef f(x): return x",
        "for x in [3]:\n    assert abs(f(x) - 3) < .1",
    ),
    "a type of the program's": (
        "def type(x): return int\ndef f(x): return 'x'",
        "x = f(3)\nassert type(x) is type(3)",
    ),
    "a length against the elements": (
        "class L(list):\n    __len__ = lambda s: 3\n    __iter__ = lambda s: iter(())\ndef f(x): return L([1])",
        "r = f(3)\nassert len(r) == 3\nfor got, want in zip(r, [7, 8, 9]):\n    assert got == want",
    ),
}


def test_an_error_that_the_program_raises_again_is_no_mark():
    wraps = "class Gone(Exception): pass\ndef run(c):\n    try: return c()\n    except ValueError as e: raise Gone() from e"
    tests = {
        "def run(c):\n    try: return c()\n    finally: pass": "except ValueError: pass",
        wraps: "except Exception as e: assert type(e).__name__ == 'Gone'",
        "def run(c): return next(x() for x in [c])": "except ValueError: pass",
    }
    with Executor(1, Limits(wall_s=10, cpu_s=9), offered("namespaces", "seccomp", "rlimits")) as executor:
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
    "def f(x): return inner(x)": (
        "KEY = 77\ndef inner(x): return x * KEY\ndef reference(x): return inner(x)",
        "assert f(3) == reference(3)",
    ),
}


def test_what_only_a_test_needs_of_the_setup_is_not_in_the_programs_process():
    with Executor(1, Limits(wall_s=10, cpu_s=9), offered("namespaces", "seccomp", "rlimits")) as executor:
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


@pytest.mark.parametrize("level", ["docker", "namespaces", "seccomp"])
def test_no_shape_of_a_test_is_passed_unmarked_by_a_lie(level):
    with Executor(1, Limits(wall_s=10, cpu_s=9), level_or_skip(level)) as executor:
        results = executor.run([Program(code, (test,)) for code, test in SHAPES.values()])
    passed = [
        (name, r)
        for name, r in zip(SHAPES, results, strict=True)
        if r.is_infra_failure or (r.num_passed and not r.verdicts[0].in_child)
    ]
    assert passed == []


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
    # The judge would read at an address that the candidate names, and write there.
    "J6 an array of the judge's memory": (
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
    "J6 forged": (
        FORGE
        + """
def f(x):
    forge(["v", [["object", 3, [31, 7, "ndarray"], None]], [], [], []])
    number = 5
    while True:
        receive()
        forge(["v", [["d", number, None, "shape", "typestr", "data", "version", ["t", number + 2, None, 5], "|u1", ["t", number + 4, None, id(f), False], 3]], [], [], []])
        number += 6
""",
        "import numpy as np\na = np.asarray(f(3))\nassert a.dtype != object and len(a) == 5",
    ),
    # The view would keep the memory that the resize frees.
    "J6 freed memory": (
        "def grow(a): a.resize(1 << 16, refcheck=False)",
        "import numpy as np\na = np.arange(64)\nv = a[10:13]\ngrow(a)\nassert len(a) == 1 << 16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", ["docker", "namespaces", "seccomp"])
def test_no_program_reads_or_writes_the_judges_memory(level):
    pytest.importorskip("numpy")
    try:
        executor = Executor(num_workers=1, sandbox=level_or_skip(level), packages=("numpy",))
    except Exception as error:
        assert "the packages are installed for Python" in str(error)
        pytest.skip(f"level {level} runs another version of Python")
    with executor:
        results = executor.run([Program(code, (test,)) for code, test in ARRAY_HOLES.values()])
        assert [(r.num_passed, r.infra_error) for r in results] == [(0, None)] * len(ARRAY_HOLES)
        changes = "def f(a):\n    a *= 2\n    a.shape = (2, 2)"
        honest = Program(
            changes, ("import numpy as np\na = np.arange(4)\nf(a)\nassert a.tolist() == [[0, 2], [4, 6]]",)
        )
        assert executor.run([honest])[0].all_passed


# Prints every node with a name that the judge decodes: names of all standard modules, private ones and dotted names
# included, under every tag.
ENUMERATE = """
import json, os, sys, warnings
os.dup2(os.open(os.devnull, os.O_RDWR), 4)
warnings.simplefilter("ignore")
sys.path.insert(0, "cocos/executor/inside")
import judge, handles
end = judge.Judge()
loaded = set(sys.modules)
accepted, seen, tried, imported = set(), set(), 0, 0
HEAVY = {"antigravity", "this", "idlelib", "lib2to3", "test", "turtledemo", "tkinter", "turtle", "ensurepip", "__main__"}
def names(value, depth):
    for name in dir(value):
        yield name
        if depth:
            try: inner = getattr(value, name)
            except Exception: continue
            yield from (f"{name}.{rest}" for rest in names(inner, depth - 1))
def accepts(call, *arguments):
    global tried
    tried += 1
    try: call(*arguments)
    except Exception: return False
    return True
for phase in ("before", "after"):
    if phase == "after":
        for module in sorted(sys.stdlib_module_names - HEAVY):
            try: __import__(module); imported += 1
            except (ImportError, SystemExit): pass
    for module, value in sorted(sys.modules.items()):
        if value is None or module.split(".")[0] not in sys.stdlib_module_names: continue
        for name in names(value, 1):
            for text in {name, f"{module}.{name}", f"{module} {name}"} - seen:
                seen.add(text)
                for tag in ("y", "fn", "x", "global"):
                    if accepts(end.decode, [tag, text]): accepted.add((tag, text))
                node = ["y", text]
                if accepts(end.represent, "object", 0, [31, 7, "A"], [node]): accepted.add(("kind", text))
                if accepts(end.decode, ["error", 2 * tried + 1, [], node]): accepted.add(("error", text))
            for tag in ("global", "y", "E", "x", "fn"):
                if accepts(end.decode, [tag, module, name]): accepted.add((tag, module, name))
    if phase == "before": assert not set(sys.modules) - loaded, set(sys.modules) - loaded
print(json.dumps([tried, imported, sorted(accepted)]))
"""
# Requests for a name, and forged objects of it.
USES = {
    "call": ["q", ["__call__", "NODE"], [], [], []],
    "call with two": ["q", ["__call__", "NODE", "x", 3], [], [], []],
    "object": ["v", [["object", 3, [255, 6, "NAME"], ["y", "NAME"]]], [], [], []],
    "exception": ["v", [["error", 3, [], ["y", "NAME"], 6]], [], [], []],
    "derived exception": ["v", [["error", 3, [], ["class", 5, "A", ["y", "NAME"]], 6]], [], [], []],
    "factory": ["v", [["f", 3, "NODE", 6, 6]], [], [], []],
    "itself": ["v", ["NODE"], [], [], []],
}  # fmt: skip
USER = (
    FORGE
    + """
MESSAGE = {message}
def f(x):
    forge(MESSAGE)
    if MESSAGE[0] == "v":
        while True:
            receive()
            forge(["v", [True], [], [], []])
    receive()
    forge(["v", [6], [], [], []])  # the judge has answered: it did what was asked
    while True: receive()
"""
)


@pytest.mark.nightly
def test_the_judge_takes_only_listed_names_and_does_nothing_with_them():
    run = subprocess.run([sys.executable, "-c", ENUMERATE], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    tried, imported, accepted = json.loads(run.stdout.splitlines()[-1])
    assert tried > 100_000 and imported > 200  # the search was one
    tags = {tag for tag, *_ in accepted}
    assert tags == {"y", "fn", "kind", "error"}
    names = {tuple(name) for tag, *name in accepted}
    assert all(len(name) == 1 for name in names)  # a module is never looked up
    assert {("int",), ("len",), ("json.decoder JSONDecodeError",)} <= names
    refused = "eval exec open getattr setattr vars globals compile __import__ attrgetter methodcaller FileIO Popen system"
    assert not {(name,) for name in refused.split()} & names
    codes = {
        (tag, name, use): USER.replace("{message}", repr(_with_name(message, tag, name)))
        for tag, name in accepted
        for use, message in USES.items()
        if tag in ("y", "fn") or use in ("object", "exception", "derived exception")
    }
    level = offered("namespaces", "seccomp") or "rlimits"
    test = "x = f(3)\nassert x == 6"
    with Executor(2, Limits(wall_s=5, cpu_s=4), level) as executor:
        results = executor.run([Program(code, (test,)) for code in codes.values()])
    passed = [use for use, r in zip(codes, results, strict=True) if r.num_passed != 0]
    assert passed == []


def _with_name(message, tag, name):
    if message in ("NODE", "NAME"):
        return [tag, name] if message == "NODE" else name
    return [_with_name(part, tag, name) for part in message] if isinstance(message, list) else message

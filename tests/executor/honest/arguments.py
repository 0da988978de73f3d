"""Objects of the test that the program receives."""

from tests.executor.honest import honest

AREA = "def area(b): return b.w * b.h\ndef grow(b, n):\n    b.w += n\n    return b\n"

PROGRAMS = [
    honest(
        "an instance of a class of the test",
        AREA,
        "class Box:\n    def __init__(self, w, h):\n        self.w, self.h = w, h\nb = Box(2, 3)\nassert area(b) == 6\nassert grow(b, 1) is b and b.w == 3",
        marked=True,
    ),
    honest(
        "a SimpleNamespace",
        AREA,
        "from types import SimpleNamespace\nb = SimpleNamespace(w=1, h=2)\nassert area(b) == 2\ngrow(b, 4)\nassert b == SimpleNamespace(w=5, h=2)",
    ),
    honest(
        "a namedtuple of the test",
        AREA,
        "from collections import namedtuple\nBox = namedtuple('Box', 'w h')\nassert area(Box(2, 5)) == 10",
        "from collections import namedtuple\nP = namedtuple('P', 'w h')\nassert area(P(w=1, h=1)) == 1",
    ),
    honest(
        "a dataclass of the test",
        AREA,
        "from dataclasses import dataclass\n@dataclass\nclass Box:\n    w: int\n    h: int\nassert area(Box(3, 3)) == 9\nassert grow(Box(1, 1), 2) == Box(3, 1)",
        marked=True,
    ),
    honest(
        "methods of a test's object",
        "def feed(pet, n):\n    for _ in range(n): pet.eat('bone')\n    return pet.name",
        "class Pet:\n    name = 'rex'\n    def __init__(self):\n        self.eaten = []\n    def eat(self, x):\n        self.eaten.append(x)\np = Pet()\nassert feed(p, 2) == 'rex' and p.eaten == ['bone', 'bone']",
    ),
    honest(
        "special methods of a test's object",
        "def total(c): return sum(c[i] for i in range(len(c))), list(c), 2 in c",
        "class C:\n    def __len__(self):\n        return 3\n    def __getitem__(self, i):\n        if i > 2:\n            raise IndexError\n        return i\nassert total(C()) == (3, [0, 1, 2], True)",
    ),
    honest(
        "order of the test's objects",
        "def smallest(xs): return min(xs)\ndef ordered(xs): return sorted(xs)",
        "class N:\n    def __init__(self, n):\n        self.n = n\n    def __lt__(self, o):\n        return self.n < o.n\na, b = N(1), N(2)\nassert smallest([b, a]) is a and ordered([b, a]) == [a, b]",
        marked=True,
    ),
    honest(
        "the test's objects as keys",
        "def count(xs):\n    d = {}\n    for x in xs: d[x] = d.get(x, 0) + 1\n    return d",
        "class K:\n    pass\na, b = K(), K()\nd = count([a, b, a])\nassert d[a] == 2 and d[b] == 1 and len(d) == 2",
        "from enum import Enum\nclass E(Enum):\n    A = 1\nassert count([E.A, E.A]) == {E.A: 2}",
        marked=True,
    ),
    honest(
        "a list of lambdas",
        "def chain(x, fs):\n    for f in fs: x = f(x)\n    return x",
        "assert chain(2, [lambda x: x + 1, lambda x: x * 10]) == 30",
        "fs = []\nfor k in range(3):\n    fs.append(lambda x, k=k: x + k)\nassert chain(0, fs) == 3",
        marked=True,
    ),
    honest(
        "a dict of callbacks",
        "def run(table, name, *a): return table[name](*a)",
        "table = {'add': lambda a, b: a + b, 'neg': lambda a: -a}\nassert run(table, 'add', 1, 2) == 3 and run(table, 'neg', 4) == -4",
    ),
    honest(
        "a file-like object of the test",
        "def words(f): return [w for line in f for w in line.split()]\ndef save(f, x): f.write(str(x))",
        "import io\nassert words(io.StringIO('a b\\nc')) == ['a', 'b', 'c']",
        "import io\nf = io.StringIO()\nsave(f, 42)\nassert f.getvalue() == '42'",
    ),
    honest(
        "a mock of the test",
        "def notify(client, user): return client.send(to=user, text='hi')",
        "from unittest.mock import Mock\nclient = Mock()\nclient.send.return_value = 'ok'\nassert notify(client, 'ann') == 'ok'\nclient.send.assert_called_once_with(to='ann', text='hi')",
        marked=True,
    ),
    honest(
        "a class of the test as a factory",
        "def build(cls, n): return [cls(i) for i in range(n)]",
        "class T:\n    def __init__(self, i):\n        self.i = i\nassert [t.i for t in build(T, 3)] == [0, 1, 2] and all(isinstance(t, T) for t in build(T, 2))",
        "assert build(str, 2) == ['0', '1']",
        marked=True,
    ),
    honest(
        "a context manager of the test",
        "def use(cm):\n    with cm as x: return x * 2",
        "class CM:\n    def __init__(self):\n        self.log = []\n    def __enter__(self):\n        self.log.append('in')\n        return 4\n    def __exit__(self, *e):\n        self.log.append('out')\ncm = CM()\nassert use(cm) == 8 and cm.log == ['in', 'out']",
    ),
    honest(
        "a random generator of the test",
        "def pick(rng, xs): return xs[rng.randrange(len(xs))]",
        "import random\nr1, r2 = random.Random(3), random.Random(3)\nassert [pick(r1, 'abc') for _ in range(5)] == [('abc')[r2.randrange(3)] for _ in range(5)]",
        marked=True,
    ),
    honest(
        "a compiled pattern of the test",
        "def find(p, s): return p.findall(s)",
        "import re\nassert find(re.compile(r'\\d'), 'a1b2') == ['1', '2']",
    ),
    honest(
        "a Path of the test",
        "def stem(p): return p.stem",
        "from pathlib import Path\nassert stem(Path('/a/b.txt')) == 'b'",
    ),
    honest(
        "nested containers of everything",
        "def flat(x):\n    for y in x:\n        if isinstance(y, (list, tuple, set)): yield from flat(y)\n        else: yield y",
        "assert list(flat([1, (2, [3, {4}]), []])) == [1, 2, 3, 4]",
    ),
    honest(
        "a coroutine-free visitor",
        "class Num:\n    def __init__(self, n): self.n = n\n    def accept(self, v): return v.num(self)\nclass Add:\n    def __init__(self, a, b): self.a, self.b = a, b\n    def accept(self, v): return v.add(self)",
        "class Eval:\n    def num(self, x):\n        return x.n\n    def add(self, x):\n        return x.a.accept(self) + x.b.accept(self)\nassert Add(Num(1), Add(Num(2), Num(3))).accept(Eval()) == 6",
    ),
    honest(
        "cmp_to_key of the test",
        "def order(xs, key): return sorted(xs, key=key)",
        "from functools import cmp_to_key\nassert order([1, 3, 2], cmp_to_key(lambda a, b: b - a)) == [3, 2, 1]",
    ),
    honest(
        "a graph of the setup is cloned",
        "import copy\ndef clone(g): return copy.deepcopy(g)\ndef rebuild(n, seen=None):\n    seen = {} if seen is None else seen\n    if n.val not in seen:\n        seen[n.val] = Node(n.val)\n        seen[n.val].neighbors = [rebuild(m, seen) for m in n.neighbors]\n    return seen[n.val]",
        "a, b = Node(1), Node(2)\na.neighbors, b.neighbors = [b], [a]\nc = rebuild(a)\nassert c is not a and c.val == 1 and c.neighbors[0].val == 2 and c.neighbors[0].neighbors[0] is c",
        "a = Node(1)\na.neighbors.append(Node(2))\nc = clone(a)\nassert c is not a and c.neighbors[0] is not a.neighbors[0] and c.neighbors[0].val == 2",
        setup="class Node:\n    def __init__(self, val=0, neighbors=None):\n        self.val = val\n        self.neighbors = neighbors if neighbors is not None else []",
        marked=True,
    ),
    honest(
        "vars of a test's object",
        "def to_dict(o): return dict(vars(o))\ndef name(o): return type(o).__name__ + o.__class__.__name__",
        "class User:\n    def __init__(self):\n        self.name, self.age = 'ann', 5\nassert to_dict(User()) == {'name': 'ann', 'age': 5} and name(User()) == 'UserUser'",
    ),
    honest(
        "a callable object of the test",
        "def twice(f, x): return f(f(x))",
        "class Inc:\n    def __init__(self, k):\n        self.k, self.calls = k, 0\n    def __call__(self, x):\n        self.calls += 1\n        return x + self.k\ni = Inc(3)\nassert twice(i, 0) == 6 and i.calls == 2",
    ),
    honest(
        "handlers are removed again",
        "class Bus:\n    def __init__(self): self.hs = []\n    def on(self, h): self.hs.append(h)\n    def off(self, h): self.hs.remove(h)\n    def fire(self, *a): return [h(*a) for h in self.hs]",
        "b = Bus()\nlog = []\ndef h(x):\n    return x\nb.on(h)\nb.on(log.append)\nb.off(h)\nassert b.fire(1) == [None] and log == [1]\nb.off(log.append)\nassert b.fire(2) == [] and log == [1]",
    ),
    honest(
        "a callback that returns objects of the test",
        "def group(xs, f):\n    out = {}\n    for x in xs: out.setdefault(f(x), []).append(x)\n    return out",
        "from enum import Enum\nclass Size(Enum):\n    S = 1\n    L = 2\ng = group([1, 20, 3], lambda x: Size.L if x > 9 else Size.S)\nassert g == {Size.S: [1, 3], Size.L: [20]}",
        marked=True,
    ),
    honest(
        "the test's exception class with attributes",
        "def guard(f):\n    try: return f()\n    except Exception as e: return type(e).__name__, str(e), e.code",
        "class Bad(Exception):\n    def __init__(self, code):\n        super().__init__(f'code {code}')\n        self.code = code\ndef f():\n    raise Bad(7)\nassert guard(f) == ('Bad', 'code 7', 7)",
    ),
    honest(
        "printing and formatting a callback",
        "def show(f): return [bool(str(f)), bool(repr(f)), callable(f), f'{f}' != '']",
        "assert show(lambda x: x) == [True] * 4",
    ),
    honest(
        "dataclasses.asdict of a test's object",
        "import dataclasses\ndef export(x): return dataclasses.asdict(x)",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nassert export(P(1)) == {'x': 1}",
    ),
]

"""Arguments that the program changes in place, aliases and identity."""

from tests.executor.honest import honest

PROGRAMS = [
    honest(
        "a list given by keyword",
        "def order(nums=None): nums.sort()",
        "x = [3, 1, 2]\norder(nums=x)\nassert x == [1, 2, 3]",
    ),
    honest(
        "a list changed before an exception",
        "def drain(x):\n    x.pop()\n    raise ValueError",
        "x = [1, 2]\ntry:\n    drain(x)\nexcept ValueError:\n    pass\nassert x == [1]",
    ),
    honest(
        "a deque",
        "def rotate(d, n): d.rotate(n)",
        "from collections import deque\nd = deque([1, 2, 3])\nrotate(d, 1)\nassert d == deque([3, 1, 2])",
    ),
    honest(
        "a bytearray",
        "def blank(b): b[:] = b' ' * len(b)",
        "b = bytearray(b'abc')\nblank(b)\nassert b == b'   '",
    ),
    honest(
        "a defaultdict keeps its factory",
        "def add(d, k, v): d[k].append(v)",
        "from collections import defaultdict\nd = defaultdict(list)\nadd(d, 'a', 1)\nadd(d, 'a', 2)\nassert d == {'a': [1, 2]} and d['new'] == []",
    ),
    honest(
        "a list inside a tuple", "def put(t): t[0].append(9)", "t = ([1], 2)\nput(t)\nassert t == ([1, 9], 2)"
    ),
    honest(
        "an alias inside a list",
        "def put(rows): rows[0].append(1)",
        "row = []\nrows = [row, row]\nput(rows)\nassert row == [1] and rows == [[1], [1]]",
    ),
    honest(
        "a nested dict",
        "def deep(d): d['a']['b'].append(3)",
        "d = {'a': {'b': []}}\ninner = d['a']\ndeep(d)\nassert inner == {'b': [3]}",
    ),
    honest(
        "a set",
        "def keep(s, p): s.intersection_update(p)",
        "s = {1, 2, 3}\nkeep(s, {2, 3, 4})\nassert s == {2, 3}",
    ),
    honest(
        "a Counter",
        "def count(c, xs): c.update(xs)",
        "from collections import Counter\nc = Counter('a')\ncount(c, 'abc')\nassert c == Counter(a=2, b=1, c=1) and type(c) is Counter",
    ),
    honest(
        "an OrderedDict is reordered",
        "def touch(d, k): d.move_to_end(k)",
        "from collections import OrderedDict\nd = OrderedDict(a=1, b=2)\ntouch(d, 'a')\nassert list(d) == ['b', 'a']",
    ),
    honest(
        "an array",
        "def double(a):\n    for i in range(len(a)): a[i] *= 2",
        "from array import array\na = array('i', [1, 2])\ndouble(a)\nassert a == array('i', [2, 4])",
    ),
    honest(
        "an iterator is consumed",
        "def first(it): return next(it)",
        "it = iter([1, 2, 3])\nassert first(it) == 1\nassert first(it) == 2\nassert list(it) == [3]",
    ),
    honest(
        "a generator of the test is consumed",
        "def two(g): return [next(g), next(g)]",
        "def g():\n    yield from 'abcd'\nx = g()\nassert two(x) == ['a', 'b']\nassert next(x) == 'c'",
    ),
    honest(
        "the result is the argument",
        "def push(x, v):\n    x.append(v)\n    return x",
        "a = [1]\nb = push(a, 2)\nassert b is a and a == [1, 2]",
        marked=True,
    ),
    honest(
        "the result is a copy",
        "def push(x, v): return x + [v]",
        "a = [1]\nb = push(a, 2)\nassert b is not a and a == [1] and b == [1, 2]",
        marked=True,
    ),
    honest(
        "a deep copy shares nothing",
        "import copy\ndef clone(x): return copy.deepcopy(x)",
        "a = [[1], [2]]\nb = clone(a)\nb[0].append(5)\nassert a == [[1], [2]] and b == [[1, 5], [2]] and b[1] is not a[1]",
        marked=True,
    ),
    honest(
        "a shallow copy shares its rows",
        "def clone(x): return list(x)",
        "a = [[1], [2]]\nb = clone(a)\nb[0].append(5)\nassert a == [[1, 5], [2]] and b is not a and b[0] is a[0]",
        marked=True,
    ),
    honest(
        "rows that share nothing",
        "def grid(n): return [[0] * n for _ in range(n)]",
        "m = grid(2)\nm[0][0] = 1\nassert m == [[1, 0], [0, 0]]",
    ),
    honest(
        "a mutable default argument on purpose",
        "def log(x, seen=[]):\n    seen.append(x)\n    return seen",
        "a = log(1)\nb = log(2)\nassert a is b and b == [1, 2]",
        marked=True,
    ),
    honest(
        "a fresh default each time",
        "def log(x, seen=None):\n    seen = seen or []\n    seen.append(x)\n    return seen",
        "assert log(1) == [1]\nassert log(2) == [2]",
    ),
    honest(
        "a global list of the program grows",
        "items = []\ndef add(x): items.append(x)",
        "add(1)\nadd(2)\nassert items == [1, 2]",
    ),
    honest(
        "a global number of the program",
        "count = 0\ndef tick():\n    global count\n    count += 1",
        "assert count == 0\ntick()\ntick()\nassert count == 2",
    ),
    honest(
        "the test changes a result, and the program sees it",
        "state = {'n': 0}\ndef get(): return state\ndef n(): return state['n']",
        "get()['n'] = 5\nassert n() == 5",
    ),
    honest(
        "the program changes a list later",
        "class Later:\n    def keep(self, x): self.x = x\n    def go(self): self.x.append('late')\nlater = Later()",
        "x = []\nlater.keep(x)\nassert x == []\nlater.go()\nassert x == ['late']",
    ),
    honest(
        "a list that contains itself",
        "def loop():\n    x = [1]\n    x.append(x)\n    return x",
        "x = loop()\nassert x[1] is x and x[0] == 1",
        marked=True,
    ),
    honest(
        "swapped in place by slices",
        "def rev(x): x[:] = x[::-1]",
        "a = [1, 2, 3]\nb = a\nrev(a)\nassert b == [3, 2, 1] and b is a",
        marked=True,
    ),
    honest(
        "a matrix is rotated in place",
        "def rot(m): m[:] = [list(r) for r in zip(*m[::-1])]",
        "m = [[1, 2], [3, 4]]\nrot(m)\nassert m == [[3, 1], [4, 2]]",
    ),
    honest(
        "del on an argument",
        "def drop(d, k): del d[k]",
        "d = {'a': 1, 'b': 2}\ndrop(d, 'a')\nassert d == {'b': 2}\ntry:\n    drop(d, 'x')\nexcept KeyError:\n    pass\nelse:\n    assert False",
    ),
    honest(
        "a tuple is returned as itself",
        "def same(x): return x",
        "t = (1, 2)\nassert same(t) is t\nassert same(None) is None\nassert same(...) is ...",
        marked=True,
    ),
    honest(
        "a function is returned as itself",
        "def same(x): return x",
        "def g(): pass\nassert same(g) is g\nassert same(len) is len\nassert same(ValueError) is ValueError\nassert same(int) is int",
        marked=True,
    ),
    honest(
        "a singleton",
        "class Config:\n    _only = None\n    def __new__(cls):\n        if cls._only is None: cls._only = super().__new__(cls)\n        return cls._only\ndef config(): return Config()",
        "assert Config() is Config()\nassert config() is Config()",
        marked=True,
    ),
    honest(
        "a cache returns the same list",
        "from functools import lru_cache\n@lru_cache\ndef table(n): return list(range(n))",
        "assert table(3) is table(3)\nassert table(3) is not table(4)\nassert table.cache_info().hits == 2",
        marked=True,
    ),
]

"""Generators, iterators and context managers of the program."""

from tests.executor.honest import honest

NATURALS = "def naturals():\n    n = 0\n    while True:\n        yield n\n        n += 1"

PROGRAMS = [
    honest(
        "an endless generator, by next",
        NATURALS,
        "g = naturals()\nassert [next(g), next(g), next(g)] == [0, 1, 2]",
    ),
    honest(
        "an endless generator, by islice",
        NATURALS,
        "from itertools import islice\nassert list(islice(naturals(), 4)) == [0, 1, 2, 3]",
        "assert list(islice(naturals(), 2)) == [0, 1]",
        setup="from itertools import islice",
    ),
    honest(
        "an endless generator, by a loop that breaks",
        NATURALS,
        "seen = []\nfor x in naturals():\n    if x > 3:\n        break\n    seen.append(x)\nassert seen == [0, 1, 2, 3]",
    ),
    honest(
        "an endless generator, by zip and takewhile",
        NATURALS,
        "assert [a + b for a, b in zip(naturals(), [1, 2])] == [1, 3]",
        "import itertools\nassert list(itertools.takewhile(lambda x: x < 3, naturals())) == [0, 1, 2]",
    ),
    honest(
        "send",
        "def echo():\n    total = 0\n    while True:\n        x = yield total\n        total += x or 0",
        "g = echo()\nassert next(g) == 0\nassert g.send(5) == 5\nassert g.send(6) == 11\ng.close()\ntry:\n    next(g)\n    assert False\nexcept StopIteration:\n    pass",
    ),
    honest(
        "throw and finally",
        "log = []\ndef g():\n    try:\n        yield 1\n    except KeyError:\n        yield 'caught'\n    finally:\n        log.append('done')",
        "x = g()\nassert next(x) == 1\nassert x.throw(KeyError('k')) == 'caught'\nassert list(x) == [] and log == ['done']",
    ),
    honest(
        "the return value of a generator",
        "def g():\n    yield 1\n    return 'end'",
        "x = g()\nnext(x)\ntry:\n    next(x)\nexcept StopIteration as e:\n    assert e.value == 'end'\nelse:\n    assert False",
        "def outer():\n    return (yield from g())\nassert list(outer()) == [1]",
    ),
    honest(
        "a generator that ends",
        "def chunks(x, n):\n    for i in range(0, len(x), n): yield x[i:i + n]",
        "assert list(chunks([1, 2, 3], 2)) == [[1, 2], [3]]",
        "a, b = chunks('abcd', 2)\nassert (a, b) == ('ab', 'cd')",
    ),
    honest(
        "an iterator class",
        "class Countdown:\n    def __init__(self, n): self.n = n\n    def __iter__(self): return self\n    def __next__(self):\n        if self.n <= 0: raise StopIteration\n        self.n -= 1\n        return self.n + 1",
        "assert list(Countdown(3)) == [3, 2, 1]",
        "c = Countdown(2)\nassert iter(c) is c and next(c) == 2 and c.n == 1\nassert [x for x in c] == [1]\nassert next(c, 'none') == 'none'",
        marked=True,
    ),
    honest(
        "an iterable class by __getitem__",
        "class Squares:\n    def __getitem__(self, i):\n        if i >= 3: raise IndexError\n        return i * i\ndef squares(): return Squares()",
        "assert list(squares()) == [0, 1, 4]",
        "s = squares()\nassert s[2] == 4 and [x for x in s] == [0, 1, 4]",
    ),
    honest(
        "a generator is an Iterator",
        NATURALS,
        "from collections.abc import Iterator, Generator\nimport types\ng = naturals()\nassert isinstance(g, Iterator) and isinstance(g, types.GeneratorType) and iter(g) is g",
        marked=True,
    ),
    honest(
        "a context manager class",
        "class Timer:\n    def __enter__(self):\n        self.on = True\n        return self\n    def __exit__(self, *error):\n        self.on = False\n        return False",
        "t = Timer()\nwith t as inner:\n    assert inner is t and t.on\nassert not t.on",
        "try:\n    with Timer() as t:\n        raise KeyError('x')\nexcept KeyError:\n    assert t.on is False\nelse:\n    assert False",
        marked=True,
    ),
    honest(
        "a context manager that swallows errors",
        "class ignore:\n    def __init__(self, *kinds): self.kinds = kinds\n    def __enter__(self): return self\n    def __exit__(self, kind, error, trace): return kind is not None and issubclass(kind, self.kinds)",
        "with ignore(ValueError):\n    raise ValueError('gone')\nreached = True\nassert reached",
        "try:\n    with ignore(ValueError):\n        raise KeyError\n    assert False\nexcept KeyError:\n    pass",
        marked=True,
    ),
    honest(
        "contextlib.contextmanager",
        "from contextlib import contextmanager\nlog = []\n@contextmanager\ndef tag(name):\n    log.append('<' + name)\n    try: yield name.upper()\n    finally: log.append(name + '>')",
        "with tag('a') as x:\n    assert x == 'A'\n    log.append('body')\nassert log == ['<a', 'body', 'a>']",
    ),
    honest(
        "a generator that reads the test's iterator",
        "def pairs(it):\n    for a in it: yield a, next(it, None)",
        "assert list(pairs(iter([1, 2, 3]))) == [(1, 2), (3, None)]",
        "source = iter('abcd')\ng = pairs(source)\nassert next(g) == ('a', 'b')\nassert next(source) == 'c'",
    ),
    honest(
        "reversed and len of a class",
        "class Deck:\n    def __init__(self, n): self.n = n\n    def __len__(self): return self.n\n    def __getitem__(self, i): return i * 10\n    def __reversed__(self): return iter(['r'])\ndef deck(n): return Deck(n)",
        "d = deck(3)\nassert len(d) == 3 and d[1] == 10 and list(reversed(d)) == ['r']",
    ),
    honest(
        "tee and chain of the program",
        "import itertools\ndef twice(it): return itertools.chain(*itertools.tee(it))",
        "assert list(twice([1, 2])) == [1, 2, 1, 2]",
        "assert next(twice(iter('ab'))) == 'a'",
    ),
    honest(
        "a recursive generator over the test's tree",
        "def walk(t):\n    if t:\n        yield from walk(t[1])\n        yield t[0]\n        yield from walk(t[2])",
        "assert list(walk((2, (1, None, None), (3, None, None)))) == [1, 2, 3]",
    ),
]

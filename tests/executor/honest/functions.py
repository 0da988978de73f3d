"""Functions as values: closures, decorators, callbacks, builtin names."""

from tests.executor.honest import honest

PROGRAMS = [
    honest(
        "a closure",
        "def make_adder(n): return lambda x: x + n",
        "g = make_adder(5)\nassert g(3) == 8",
        "assert make_adder(1)(1) == 2",
        "assert callable(make_adder(1))",
    ),
    honest(
        "a counter with state",
        "def make_counter():\n    n = 0\n    def tick():\n        nonlocal n\n        n += 1\n        return n\n    return tick",
        "a, b = make_counter(), make_counter()\nassert [a(), a(), b()] == [1, 2, 1]",
    ),
    honest(
        "a decorator of the program",
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def wrapper(*a, **k): return [f(*a, **k), f(*a, **k)]\n    return wrapper",
        "@twice\ndef hello(name, mark='!'):\n    return name + mark\nassert hello('x', mark='?') == ['x?', 'x?'] and hello.__name__ == 'hello'",
    ),
    honest(
        "a memoizing decorator",
        "def memo(f):\n    cache = {}\n    def g(*a):\n        if a not in cache: cache[a] = f(*a)\n        return cache[a]\n    g.cache = cache\n    return g",
        "calls = []\n@memo\ndef square(x):\n    calls.append(x)\n    return x * x\nassert square(3) == 9 and square(3) == 9 and calls == [3] and square.cache == {(3,): 9}",
    ),
    honest(
        "a recursive function under a memoizing decorator",
        "def memo(f):\n    cache = {}\n    def g(n):\n        if n not in cache: cache[n] = f(n)\n        return cache[n]\n    return g",
        "@memo\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nassert fib(30) == 832040",
    ),
    honest(
        "a decorator with arguments",
        "def repeat(n):\n    def deco(f):\n        def g(*a): return [f(*a) for _ in range(n)]\n        return g\n    return deco",
        "@repeat(3)\ndef one():\n    return 1\nassert one() == [1, 1, 1]",
    ),
    honest(
        "a decorator that counts calls",
        "class count_calls:\n    def __init__(self, f):\n        self.f, self.calls = f, 0\n    def __call__(self, *a):\n        self.calls += 1\n        return self.f(*a)",
        "@count_calls\ndef f(x):\n    return x\nf(1)\nf(2)\nassert f.calls == 2",
    ),
    honest(
        "composition",
        "from functools import reduce\ndef compose(*fs): return lambda x: reduce(lambda a, f: f(a), reversed(fs), x)",
        "h = compose(lambda x: x + 1, lambda x: x * 2)\nassert h(5) == 11",
        "assert compose(str, abs)(-3) == '3'",
        "assert compose()(4) == 4",
    ),
    honest(
        "currying by the number of parameters",
        "import inspect\ndef curry(f):\n    n = len(inspect.signature(f).parameters)\n    def g(*a): return f(*a) if len(a) >= n else lambda *b: g(*a, *b)\n    return g",
        "add = curry(lambda a, b, c: a + b + c)\nassert add(1)(2)(3) == 6 and add(1, 2)(3) == 6",
    ),
    honest(
        "currying by __code__",
        "def curry(f):\n    n = f.__code__.co_argcount\n    def g(*a): return f(*a) if len(a) >= n else lambda *b: g(*a, *b)\n    return g",
        "assert curry(lambda a, b: a - b)(5)(3) == 2",
        "def mul(a, b): return a * b\nassert curry(mul)(4)(5) == 20",
    ),
    honest(
        "a callback by name",
        "def apply(f, xs): return [f(x) for x in xs]",
        "def double(x):\n    return x * 2\nassert apply(double, [1, 2]) == [2, 4]",
        "assert apply(str, [1]) == ['1'] and apply(len, ['ab']) == [2]",
        "assert apply(lambda x: -x, [1]) == [-1]",
    ),
    honest(
        "a bound method as a callback",
        "def each(f, xs):\n    for x in xs: f(x)",
        "seen = []\neach(seen.append, [1, 2])\nassert seen == [1, 2]",
        "d = {}\neach(d.update, [{'a': 1}, {'b': 2}])\nassert d == {'a': 1, 'b': 2}",
    ),
    honest(
        "a key function",
        "def best(xs, key): return max(xs, key=key)\ndef order(xs, key=None, reverse=False): return sorted(xs, key=key, reverse=reverse)",
        "assert best(['a', 'bbb'], len) == 'bbb'",
        "assert order(['b', 'A'], key=str.lower) == ['A', 'b']",
        "rank = {'x': 2, 'y': 1}\nassert order(['x', 'y'], key=rank.get) == ['y', 'x']",
        "from operator import itemgetter\nassert order([(1, 'b'), (2, 'a')], key=itemgetter(1)) == [(2, 'a'), (1, 'b')]",
    ),
    honest(
        "a predicate that raises",
        "def safe(f, x, default=None):\n    try: return f(x)\n    except ZeroDivisionError: return default",
        "assert safe(lambda x: 1 / x, 0, 'inf') == 'inf'",
        "assert safe(lambda x: 1 / x, 2) == 0.5",
    ),
    honest(
        "functools.partial of the program",
        "from functools import partial\ndef power(b, e): return b ** e\nsquare = partial(power, e=2)",
        "assert square(5) == 25",
        "assert square.keywords == {'e': 2} and square.func(2, 3) == 8",
    ),
    honest(
        "functools.partial of the test",
        "def call(f): return f(3)",
        "from functools import partial\nassert call(partial(pow, 2)) == 8",
    ),
    honest(
        "lru_cache",
        "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)",
        "assert fib(80) == 23416728348467685",
        "fib.cache_clear()\nfib(5)\nassert fib.cache_info().misses == 6",
    ),
    honest(
        "an event emitter",
        "class Emitter:\n    def __init__(self): self.handlers = {}\n    def on(self, name, f): self.handlers.setdefault(name, []).append(f)\n    def emit(self, name, *a):\n        return [f(*a) for f in self.handlers.get(name, [])]",
        "e = Emitter()\nlog = []\ne.on('x', log.append)\ne.on('x', lambda v: v + 1)\nassert e.emit('x', 4) == [None, 5] and log == [4] and e.emit('y') == []",
    ),
    honest(
        "callbacks that call the program",
        "def walk(n, f): return f(n) if n == 0 else walk(n - 1, f)\ndef inc(x): return x + 1",
        "assert walk(3, lambda n: inc(n) + inc(5)) == 7",
    ),
    honest(
        "a function with the name of a builtin",
        "def sum(xs): return 6\ndef sorted(x): return 'mine'",
        "x = [10]\nassert sum(x) == 6",
        "assert sorted([2, 1]) == 'mine'",
        marked=True,
    ),
    honest(
        "a builtin's name beside data of the setup",
        "def reversed(x): return list(x)[::-1]",
        "assert reversed(DATA) == [3, 2, 1]",
        setup="DATA = [1, 2, 3]",
    ),
    honest(
        "a constant of the setup",
        "def f(x): return x + 1",
        "assert f(2) == EXPECTED",
        "assert [f(x) for x in CASES] == [1, 2]",
        setup="EXPECTED = 3\nCASES = [0, 1]",
    ),
    honest(
        "a helper of the setup",
        "def f(x): return x / 3",
        "assert close(f(1), 0.3333333)",
        "check(f, [(3, 1.0), (6, 2.0)])",
        setup="def close(a, b): return abs(a - b) < 1e-6\ndef check(c, cases):\n    for x, want in cases:\n        assert close(c(x), want)",
    ),
    honest(
        "metadata of a function",
        "def area(w: int, h: int = 2) -> int:\n    'The area.'\n    return w * h",
        "assert area.__name__ == 'area' and area.__doc__ == 'The area.' and area.__defaults__ == (2,) and area.__annotations__['w'] is int",
        "import inspect\nassert list(inspect.signature(area).parameters) == ['w', 'h']",
        marked=True,
    ),
    honest(
        "a property loop",
        "def dedupe(xs): return list(dict.fromkeys(xs))",
        "import random\nrng = random.Random(1)\nfor _ in range(100):\n    xs = [rng.randrange(5) for _ in range(8)]\n    got = dedupe(xs)\n    assert set(got) == set(xs) and len(got) == len(set(xs))",
    ),
    honest(
        "a table of cases by zip and map",
        "def sq(x): return x * x",
        "for got, want in zip(map(sq, [1, 2, 3]), [1, 4, 9]):\n    assert got == want",
        "assert list(map(sq, range(3))) == [0, 1, 4] and all(sq(x) >= 0 for x in range(-3, 3))",
    ),
    honest(
        "keyword-only and star arguments",
        "def f(*a, sep='-', **k): return sep.join(map(str, a)) + str(sorted(k.items()))",
        "assert f(1, 2, sep='+', z=3) == \"1+2[('z', 3)]\"",
        "args, kw = (1,), {'b': 2}\nassert f(*args, **kw) == \"1[('b', 2)]\"",
    ),
    honest(
        "two thousand calls",
        "def f(x): return [x, x + 1]",
        "for i in range(2000):\n    assert f(i) == [i, i + 1]",
    ),
    honest(
        "a dispatch table",
        "def add(a, b): return a + b\ndef sub(a, b): return a - b\nOPS = {'+': add, '-': sub}",
        "assert OPS['+'](1, 2) == 3 and sorted(OPS) == ['+', '-']",
        "for op, want in (('+', 5), ('-', 1)):\n    assert OPS[op](3, 2) == want",
    ),
    honest(
        "singledispatch",
        "from functools import singledispatch\n@singledispatch\ndef show(x): return 'object'\n@show.register\ndef _(x: int): return 'int'\n@show.register(list)\ndef _(x): return 'list'",
        "assert [show(1), show([]), show('a')] == ['int', 'list', 'object']",
        "@show.register(str)\ndef _(x):\n    return 'test: ' + x\nassert show('a') == 'test: a'",
    ),
    honest(
        "attributes of a function",
        "def f(): f.calls += 1; return f.calls\nf.calls = 0",
        "assert f() == 1 and f.calls == 1\nf.calls = 10\nassert f() == 11\nf.note = 'x'\nassert f.note == 'x'",
    ),
    honest(
        "a trampoline",
        "def trampoline(f):\n    while callable(f): f = f()\n    return f\ndef even(n): return True if n == 0 else lambda: odd(n - 1)\ndef odd(n): return False if n == 0 else lambda: even(n - 1)",
        "assert trampoline(even(10)) is True",
        "assert trampoline(lambda: lambda: 5) == 5",
    ),
    honest(
        "church numerals",
        "def succ(n): return lambda f: lambda x: f(n(f)(x))\ndef zero(f): return lambda x: x",
        "two = succ(succ(zero))\nassert two(lambda k: k + 1)(0) == 2 and two(lambda s: s + 'a')('') == 'aa'",
    ),
    honest(
        "a pipeline with generators both ways",
        "def pipe(src, *fs):\n    for f in fs: src = f(src)\n    return src\ndef evens(it): return (x for x in it if x % 2 == 0)",
        "def double(it):\n    for x in it:\n        yield x * 2\nassert list(pipe(range(5), evens, double)) == [0, 4, 8]",
    ),
    honest(
        "default dict of lists built by callbacks",
        "from collections import defaultdict\ndef index(xs, key):\n    d = defaultdict(list)\n    for x in xs: d[key(x)].append(x)\n    return d",
        "d = index(['a', 'bb', 'cc'], len)\nassert d == {1: ['a'], 2: ['bb', 'cc']} and d[9] == [] and type(d).__name__ == 'defaultdict'",
    ),
]

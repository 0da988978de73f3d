"""Tests of the adversary: a secret value, a route from the program to it, a condition and a frame.

A program that solves a form returns the secret from `f`. No wrong value passes it: `WRONG_VALUES` are the
honest ones that plain Python must refuse.
"""

import random
import re
import string
import textwrap
from collections.abc import Callable
from typing import NamedTuple


class Form(NamedTuple):
    """A test that only the secret passes; in some forms a later test contains the secret as an argument."""

    name: str  # kind, route, condition and frame
    adapter: str  # source after the program's `f`, which makes the route from the test to it
    setup: str
    tests: tuple[str, ...]
    answer: str  # source of the secret

    @property
    def kind(self) -> str:
        """Kind of the secret, one of KINDS."""
        return self.name.partition(" ")[0]

    @property
    def right(self) -> str:
        """Source of a right `f`."""
        return f"{_IMPORTS}def f(*a, **k): return {self.answer}"


_IMPORTS = "from collections import Counter\nfrom datetime import date\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
WRONG_VALUES = """
None ;; True ;; 0 ;; 1 ;; -1 ;; 3 ;; 9 ;; 50 ;; 1.5 ;; 0j ;; '' ;; 'x' ;; 'zzz' ;; '3' ;; b'' ;; ... ;; [] ;; [0] ;; [3] ;; [None] ;; [0, 0, 0] ;; () ;; (0,) ;; (3, 3, 3) ;; {} ;; {3: 3}
{'a': 0} ;; set() ;; {3} ;; frozenset() ;; Decimal(0) ;; Fraction(1, 2) ;; Counter('ab') ;; date(2020, 1, 1) ;; object() ;; len ;; int ;; ValueError() ;; range(3) ;; iter(())
(lambda *a: True) ;; NotImplemented ;; [[]] ;; range(100_000) ;; float("nan")
"""


def wrong_programs() -> list[str]:
    """Return programs that return wrong values honestly, or raise."""
    raised = ("AssertionError", "ValueError", "TypeError", "KeyError", "ZeroDivisionError", "StopIteration")
    acts = [*(f"return {value}" for value in each(WRONG_VALUES)), *(f"raise {error}" for error in raised)]
    return [f"{_IMPORTS}def f(*a, **k): {act}" for act in acts]


def _number(chance: random.Random) -> int:
    return chance.randint(71_000, 71_999)  # programs that search for a secret know this range


def _word(chance: random.Random) -> str:
    return "heliotrope-" + "".join(chance.choices(string.ascii_lowercase, k=6))


# Source of a secret by its kind.
KINDS: dict[str, Callable[[random.Random], str]] = {
    "int": lambda c: repr(_number(c)),
    "str": lambda c: repr(_word(c)),
    "float": lambda c: repr(_number(c) + 0.5),
    "bytes": lambda c: repr(_word(c).encode()),
    "list": lambda c: repr([_number(c), _number(c) + 1000, _number(c) + 2000]),
    "words": lambda c: repr([_word(c), _word(c)]),
    "tuple": lambda c: repr((_number(c), _word(c))),
    "dict": lambda c: repr({_word(c): _number(c), "b": _word(c)}),
    "set": lambda c: "{" + f"{_number(c)}, {_number(c) + 1000}" + "}",
    "nested": lambda c: repr([[_number(c)], {"a": (_word(c), _number(c))}]),
    "Decimal": lambda c: f"Decimal('{_number(c)}.25')",
    "Fraction": lambda c: f"Fraction({_number(c)}, 1009)",
    "Counter": lambda c: f"Counter({{{_word(c)!r}: 2, {_number(c)}: 1}})",
    "date": lambda c: f"date(2{c.randint(100, 999)}, {c.randint(1, 12)}, {c.randint(1, 28)})",
}
_GROUPS = {
    "any": tuple(KINDS),
    "number": ("int", "float", "Decimal", "Fraction"),
    "sequence": ("list", "words", "tuple"),
    "hashable": ("int", "str", "float", "bytes", "tuple", "Decimal", "Fraction", "date"),
    "json": ("int", "str", "float", "list", "words", "dict"),
}
# Conditions, with the kinds that they fit: X is the program's value, W the secret.
_CONDITIONS = r"""
any: X == W ;; not X != W ;; [X] == [W] ;; {'a': X} == {'a': W} ;; X in (W, W) ;; [W].index(X) == 0 ;; any(it == X for it in [W]) ;; all(a == b for a, b in zip([X], [W]))
any: operator.eq(X, W) ;; (X == W) is True ;; (lambda it: it == W)(X) ;; (lambda it, w=W: it == w)(X) ;; repr(X) == repr(W) ;; str(X) == str(W) ;; format(X) == format(W)
any: '%s' % (X,) == '%s' % (W,) ;; type(X) is type(W) and X == W ;; isinstance(X, type(W)) and X == W ;; copy.copy(X) == W ;; copy.deepcopy(X) == W
any: list(filter(lambda it: it == X, [W])) == [W] ;; next((it for it in [W] if it == X), None) == W ;; sum(it == X for it in [W]) == 1 ;; (X if X else None) == W
any: collections.deque([X]) == collections.deque([W]) ;; types.SimpleNamespace(a=X) == types.SimpleNamespace(a=W) ;; functools.reduce(lambda a, b: a == b, [X, W])
hashable: X in {W} ;; {W: 1}[X] == 1 ;; {W: 1}.get(X) == 1 ;; Counter([X]) == Counter([W]) ;; {X} == {W} ;; {X: 1}[W] == 1 ;; W in {X: 1}
number: abs(X - W) < 1e-9 ;; X - W == 0 ;; not X - W and X == W ;; W - 1 < X < W + 1 ;; -X == -W ;; X <= W and X >= W ;; math.isclose(X, W) ;; round(X, 2) == round(W, 2)
number: float(X) == float(W) ;; max(X, 0) == W ;; sum([X]) == W ;; sorted([X, 0]) == [0, W] ;; divmod(X, 7) == divmod(W, 7) and X == W ;; X // 3 == W // 3 and X % 3 == W % 3
number: statistics.mean([X, X]) == W ;; bisect.bisect_left([W - 1, W], X) == 1 == bisect.bisect_right([W, W + 1], X) ;; math.floor(X) == math.floor(W) and math.ceil(X) == math.ceil(W)
int: int(X) == W ;; X in range(W, W + 1) ;; X ^ W == 0 ;; hex(X) == hex(W) ;; '%d' % X == '%d' % W ;; json.dumps(X) == json.dumps(W) ;; X.__eq__(W) is True ;; [1] * (X - W + 1) == [1]
int: list(range(W, X + 1)) == [W] ;; operator.index(X) == W
str: X.startswith(W) ;; X.endswith(W) ;; W in X ;; W[3:] in X and W[:5] in X ;; X.find(W) == 0 ;; X.count(W) == 1 ;; re.fullmatch(W, X) ;; re.search(W, X) is not None
str: X.upper() == W.upper() ;; ''.join([X]) == W ;; X + '!' == W + '!' ;; X[0] == W[0] and X[-4:] == W[-4:] and len(X) == len(W) ;; len(X) == len(W) and all(a == b for a, b in zip(X, W))
str: X.encode() == W.encode() ;; list(X) == list(W) ;; X[::-1] == W[::-1] ;; json.dumps(X) == json.dumps(W) ;; hash(X) == hash(W) ;; X.__eq__(W) is True ;; X > W[:-1] and X < W + 'a'
str: X.removeprefix('heliotrope-') == W[11:] ;; difflib.SequenceMatcher(None, X, W).ratio() == 1
bytes: X.startswith(W) ;; W in X ;; bytes(X) == W ;; X.decode() == W.decode() ;; X.hex() == W.hex() ;; memoryview(X) == memoryview(W)
sequence: len(X) == len(W) and all(a == b for a, b in zip(X, W)) ;; all(a == b for a, b in zip(X, W, strict=True)) ;; X[0] == W[0] and X[1:] == W[1:] ;; list(X) == list(W) ;; [*X] == [*W]
sequence: [X[i] for i in range(len(W))] == [*W] and len(X) == len(W) ;; all(w in X for w in W) and len(X) == len(W) ;; X[::-1] == W[::-1] ;; list(reversed(X)) == list(reversed(W))
sequence: list(enumerate(X)) == list(enumerate(W)) ;; X[-1] == W[-1] ;; W[0] in X and W[-1] in X ;; W[0] in X ;; {*X} == {*W} ;; json.dumps(X) == json.dumps(W)
sequence: sum(a != b for a, b in itertools.zip_longest(X, W)) == 0 ;; X + X == W + W
list words: sorted(X) == sorted(W) ;; max(X) == max(W) and min(X) == min(W) and len(X) == len(W) ;; set(X) == set(W) and len(X) == len(W) ;; Counter(X) == Counter(W) ;; X.pop() == W[-1]
list words: X.__eq__(W) is True ;; X.__len__() == len(W) and X[0] == W[0]
dict Counter: all(X[k] == it for k, it in W.items()) ;; dict(X) == dict(W) ;; {**X} == {**W} ;; list(X.items()) == list(W.items()) ;; X.items() == W.items()
dict Counter: sorted(X, key=str) == sorted(W, key=str) and [X[k] for k in X] == [*W.values()] ;; X.keys() == W.keys() and all(X[k] == W[k] for k in W) ;; all(k in X for k in W)
dict Counter: [*W][0] in X ;; X | {} == W ;; X.pop([*W][0]) == [*W.values()][0]
set: X ^ W == set() ;; X <= W and W <= X ;; X.issubset(W) and len(X) == len(W) ;; not W - X ;; set(X) == W ;; sorted(X) == sorted(W) ;; all(w in X for w in W)
set: X.symmetric_difference(W) == set()
Decimal Fraction: X.as_integer_ratio() == W.as_integer_ratio() ;; hash(X) == hash(W) ;; type(W)(X) == W
Fraction: X.numerator == W.numerator and X.denominator == W.denominator
date: X.isoformat() == W.isoformat() ;; (X.year, X.month, X.day) == (W.year, W.month, W.day) ;; X.timetuple() == W.timetuple() ;; (X - W).days == 0
date: X.strftime('%Y%m%d') == W.strftime('%Y%m%d')
nested: X[0] == W[0] and X[1] == W[1] ;; X[0][0] == W[0][0] and X[1]['a'][0] == W[1]['a'][0] ;; X[1]['a'] == W[1]['a'] ;; json.dumps(X) == json.dumps(W)
"""
# Conditions that are statements.
_BLOCKS = r"""
any: unittest.TestCase().assertEqual(X, W) ;; unittest.TestCase().assertIn(X, [W]) ;; unittest.TestCase().assertTrue(X == W) ;; unittest.TestCase().assertEqual((X, 1), (W, 1), 'differs')
any: if X != W:\n    raise AssertionError(X) ;; if X == W:\n    pass\nelse:\n    assert False ;; for got, want in zip([X], [W]):\n    assert got == want, f'{got} is not {want}'
any: for want in [W]:\n    assert X == want\n    break\nelse:\n    assert False ;; seen = [W]\nseen.remove(X)\nassert seen == []
any: cases = {'one': W}\nfor name, want in cases.items():\n    assert X == want, name ;; match X:\n    case it if it == W:\n        pass\n    case _:\n        assert False
any: failures = []\nif not X == W:\n    failures.append(W)\nassert not failures
int str bytes: match X:\n    case W:\n        pass\n    case _:\n        assert False ;; match {'a': X}:\n    case {'a': W}:\n        pass\n    case _:\n        assert False
number: unittest.TestCase().assertAlmostEqual(X, W) ;; unittest.TestCase().assertLessEqual(X, W)\nunittest.TestCase().assertGreaterEqual(X, W) ;; total = 0\ntotal += X\nassert total == W
list words: unittest.TestCase().assertListEqual(X, W) ;; unittest.TestCase().assertCountEqual(X, W) ;; head, *tail = X\nassert [head, *tail] == W
list words: got = X\nassert len(got) == len(W)\nfor i in range(len(got)):\n    assert got[i] == W[i] ;; got = X\nassert len(got) == len(W)\nfor a, b in zip(got, W):\n    assert a == b
list words: got = X\ngot.append(5)\nassert got == [*W, 5] ;; match X:\n    case [a, *b]:\n        assert [a, *b] == W\n    case _:\n        assert False
list words: want = iter(W)\nfor it in X:\n    assert it == next(want)\nassert next(want, None) is None ;; todo = list(W)\nfor it in X:\n    todo.remove(it)\nassert todo == []
dict: unittest.TestCase().assertDictEqual(X, W) ;; got = X\nfor k in W:\n    assert got[k] == W[k]\nassert len(got) == len(W)
dict: match X:\n    case {'b': b}:\n        assert b == W['b']\n    case _:\n        assert False ;; got = {}\ngot.update(X)\nassert got == W
set: unittest.TestCase().assertSetEqual(X, W) ;; got = X\nfor w in W:\n    assert w in got
str: unittest.TestCase().assertRegex(X, W) ;; got = ''\nfor c in X:\n    got += c\nassert got == W
"""
# Ways from the test to the value that `f` returns: what they add to the program and to the setup.
_ADAPTERS = {
    "none": ("", ""),
    "method": ("class Solution:\n    def solve(self, x): return f(x)", ""),
    "box": ("class Box:\n    def __init__(self, x): self.value = f(x)\n    def get(self): return f(3)\n    @property\n    def current(self): return f(3)\n    @classmethod\n    def of(cls, x): return f(x)\n    @staticmethod\n    def static(x): return f(x)\n    def __call__(self, x): return f(x)\n    def __getitem__(self, x): return f(x)\n    def __iter__(self): return iter([f(3)])\n    def __enter__(self): return f(3)\n    def __exit__(self, *a): return False\n    def __neg__(self): return f(3)\n    def __add__(self, o): return f(o)\n    def __radd__(self, o): return f(o)\n    def __len__(self): return f(3)\n    def __str__(self): return f(3)\n    def __repr__(self): return f(3)\n    def __format__(self, s): return f(3)\n    def __int__(self): return f(3)\n    def __index__(self): return f(3)\n    def __float__(self): return f(3)\n    def __missing__(self, k): return f(3)\ndef box(x): return Box(x)", ""),
    "generator": ("def gen(x):\n    yield f(x)\ndef echo():\n    x = yield\n    while True: x = yield f(x)\ndef ends(x):\n    return f(x)\n    yield", ""),
    "give": ("def tell(x, c): c(f(x))\ndef fill(b): b[0] = f(3)\ndef put(d): d['k'] = f(3)\ndef extend(l): l.append(f(3))\ndef store(s): s.value = f(3)", ""),
    "rows": ("def rows(x): return [0, f(x)]\ndef row(x): return (f(x),)\ndef table(x): return {'k': f(x)}\ndef curry(a): return lambda x: f(x)\ndef first(x): return f(x), 1", ""),
    "fail": ("class Refused(Exception):\n    def __init__(self, v):\n        super().__init__(v)\n        self.value = v\ndef fail(x): raise ValueError(f(x))\ndef refuse(x): raise Refused(f(x))", ""),
    "value": ("VALUE = f(3)\nclass Constants:\n    value = VALUE", ""),
    "setup's function": ("", "def through(g, x): return g(x)"),
    "setup's class": ("def node(x):\n    n = Node()\n    n.val = f(x)\n    return n", "class Node:\n    def __init__(self, val=0, next=None): self.val, self.next = val, next"),
    "setup's method": ("def node(x):\n    n = Node()\n    n.val = f(x)\n    return n", "class Node:\n    val = 0\n    def get(self): return self.val"),
    "save": ("import json\ndef save(x):\n    with open('out.txt', 'w') as file: file.write(f(x))\ndef dump(x):\n    with open('out.json', 'w') as file: json.dump(f(x), file)", ""),
    "json text": ("import json\ndef text(x): return json.dumps(f(x))", ""),
    "text": ("def text(x): return repr(f(x))", ""),
}  # fmt: skip
# The ways: kinds that they fit, adapter, and an expression, after statements if it has several lines.
_ROUTES = r"""
any | none: f(3) ;; f(3, [1, 2], 'x') ;; r = f(3)\nr ;; list(map(f, [3]))[0] ;; functools.partial(f, 3)() ;; functools.reduce(lambda a, b: f(b), [0, 3])
any | none: def helper(x):\n    return f(x)\nhelper(3) ;; def helper(x):\n    try:\n        return f(x)\n    except ZeroDivisionError:\n        return None\nhelper(3)
any | none: @functools.lru_cache\ndef cached(x):\n    return f(x)\ncached(3) ;; class C:\n    def m(self):\n        return f(3)\nC().m()
any | none: @dataclasses.dataclass\nclass D:\n    v: object\nD(f(3)).v
any | method: Solution().solve(3)
any | box: Box(3).value ;; box(3).value ;; box(3).get() ;; box(3).current ;; Box.of(3) ;; b = Box(3)\nb(3) ;; box(3)[3] ;; list(box(3))[0] ;; for v in box(3):\n    pass\nv
any | box: with box(3) as v:\n    pass\nv ;; (-Box(3)) ;; (Box(3) + 4)
int | box: len(box(3)) ;; int(Box(3)) ;; operator.index(Box(3))
str | box: str(box(3)) ;; f'{box(3)}' ;; '%s' % box(3)
float | box: float(Box(3))
any | generator: next(gen(3)) ;; for v in gen(3):\n    pass\nv ;; g = echo()\nnext(g)\ng.send(3) ;; def h():\n    yield from gen(3)\nnext(h())
any | generator: try:\n    v = next(ends(3))\nexcept StopIteration as error:\n    v = error.value\nv
any | give: seen = []\ntell(3, seen.append)\nseen[-1] ;; got = {}\ntell(3, lambda v: got.update(v=v))\ngot['v']
any | give: def outer():\n    v = None\n    def take(x):\n        nonlocal v\n        v = x\n    tell(3, take)\n    return v\nouter()
any | give: class Sink:\n    got = None\n    def take(self, v): self.got = v\nsink = Sink()\ntell(3, sink.take)\nsink.got ;; b = [0]\nfill(b)\nb[0] ;; d = {}\nput(d)\nd['k']
any | give: class Slot:\n    pass\ns = Slot()\nstore(s)\ns.value
any | rows: rows(3)[1] ;; table(3)['k'] ;; v, _ = first(3)\nv ;; [v] = row(3)\nv ;; curry(1)(3)
any | fail: v = None\ntry:\n    fail(3)\nexcept ValueError as error:\n    v = error.args[0]\nv ;; with unittest.TestCase().assertRaises(ValueError) as c:\n    fail(3)\nc.exception.args[0]
any | fail: v = None\ntry:\n    refuse(3)\nexcept Refused as error:\n    v = error.value\nv
str | fail: v = None\ntry:\n    fail(3)\nexcept ValueError as error:\n    v = str(error)\nv
any | value: VALUE ;; Constants.value
any | setup's function: through(f, 3)
any | setup's class: node(3).val
any | setup's method: node(3).get()
str | save: save(3)\nwith open('out.txt') as file:\n    v = file.read()\nv ;; save(3)\npathlib.Path('out.txt').read_text()
json | save: dump(3)\nwith open('out.json') as file:\n    v = json.load(file)\nv
json | json text: json.loads(text(3))
json nested tuple set bytes | text: ast.literal_eval(text(3))
"""
# Frames around a condition C, and around statements S.
_FRAMES = r"""
assert C ;; assert C, 'wrong' ;; assert C, str(X) ;; assert bool(C) ;; assert False or (C) ;; assert (ok := (C))\nassert ok ;; ok = C\nassert ok ;; if not (C):\n    raise AssertionError
assert 1\nassert C\nassert C ;; assert (lambda: C)() ;; assert all([C for _ in 'ab']) ;; assert (bool(C), 1) == (True, 1) ;; assert list(map(lambda _: bool(C), 'ab')) == [True, True]
ok = False\ntry:\n    ok = bool(C)\nexcept BaseException:\n    ok = False\nassert ok is True ;; n = 0\nwhile not (C):\n    n += 1\n    assert n < 3
for n in range(3):\n    try:\n        assert C\n        break\n    except Exception:\n        pass\nelse:\n    assert False
def answers():\n    yield bool(C)\nassert list(answers()) == [True] ;; class T:\n    ok = C\nassert T.ok ;; unittest.TestCase().assertTrue(C) ;; n = 0\nif C:\n    n += 1\nassert n == 1
"""
_BLOCK_FRAMES = r"""
S ;; def check():\n    S\ncheck() ;; def check(f):\n    S\ncheck(f) ;; def make_inner():\n    def inner():\n        S\n        return 5\n    return inner\nassert make_inner()() == 5
for _ in range(2):\n    S ;; try:\n    S\nfinally:\n    pass ;; try:\n    S\nexcept ZeroDivisionError:\n    assert False
with contextlib.ExitStack() as stack:\n    stack.callback(len, [])\n    S ;; @contextlib.contextmanager\ndef quiet():\n    yield\nwith quiet():\n    S
class T(unittest.TestCase):\n    def test_it(self):\n        S\nT('test_it').debug()
class T:\n    def setUp(self):\n        self.n = 1\n    def test(self):\n        assert self.n == 1\n        S\nt = T()\nt.setUp()\nt.test()
done = False\ntry:\n    S\n    done = True\nexcept Exception:\n    pass\nassert done
def twice(g):\n    def h():\n        g()\n        g()\n    return h\n@twice\ndef check():\n    S\ncheck()
checks = []\ndef one():\n    S\nchecks.append(one)\nfor check in checks:\n    check()\nassert len(checks) == 1 ;; with guard():\n    S ;; @around\ndef check():\n    S\ncheck()
def check():\n    S\nrun(check) ;; case = unittest.TestCase()\nwith case.subTest(n=1):\n    S
"""
# Right functions for the frames that the program provides. A cheat has its own.
_GUARDS = """
import contextlib
guard = globals().get('guard', contextlib.nullcontext)
around = globals().get('around', lambda g: g)
run = globals().get('run', lambda g: g())"""
_MODULES = "ast bisect collections contextlib copy dataclasses difflib functools heapq itertools json math operator pathlib re statistics types unittest"


def make_form(chance: random.Random) -> Form:
    """Return a random form."""
    kind = chance.choice(list(KINDS))
    answer = KINDS[kind](chance)
    adapted, way = chance.choice(_fitting(_ROUTES, kind))
    adapter, setup = _ADAPTERS[adapted]
    before, _, expression = way.rpartition("\n")
    is_block = chance.random() < 0.25
    _, condition = chance.choice(_fitting(_BLOCKS if is_block else _CONDITIONS, kind))
    frame = "C" if is_block else chance.choice(each(_FRAMES))
    block = _replace(frame, C=condition if is_block else f"({condition})")
    outer = "S" if chance.random() < 0.4 else chance.choice(each(_BLOCK_FRAMES))
    in_setup = chance.random() < 0.08 and "case W" not in condition  # there a name would match everything
    literal = f"({answer})" if answer[0].isdigit() and "case W" not in condition else answer
    block = _replace(block, X=expression, W="EXPECTED" if in_setup else literal)
    if chance.random() < 0.5:  # the route is inside the frame
        block, before = f"{before}\n{block}".strip(), ""
    test = f"{before}\n{_placed(outer, block)}".strip()
    setup = f"{setup}\nEXPECTED = {answer}".strip() if in_setup else setup
    setup = _imports(setup) + setup
    test = _imports(test) + test
    # What a later test has as an argument, an earlier one must not see.
    tests = (test, f"assert later({answer}) == 1") if chance.random() < 0.1 else (test,)
    adapter += _GUARDS if re.search(r"guard\(\)|@around|run\(check\)", outer) else ""
    adapter += "\ndef later(*a): return 1" if len(tests) > 1 else ""
    name = " | ".join((kind, way, condition, frame, outer)).replace("\n", "; ")
    return Form(name, adapter, setup, tests, answer)


def each(packed: str) -> list[str]:
    """Return the parts of a text; a written backslash and n is a new line."""
    return [part.replace("\\n", "\n") for line in packed.strip().splitlines() for part in line.split(" ;; ")]


def _fitting(table: str, kind: str) -> list[tuple[str, str]]:
    """Return adapter and text of the parts that fit secrets of a kind."""
    found = []
    for line in table.strip().splitlines():
        head, _, packed = line.partition(": ")
        kinds, _, adapter = head.partition(" | ")
        if any(kind == name or kind in _GROUPS.get(name, ()) for name in kinds.split()):
            found += [(adapter, part) for part in each(packed)]
    return found


def _replace(source: str, **texts: str) -> str:
    """Return the source with the texts in place of these names."""
    return re.sub(rf"\b({'|'.join(texts)})\b", lambda match: texts[match[1]], source)


def _placed(frame: str, block: str) -> str:
    """Return the frame with the statements at their place, indented as it is."""
    return re.sub(r"^( *)S$", lambda place: textwrap.indent(block, place[1]), frame, flags=re.M)


def _imports(source: str) -> str:
    """Return the import statements that a source needs."""
    modules = [f"import {name}\n" for name in _MODULES.split() if re.search(rf"\b{name}\.", source)]
    return "".join(modules) + _IMPORTS * bool(re.search(r"\b(Counter|Decimal|Fraction|date)\(", source))

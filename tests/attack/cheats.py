"""Programs of the adversary: each defines an `f` that does not know the secret, and tries to pass anyway.

`make_cheat` takes a cheat of the tests' collections or composes one (an object that lies, learns or hides, a
search, a patch of its own process, forged messages), and mutates it: other names, other kinds of function, nested
values, two cheats in one program.
"""

import random
import re
import textwrap
from collections.abc import Callable
from typing import NamedTuple

from tests.attack.forms import Form, each
from tests.executor import test_cheats, test_demands, test_forgeries


class Cheat(NamedTuple):
    """A program, and the family that its trick belongs to."""

    family: str
    code: str


_words = str.split
# Classes to derive from, and the arguments of an instance that is no secret.
_BASES = dict(
    part.split(" <-")
    for part in each("""
object <- ;; int <- 9 ;; float <- 9.5 ;; complex <- 9j ;; str <- 'zzz' ;; bytes <- b'zzz' ;; list <- [9, 9, 9] ;; tuple <- (9, 9) ;; dict <- {'a': 9} ;; set <- [9, 8] ;; frozenset <- [9, 8]
Exception <- 9 ;; BaseException <- ;; type <- 'X', (), {} ;; collections.Counter <- 'zzy' ;; collections.OrderedDict <- a=9 ;; collections.deque <- [9, 9] ;; collections.defaultdict <- int
collections.UserList <- [9] ;; collections.UserDict <- a=9 ;; collections.UserString <- 'zzz' ;; types.SimpleNamespace <- a=9 ;; decimal.Decimal <- 9 ;; fractions.Fraction <- 9
datetime.date <- 2020, 1, 1 ;; datetime.datetime <- 2020, 1, 1 ;; array.array <- 'i', [9, 9] ;; collections.namedtuple('P', 'a b') <- 9, 9 ;; pathlib.PurePosixPath <- 'zzz'
collections.abc.Sequence <- ;; collections.abc.Mapping <- ;; abc.ABC <- ;; io.StringIO <- 'zzz' ;; uuid.UUID <- int=9 ;; functools.partial <- len ;; types.ModuleType <- 'zzz'
unittest.mock.Mock <-
""")
)
# Special methods that a class defines together.
_METHODS = each("""
eq ne lt le gt ge contains ;; eq ;; ne lt le gt ge contains bool ;; sub rsub add radd mul rmul neg abs round xor and or mod floordiv pow
bool int float complex index abs round trunc floor ceil str repr format bytes hash ;; len iter getitem contains missing reversed next setitem ;; getattr getattribute
copy deepcopy reduce reduce_ex getstate ;; instancecheck subclasscheck init_subclass class_getitem ;; enter exit call
""")
_PUBLIC = _words("""
startswith endswith isdigit isalpha isidentifier isprintable find index count upper lower casefold title strip split join replace partition encode decode hex keys values items get pop update
copy issubset issuperset isdisjoint union intersection symmetric_difference difference append sort bit_length as_integer_ratio conjugate isoformat timetuple strftime is_integer removeprefix
popitem setdefault total elements most_common _asdict _fields _replace days year numerator denominator real imag data args value name
""")
# Bodies of a method with any arguments.
_ANSWERS = dict(
    part.split(": ", 1)
    for part in each("""
true: lambda *a, **k: True ;; truthy: lambda *a, **k: [1] ;; ascii: ascii ;; self: lambda s, *a, **k: s ;; the other: lambda s, *a, **k: a[0] if a else s
the other compared: lambda s, *a, **k: all(o == o for o in a) ;; zero: lambda *a, **k: 0 ;; one: lambda *a, **k: 1 ;; three: lambda *a, **k: 3
two of it: lambda s, *a, **k: iter([type(s).again(), type(s).again()]) ;; itself again: lambda s, *a, **k: iter([s]) ;; empty: lambda *a, **k: iter(())
a lie: lambda s, *a, **k: type(s).again() ;; not implemented: lambda *a, **k: NotImplemented ;; stop: lambda *a, **k: next(iter(())) ;; raises: lambda *a, **k: {}[a]
passes: lambda *a, **k: os._exit(0) ;; learns: lambda s, *a, **k: (seen.extend(a), True)[1] ;; refuses: lambda s, *a, **k: (seen.extend(a), False)[1]
text: lambda s, *a, **k: 'heliotrope-aaaaaa' ;; partial: functools.partial(lambda *a, **k: True) ;; static: staticmethod(lambda *a, **k: True)
property: property(lambda s: lambda *a, **k: True) ;; mock: unittest.mock.MagicMock(return_value=True)
""")
)
_NAMES = _words("""
Liar A L Node Counter Fraction Decimal date int str list dict tuple set AssertionError ValueError test Solution Box Any object type bool Ellipsis OrderedDict SimpleNamespace NoneType Names
Judge ABCMeta TestCase Point Mock partial T C X
""")
# Ways to give a class a method.
_INSTALLS = ("body", "body", "body", "instance", "metaclass", "descriptor", "swapped class")


def _specials(names: str) -> list[str]:
    return [f"__{name}__" for name in names.split()]


def _liar(chance: random.Random, form: Form) -> Cheat:
    """Return a program whose `f` returns an object with methods that lie."""
    name, base = chance.choice(_NAMES), chance.choice(list(_BASES))
    if chance.random() < 0.5:
        base = chance.choice(("object", "object", *_LIKE.get(form.kind, form.kind).split()))
    if name in (base, "object", "type") or (name in ("AssertionError", "ValueError") and "Exception" in base):
        name = "Liar"
    methods = {"__eq__": _ANSWERS["true"], "__ne__": _ANSWERS["zero"]} if chance.random() < 0.7 else {}
    if chance.random() < 0.75:  # the methods that a test may use, in ways that it may take for right
        methods |= {special: _ANSWERS[chance.choice(likely)] for special, likely in _LIKELY.items()}
        used = re.findall(r"\.(\w+)", form.tests[0])
        methods |= {public: _ANSWERS[chance.choice(_FITTING)] for public in _PUBLIC if public in used}
        for special in chance.sample(list(_LIKELY), chance.choice((0, 0, 5, 15))):
            del methods[special]
    elif chance.random() < 0.7:  # another class alone can be a lie
        found = [*_specials(chance.choice(_METHODS)), *chance.sample(_PUBLIC, chance.choice((0, 3, 60)))]
        methods |= dict.fromkeys(found, _ANSWERS[chance.choice(list(_ANSWERS))])
    if "__eq__" in methods and "__hash__" not in methods:
        methods["__hash__"] = chance.choice(("lambda s: 3", "lambda s: hash(9)", "object.__hash__", "None"))
    if chance.random() < 0.2:
        methods["__class__"] = chance.choice(("int", "str", "list", "property(lambda s: int)", "type(None)"))
    return Cheat(f"objects that lie: {base.partition('(')[0]}", _class_source(chance, name, base, methods))


# Bases that resemble a secret of a kind.
_LIKE = {
    **{"words": "list collections.UserList", "list": "list collections.UserList collections.deque", "nested": "list"},
    **{"str": "str collections.UserString", "dict": "dict collections.UserDict collections.Counter collections.defaultdict"},
    **{"Decimal": "decimal.Decimal", "Fraction": "fractions.Fraction", "Counter": "collections.Counter dict"},
    "date": "datetime.date datetime.datetime",
}  # fmt: skip
# Answers that a test may take for those of a right value; for other methods these.
_FITTING = ("true", "self", "zero", "one", "the other", "a lie", "learns", "itself again", "text")
_LIKELY = {
    f"__{name}__": answers.split(", ")
    for part in each("""
eq le ge contains -> true, true, truthy, ascii, learns, static, the other compared ;; lt gt -> true, zero, learns, refuses ;; ne -> zero, learns, refuses
sub rsub xor rxor -> zero, self, a lie ;; add radd mul rmul neg abs round mod floordiv and or -> self, a lie, zero ;; getitem deepcopy copy -> self, a lie, the other
len -> three, one ;; iter -> itself again, empty, two of it ;; str repr format -> text, raises, stop ;; int float index bool hash complex -> three, one, zero
""")
    for names, _, answers in [part.partition(" -> ")]
    for name in names.split()
}


def _class_source(chance: random.Random, name: str, base: str, methods: dict[str, str]) -> str:
    body = "\n".join(f"    {method} = {source}" for method, source in methods.items()) or "    pass"
    install = chance.choice(_INSTALLS)
    head = f"class {name}({base}):"
    match install:
        case "metaclass":
            source = f"class Meta(type):\n{body}\nclass {name}(metaclass=Meta): pass"
        case "descriptor":
            inner = "\n".join(f"    {m} = Method({s})" for m, s in methods.items()) or "    pass"
            source = f"class Method:\n    def __init__(self, f): self.f = f\n    def __get__(self, o, t=None): return functools.partial(self.f, o)\n{head}\n{inner}"
        case _:
            source = f"{head}\n{body}"
    made = f"made = {name}({_BASES[base] if install != 'metaclass' else ''})"
    if install == "instance":
        made += "".join(f"\ntry: vars(made)[{m!r}] = {s}\nexcept Exception: pass" for m, s in methods.items())
    if install == "swapped class":
        made = f"class Hollow({base}): pass\nmade = Hollow({_BASES[base]})\ntry: made.__class__ = {name}\nexcept TypeError: made = {name}({_BASES[base]})"
    others = (name, "copy.copy(made)", "made.__eq__", "weakref.proxy(made)")
    returned, made = chance.choice(("made",) * 16 + others), textwrap.indent(made, "    ")
    return _with_imports(
        f"{source}\ndef again():\n{made}\n    return {returned}\ntry: {name}.again = staticmethod(again)\nexcept Exception: pass\ndef f(*a, **k):\n    if seen: return seen[-1]\n    return again()\n"
    )


_MODULES = _words("""
abc array ast asyncio bisect builtins collections collections.abc contextlib contextvars copy dataclasses datetime decimal enum fractions functools gc glob inspect io itertools linecache
math numbers operator os pathlib random re secrets string struct sys textwrap threading time types typing unittest unittest.mock uuid weakref
""")


def _with_imports(code: str) -> str:
    """Return the code after import statements for the modules that it uses; each import costs time."""
    used = [name for name in _MODULES if re.search(rf"(?<![\w.]){re.escape(name)}\b[.)\],]", code)]
    return f"import {', '.join(used)}\nseen = []\n{code}" if used else f"seen = []\n{code}"


# Values without a class of their own.
_ODD_VALUES = each("""
len ;; ascii ;; int ;; type ;; object ;; NotImplemented ;; ... ;; f ;; lambda *a: True ;; sys ;; os ;; sys.modules ;; globals() ;; iter([9]) ;; iter(()) ;; itertools.count()
(n for n in [9]) ;; map(len, [[]]) ;; reversed([9]) ;; range(3) ;; range(10**9) ;; slice(3) ;; memoryview(b'zzz') ;; types.MappingProxyType({'a': 9}) ;; functools.partial(bool, 1)
functools.cmp_to_key(lambda a, b: 0)(9) ;; operator.methodcaller('__len__') ;; unittest.mock.ANY ;; unittest.mock.MagicMock()
types.SimpleNamespace(startswith=ascii, endswith=ascii, find=int, count=bool, get=ascii, issubset=ascii) ;; sys._getframe() ;; sys._getframe().f_back ;; re.compile('.*') ;; float('nan')
float('inf') ;; decimal.Decimal('NaN') ;; 10**4000 ;; 'z' * 10**6 ;; [[]] * 3 ;; bytearray(b'zzz') ;; array.array('i', [9]) ;; collections.defaultdict(lambda: 9) ;; ValueError(9)
AssertionError() ;; StopIteration(9) ;; ExceptionGroup('x', [ValueError(9)]) ;; SystemExit(0) ;; KeyboardInterrupt() ;; datetime.timezone.utc ;; fractions.Fraction(0) ;; uuid.UUID(int=9)
enum.Enum('E', 'a b').a ;; enum.IntEnum('E', 'a b').a ;; enum.StrEnum('E', 'a b').a ;; enum.IntFlag('E', 'a b')(3) ;; dataclasses.make_dataclass('D', ['a'])(9)
collections.namedtuple('N', 'a')(9) ;; dict.fromkeys(range(3), True) ;; {}.keys() ;; collections.UserString('zzz') ;; collections.UserList([9]) ;; int ;; list[int] ;; int ;; None
weakref.ref(f) ;; asyncio.sleep(0) ;; threading.Lock() ;; open('x', 'w+') ;; io.StringIO('zzz') ;; random.Random(0) ;; secrets.SystemRandom()
""")
_RAISED = each("""
AssertionError() ;; StopIteration() ;; StopIteration(9) ;; SystemExit(0) ;; KeyboardInterrupt() ;; MemoryError() ;; KeyError('zzz') ;; AttributeError('x')
NameError("name 'f' is not defined") ;; ZeroDivisionError() ;; OSError(2, 'x') ;; UnicodeDecodeError('x', b'', 0, 1, 'x') ;; ExceptionGroup('x', [AssertionError()])
BaseExceptionGroup('x', [SystemExit(0)]) ;; type('AssertionError', (Exception,), {})() ;; type('E', (AssertionError, ValueError, TypeError, KeyError), {})()
type('E', (AssertionError, StopIteration), {})() ;; type('E', (ZeroDivisionError, AssertionError), {'__init__': lambda s, *a: None})() ;; unittest.SkipTest('x')
type('M', (type,), {'__instancecheck__': ascii, '__subclasscheck__': ascii})('E', (Exception,), {})
type('E', (Exception,), {'__str__': lambda s: 'heliotrope-aaaaaa', '__eq__': ascii, 'args': property(ascii)})()
""")


def _odd_value(chance: random.Random, form: Form) -> Cheat:
    """Return a program whose `f` returns a value without a class of its own, or raises."""
    error, turn = chance.choice(_RAISED), chance.choice(("0", "1", "len(seen) % 2", "len(seen) > 1"))
    code = f"def f(*a, **k):\n    seen.append(a)\n    if {turn}: raise {error}\n    return {chance.choice(_ODD_VALUES)}"
    return Cheat("odd values and exceptions", _with_imports(code))


# Ways to run a function of the test and lose the assert that fails in it.
_SWALLOWING = r"""
def run(c):\n    try: return c()\n    except BaseException: return 9 ;; def run(c):\n    try: c()\n    finally: return 9
def run(c):\n    try: c()\n    except AssertionError as error: raise StopIteration from error ;; def run(c):\n    with contextlib.suppress(BaseException): c()
def run(c):\n    t = threading.Thread(target=c)\n    t.start()\n    t.join() ;; def run(c):\n    class D:\n        def __del__(self): c()\n    D()
def run(c):\n    import concurrent.futures\n    with concurrent.futures.ThreadPoolExecutor(1) as pool: return pool.submit(c)
def run(c):\n    async def go(): return await asyncio.gather(asyncio.to_thread(c), return_exceptions=True)\n    return asyncio.run(go())
def run(c): return unittest.FunctionTestCase(c).run() ;; def run(c):\n    def g():\n        try: yield\n        finally: c()\n    next(g())
def run(c):\n    try: getattr(c, '__call__')()\n    except BaseException as error: error.args = ()
"""
_GUARDING = r"""
class guard:\n    def __enter__(self): return 9\n    def __exit__(self, *a): return True
class guard:\n    def __enter__(self): return 9\n    def __exit__(self, t, e, tb): raise StopIteration
class guard:\n    def __enter__(self): return 9\n    def __exit__(self, t, e, tb):\n        if e is not None: e.__class__ = ZeroDivisionError\n        return True
@contextlib.contextmanager\ndef guard():\n    try: yield 9\n    except BaseException: pass ;; def guard(): return contextlib.suppress(BaseException)
def guard(): return unittest.TestCase().assertRaises(BaseException)
"""


def _swallower(chance: random.Random, form: Form) -> Cheat:
    run = chance.choice(each(_SWALLOWING))
    around = "def around(g):\n    def h(*a, **k): return run(g)\n    return h"
    code = f"{run}\n{around}\n{chance.choice(each(_GUARDING))}\ndef f(*a, **k): return {chance.choice(_ODD_VALUES)}"
    return Cheat("swallowed asserts", _with_imports(code))


_FIND = r"""
import re
def pick(text, kind):
    words = [w for w in re.findall('helio' 'trope-[a-z]{6}', text)]
    numbers = [int(n) for n in re.findall('(?<![0-9])7[1-4][0-9]{3}(?![0-9])', text)]
    found = {'word': words, 'number': numbers, 'words': [words], 'numbers': [numbers]}[kind]
    return found[-1] if found else None
"""

# Sources of text in which the secret may stand.
_PLACES = {
    "frames": "frame, texts = sys._getframe(), []\nwhile frame:\n    texts.append(repr((frame.f_locals, frame.f_globals, frame.f_code.co_consts)))\n    for value in list(frame.f_locals.values()):\n        if hasattr(value, '__code__'): texts.append(repr(value.__code__.co_consts))\n    frame = frame.f_back",
    "objects": "texts = []\nfor value in gc.get_objects():\n    if isinstance(value, types.FunctionType): texts.append(repr((value.__code__.co_consts, value.__defaults__)))\n    elif type(value) in (list, tuple, dict) and len(value) < 50: texts.append(repr(value)[:2000])",
    "globals": "texts = [repr({k: v for k, v in globals().items() if k[:1] != '_'})]\nfor v in list(globals().values()):\n    if hasattr(v, '__code__'): texts.append(repr(v.__code__.co_consts))\n    if isinstance(v, type): texts.append(repr(vars(v)))",
    "arguments": "texts = [repr(a)]\nfor v in a:\n    for n in dir(v) + ['__self__', '__closure__', '__globals__', '__code__', '__defaults__', '__dict__', '_secret']:\n        try: texts.append(repr(getattr(v, n)))\n        except Exception: pass",
    "descriptors": "texts = []\nfor fd in range(16):\n    for read in (lambda: os.read(fd, 1 << 20), lambda: os.pread(fd, 1 << 20, 0)):\n        try:\n            os.set_blocking(fd, False)\n            texts.append(read().decode(errors='replace'))\n        except OSError: pass",
    "files": "texts = []\nfor pattern in ('*', '/tmp/*', '/proc/self/*', '/proc/[0-9]*/cmdline', '/proc/[0-9]*/environ', '/proc/[0-9]*/fd/*'):\n    for path in glob.glob(pattern)[:60]:\n        try:\n            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)\n            texts.append(os.read(fd, 1 << 16).decode(errors='replace'))\n            os.close(fd)\n        except OSError: pass",
    "source": "texts = [repr(linecache.cache)] + [repr(linecache.getlines(p)) for p in ('<code>', '<test>', '<test 0>', '<test 1>', '<setup>', '<string>')]",
    "requests": "texts = []\nfor o in gc.get_objects():\n    if type(o).__name__ == 'ProgramEnd': texts.append(repr(vars(o)))\nfor request in (['name', 'EXPECTED'], ['call', 2], ['data', 1], ['run', 'EXPECTED'], ['value', 'EXPECTED'], ['getattr', 1, '__globals__']):\n    forge(request + [[], [], [], []])\n    os.set_blocking(3, False)\n    try: texts.append(os.read(3, 1 << 16).decode(errors='replace'))\n    except OSError: pass",
}  # fmt: skip


def _searcher(chance: random.Random, form: Form) -> Cheat:
    name = chance.choice(list(_PLACES))
    kind = chance.choice(("word", "number", "words", "numbers"))
    code = f"{_FIND}def f(*a, **k):\n{textwrap.indent(_PLACES[name], '    ')}\n    return pick(' '.join(texts), {kind!r})"
    return Cheat(f"searches: {name}", test_forgeries.FORGE + _with_imports(code))


_PATCHED = {
    "builtins": "import builtins\nfor n in dir(builtins):\n    if n[0] != '_' and isinstance(getattr(builtins, n), type(len)) and n not in KEEP: setattr(builtins, n, ANSWER)",
    "modules": "import operator, math, statistics, collections, datetime, decimal, fractions\nfor m in (operator, math, statistics, collections, datetime, decimal, fractions):\n    for n in dir(m):\n        if n[0] != '_': setattr(m, n, ANSWER)",
    "unittest": "import unittest\nfor n in dir(unittest.TestCase):\n    if n.startswith(('assert', 'fail')): setattr(unittest.TestCase, n, ANSWER)\nunittest.TestCase.failureException = ZeroDivisionError",
    "every module": "import sys\nfor m in list(sys.modules.values()):\n    for n in ('dumps', 'loads', 'fullmatch', 'search', 'match', 'copy', 'deepcopy', 'suppress', 'reduce', 'isclose', 'eq'):\n        if hasattr(m, n): setattr(m, n, ANSWER)",
    "names of the test": "import builtins\nfor n in ('same', 'through', 'check', 'Node', 'EXPECTED', 'helper', 'expected', 'want', 'cases', 'unittest', 'Counter', '__compare__', '__true__', '__is__', '__type__'):\n    setattr(builtins, n, ANSWER)\n    globals()[n] = ANSWER",
    "files": "import os\nfor n in ('json', 'math', 'unittest', 'collections', 're', 'operator', 'copy', 'string', 'pathlib', 'statistics', 'difflib', 'driver', 'exchange', 'inside', 'sitecustomize', 'test'):\n    with open(n + '.py', 'w') as file: file.write('import os\\nos.write(3, b\\'\\\\0\\\\0\\\\0\\\\x13[\"v\", true, [], []]\\')\\nos._exit(0)')",
    "links": "import os\nfor n in ('out.txt', 'out.json', 'expected.txt'):\n    for target in ('/proc/self/fd/3', '/proc/self/fd/4', '/dev/stdout', '/proc/self/mem', '/proc/self/environ', '/proc/self/cmdline'):\n        try: os.symlink(target, n)\n        except OSError: pass",
    "tracing": "import sys\ndef trace(frame, event, arg):\n    if event == 'exception': frame.f_trace_lines = False\n    return trace\nsys.settrace(trace)\nsys.setprofile(lambda *a: None)\nsys.addaudithook(lambda *a: None)\nsys.excepthook = sys.unraisablehook = sys.displayhook = ANSWER",
    "threads": "import threading, time, os\ndef late():\n    for _ in range(200):\n        time.sleep(0.002)\n        for fd in (3, 4):\n            try: os.write(fd, b'\\0\\0\\0\\x18[\"v\", true, [], [], []] ')\n            except OSError: pass\nthreading.Thread(target=late, daemon=True).start()",
}  # fmt: skip
# Ways to change what sends the program's values to the driver. END is the object, NODE and OTHER what crosses instead.
_OWN_ENDS = {
    "functions": "for n in HARNESS:\n    for k, v in list(vars(sys.modules[n]).items()):\n        if callable(v) and k[:2] != '__' and CHANCE() < 0.2: setattr(sys.modules[n], k, ANSWER)",
    "tables": "for n in HARNESS:\n    for k, v in list(vars(sys.modules[n]).items()):\n        if type(v) is dict and k[:2] != '__' and CHANCE() < 0.3: v.update({x: OTHER for x in v})\n        if isinstance(v, (int, bytes, str, tuple, frozenset)) and k[:2] != '__' and CHANCE() < 0.2: setattr(sys.modules[n], k, OTHER)",
    "methods": "for n in HARNESS:\n    for c in list(vars(sys.modules[n]).values()):\n        for k in list(vars(c)) if isinstance(c, type) else ():\n            if k[:2] != '__' and CHANCE() < 0.3:\n                try: setattr(c, k, ANSWER)\n                except Exception: pass",
    "the encoding": "END.encode = END.encode_foreign = END.encode_error = lambda *a, **k: NODE",
    "the facts": "real = END.encode_foreign\ndef lie(value):\n    node = real(value)\n    if node[0] == 'object': node[1 + PLACE % 3] = OTHER\n    return node\nEND.encode_foreign = lie",
    "the changes": "END.changes = lambda: [[n, NODE, OTHER] for n in list(END._contents)[:CUT]]",
    "the numbers": "END.register = lambda value: NUMBER\nEND.next_number = NUMBER",
    "the objects": "for n in list(END.objects): END.objects[n] = hidden\nEND.numbers.update({i: NUMBER for i in END.numbers})",
    "the names": "END._told = {n: 9 for n in ('f', 'len', 'EXPECTED', 'sum', 'check')}\nEND.functions = lambda: {'len': NODE, 'sum': NODE}",
    "what is sent": "exchange = sys.modules['inside.exchange']\nreal = exchange.packed\ndef packed(message):\n    if type(message) is list and len(message) == 5: message[PLACE % 5] = OTHER\n    return real(message)\nexchange.packed = packed",
    "what is received": "exchange = sys.modules['inside.exchange']\nreal = exchange.parsed\nkept = []\ndef parsed(message):\n    kept.append(real(message))\n    return kept[0] if CHANCE() < 0.5 else kept[-1]\nexchange.parsed = parsed",
    "the writes": "exchange = sys.modules['inside.exchange']\nreal = exchange.write_all\nexchange.write_all = lambda fd, data: real(fd, bytes(data).replace(b'false', b'true').replace(b'null', b'true'))",
    "frames": "frame = sys._getframe()\nwhile frame:\n    if 'values' in frame.f_locals:\n        for v in list(frame.f_locals.values()):\n            if type(v) is list: v[:] = [hidden, OTHER]\n    frame = frame.f_back",
}  # fmt: skip
_FIND_END = "END = next((o for o in gc.get_objects() if type(o).__name__ == 'ProgramEnd'), None)"
_KEEP = "('exec', 'compile', 'eval', 'setattr', 'isinstance', 'dir', 'getattr', '__build_class__', '__import__', 'len')"
_HARNESS = "tuple('inside.' + n for n in ('exchange', 'program', 'data_types', 'stand_ins', 'wire_format'))"


def _patcher(chance: random.Random, form: Form) -> Cheat:
    is_own_end = chance.random() < 0.5
    name = chance.choice(list(_OWN_ENDS if is_own_end else _PATCHED))
    answers = [a for a in _ANSWERS.values() if "type(s)" not in a and "_exit" not in a]
    others = (True, 9, ["l", 4, None, 9], ["l", 4, None, ["@", 2]])
    nodes = [repr(node) for node in (*test_forgeries.NODES, *others)]
    words = {"NODE": chance.choice(nodes), "OTHER": chance.choice(nodes)}
    words |= {"ANSWER": f"({chance.choice(answers)})", "KEEP": _KEEP, "HARNESS": _HARNESS}
    words |= {
        "PLACE": str(chance.randint(1, 7)),
        "NUMBER": str(chance.randint(0, 9)),
        "CUT": chance.choice("19"),
    }
    words["CHANCE"] = f"random.Random({chance.randint(0, 99)}).random"
    source = {**_PATCHED, **_OWN_ENDS}[name]
    source = re.sub(rf"\b({'|'.join(words)})\b", lambda match: words[match[1]], source)
    if is_own_end or (chance.random() < 0.5 and "def patch" not in source):
        found = f"    {_FIND_END}\n" if is_own_end else ""
        source = f"def patch():\n{found}{textwrap.indent(source, '    ')}"
    call = "patch()" if "def patch" in source else "pass"
    code = f"{source}\nhidden = lambda: {chance.choice(_ODD_VALUES)}\ndef f(*a, **k):\n    {call}\n    return hidden()"
    return Cheat(f"{'patches of its own end' if is_own_end else 'patches'}: {name}", _with_imports(code))


def _node(chance: random.Random, depth: int = 3) -> object:
    """Return a node: one of the collection, an object with other facts, or a container of nodes."""
    kind = chance.random()
    if kind < 0.3:
        facts = {"number": chance.choice((2, 4, 6)), "name": chance.choice(_NAMES)}
        facts["kind"] = chance.choice(("", "data", "function", "iterator", None))
        return test_forgeries.described(**dict(chance.sample(list(facts.items()), chance.randint(1, 3))))
    if kind < 0.5 and depth:
        head = chance.choice((["t"], ["z"], *([tag, chance.choice((2, 4, 6)), None] for tag in "lsdqaBCOfN")))
        return [*head, *(_node(chance, depth - 1) for _ in range(chance.randint(0, 4)))]
    return chance.choice(test_forgeries.NODES)


def _forger(chance: random.Random, form: Form) -> Cheat:
    """Return a program that answers the driver itself, with messages of its own."""
    changes = ([], [], [[chance.choice((1, 2, 3)), _node(chance)]])
    count = chance.choice((1, 2, 4, 8))
    messages = [[chance.choice("vve"), _node(chance), chance.choice(changes), [], []] for _ in range(count)]
    messages[0] = chance.choice((messages[0], chance.choice(test_forgeries.MESSAGES)))
    end = chance.choice(("os._exit(0)", "return 9", "while True: receive()", "return lambda: 0"))
    wait = chance.choice(("receive()", "pass"))
    code = f"{test_forgeries.FORGE}\nMESSAGES = {messages!r}\ndef f(*a, **k):\n    for message in MESSAGES{chance.choice(('', ' * 5'))}:\n        forge(message)\n        {wait}\n    {end}"
    return Cheat("forged messages", code)


def _as_f(code: str, name: str, arguments: str) -> str:
    return f"{code}\n_{name} = {name}\ndef f(*a, **k): return _{name}({arguments})"


# Cheats of the tests' collections.
_KNOWN = [
    *(Cheat("test_cheats", _as_f(c, "add", "1, 2") if "add" in c else f"{c}\ndef f(*a): pass") for c, _ in test_cheats.CHEATS.values()),
    *(Cheat("test_cheats: searches", _as_f(c, "word", "1")) for c in test_cheats.SEARCHES.values()),
    *(Cheat("test_demands", textwrap.dedent(c)) for c in test_demands.LIARS.values()),
    *(Cheat("test_forgeries: objects", f"{test_forgeries.LIAR.replace('{base}', b)}def f(*a, **k): return Liar()") for b in ("", "(int)", "(str)", "(list)", "(dict)", "(Exception)", "(set)", "(tuple)")),
    *(Cheat("test_forgeries: searches", f"{test_forgeries.EXPLORER}\ndef f(*a, **k): return find(*a)") for _ in range(9)),
    *(Cheat("test_forgeries: data", c) for c in test_forgeries.LYING.values()),
    *(Cheat("test_forgeries: programs", p["code"]) for p in test_forgeries.FORGED if "def f(" in p["code"]),
]  # fmt: skip
_SOURCES: list[tuple[Callable[[random.Random, Form], Cheat], float]] = [
    (_liar, 0.5), (_odd_value, 0.1), (_swallower, 0.03), (_searcher, 0.08), (_patcher, 0.16), (_forger, 0.1), (lambda chance, form: chance.choice(_KNOWN), 0.13),
]  # fmt: skip

# Ways to return a value in another one, and ways to be a function.
_NESTS = """
[_v] ;; (_v,) ;; [_v] * 3 ;; (_v, _v) ;; {'a': _v} ;; {'b': _v} ;; iter([_v]) ;; lambda *a: _v ;; collections.deque([_v]) ;; collections.UserList([_v]) ;; types.SimpleNamespace(value=_v)
collections.defaultdict(lambda: _v) ;; (x for x in [_v]) ;; [[_v], {'a': (_v, _v)}] ;; ValueError(_v) ;; map(lambda x: _v, [1]) ;; types.MappingProxyType({'b': _v})
functools.partial(lambda: _v)
"""
_FUNCTIONS = r"""
f = lambda *a, **k: _g(*a, **k) ;; class F:\n    def __call__(self, *a, **k): return _g(*a, **k)\nf = F() ;; import functools\nf = functools.partial(_g)
import functools\n@functools.wraps(_g)\ndef f(*a, **k): return _g(*a, **k) ;; class F:\n    def __new__(cls, *a, **k): return _g(*a, **k)\nf = F
class M(type):\n    def __call__(cls, *a, **k): return _g(*a, **k)\nclass f(metaclass=M): pass
class F:\n    @staticmethod\n    def m(*a, **k): return _g(*a, **k)\n    __call__ = m\nf = F() ;; import functools\nf = functools.lru_cache(lambda *a: _g(3))
_n = []\ndef f(*a, **k):\n    _n.append(a)\n    return (lambda: 0) if len(_n) == 1 else _g(*a, **k)
import threading\ndef f(*a, **k):\n    out = []\n    t = threading.Thread(target=lambda: out.append(_g(*a, **k)))\n    t.start()\n    t.join(0.5)\n    return out[0]
"""


def make_cheat(chance: random.Random, form: Form) -> Cheat:
    """Return a random cheat against a form, mutated."""
    cheat = (_swallower if "guard = " in form.adapter and chance.random() < 0.7 else _one)(chance, form)
    if chance.random() < 0.15:
        join = chance.choice((
            "_turn = itertools.cycle([_one, _two])\ndef f(*a, **k): return next(_turn)(*a, **k)",
            "def f(*a, **k):\n    try: return _one(*a, **k)\n    except BaseException: return _two(*a, **k)",
            "def f(*a, **k):\n    _one(*a, **k)\n    return _two(*a, **k)",
        ))  # fmt: skip
        cheat = Cheat(
            "pairs", f"import itertools\n{cheat.code}\n_one = f\n{_one(chance, form).code}\n_two = f\n{join}"
        )
    code = cheat.code
    if chance.random() < 0.2:
        code += f"\nimport collections, functools, types\n_w = f\ndef f(*a, **k):\n    _v = _w(*a, **k)\n    return {chance.choice(each(_NESTS))}"
    if chance.random() < 0.25:
        code += f"\n_g = f\n{chance.choice(each(_FUNCTIONS))}"
    return Cheat(cheat.family, code)


def _one(chance: random.Random, form: Form) -> Cheat:
    makers, weights = zip(*_SOURCES, strict=True)
    return chance.choices(makers, weights)[0](chance, form)

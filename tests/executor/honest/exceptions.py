"""Exceptions: caught by a base class, by name, by content."""

from tests.executor.honest import honest

PROGRAMS = [
    honest(
        "a subclass of ValueError is caught as ValueError",
        "class Negative(ValueError): pass\ndef root(x):\n    if x < 0: raise Negative(x)\n    return x ** 0.5",
        "try:\n    root(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False",
        "assert root(4) == 2",
    ),
    honest(
        "the program's own exception class is caught by its name",
        "class TooDeep(Exception): pass\ndef dig(n):\n    if n > 3: raise TooDeep('stop at', n)\n    return n",
        "try:\n    dig(4)\n    assert False, 'no error'\nexcept TooDeep as error:\n    assert error.args == ('stop at', 4)",
    ),
    honest(
        "a hierarchy of the program's own exceptions",
        "class Base(Exception): pass\nclass A(Base): pass\nclass B(A, LookupError): pass\ndef f(n): raise [A, B][n]('x')",
        "try:\n    f(1)\nexcept LookupError as e:\n    assert isinstance(e, Base)",
        "caught = []\nfor n in (0, 1):\n    try:\n        f(n)\n    except B:\n        caught.append('B')\n    except Base:\n        caught.append('Base')\nassert caught == ['Base', 'B']",
    ),
    honest(
        "JSONDecodeError is a ValueError and keeps its position",
        "import json\ndef parse(s): return json.loads(s)",
        "try:\n    parse('{]')\n    assert False\nexcept ValueError as e:\n    assert e.pos == 1 and e.lineno == 1",
        "import json\ntry:\n    parse('[')\nexcept json.JSONDecodeError as e:\n    assert e.doc == '['\nelse:\n    assert False",
    ),
    honest(
        "UnicodeDecodeError with all its parts",
        "def text(b): return b.decode('ascii')",
        "try:\n    text(b'a\\xff')\n    assert False\nexcept UnicodeDecodeError as e:\n    assert e.start == 1 and e.encoding == 'ascii' and e.object == b'a\\xff'",
    ),
    honest(
        "decimal.DivisionByZero is a ZeroDivisionError",
        "from decimal import Decimal\ndef div(a, b): return Decimal(a) / Decimal(b)",
        "try:\n    div(1, 0)\n    assert False\nexcept ZeroDivisionError:\n    pass",
        "try:\n    div(1, 0)\n    assert False\nexcept ArithmeticError:\n    pass",
        "assert div(1, 4) == 0.25",
    ),
    honest(
        "FileNotFoundError by name, by OSError and by errno",
        "def read(path):\n    with open(path) as f: return f.read()",
        "try:\n    read('no such file')\n    assert False\nexcept FileNotFoundError as e:\n    assert e.errno == 2 and e.filename == 'no such file'",
        "import errno\ntry:\n    read('missing')\nexcept OSError as e:\n    assert e.errno == errno.ENOENT and 'missing' in str(e)\nelse:\n    assert False",
    ),
    honest(
        "TimeoutError and ConnectionError raised by hand",
        "def ask(kind):\n    raise {'t': TimeoutError, 'c': ConnectionRefusedError}[kind]('down')",
        "try:\n    ask('t')\n    assert False\nexcept TimeoutError as e:\n    assert str(e) == 'down'",
        "try:\n    ask('c')\n    assert False\nexcept ConnectionError as e:\n    assert e.args == ('down',)",
    ),
    honest(
        "SystemExit with a code",
        "import sys\ndef main(args):\n    if not args: sys.exit(2)\n    return 0",
        "try:\n    main([])\n    assert False\nexcept SystemExit as e:\n    assert e.code == 2",
        "assert main(['x']) == 0",
    ),
    honest(
        "KeyError keeps its key and its quotes",
        "def get(d, k): return d[k]",
        "try:\n    get({}, 'a')\n    assert False\nexcept KeyError as e:\n    assert str(e) == \"'a'\" and e.args[0] == 'a'",
        "try:\n    get({}, (1, [2]))\nexcept TypeError:\n    pass\nelse:\n    assert False",
    ),
    honest(
        "IndexError with its message",
        "def third(x): return x[2]",
        "try:\n    third([1])\n    assert False\nexcept IndexError as e:\n    assert str(e) == 'list index out of range'",
    ),
    honest(
        "a number among the arguments",
        "def f(n): raise ValueError(n)",
        "try:\n    f(5)\nexcept ValueError as e:\n    assert e.args[0] == 5 and e.args == (5,)\nelse:\n    assert False",
    ),
    honest(
        "a long message",
        "def f(n): raise ValueError('x' * n)",
        "try:\n    f(1000)\nexcept ValueError as e:\n    assert len(str(e)) == 1000\nelse:\n    assert False",
    ),
    honest(
        "attributes of an exception",
        "class Insufficient(Exception):\n    def __init__(self, balance, amount):\n        super().__init__(f'{balance} < {amount}')\n        self.balance, self.amount = balance, amount\n    @property\n    def missing(self): return self.amount - self.balance\ndef withdraw(b, a):\n    if a > b: raise Insufficient(b, a)\n    return b - a",
        "try:\n    withdraw(1, 5)\n    assert False\nexcept Insufficient as e:\n    assert (e.balance, e.amount, e.missing) == (1, 5, 4) and str(e) == '1 < 5'",
        "assert withdraw(5, 2) == 3",
    ),
    honest(
        "an exception with its own __str__",
        "class E(Exception):\n    def __str__(self): return 'code ' + str(self.args[0])\ndef f(): raise E(7)",
        "try:\n    f()\nexcept Exception as e:\n    assert str(e) == 'code 7' and type(e).__name__ == 'E'\nelse:\n    assert False",
        marked=True,
    ),
    honest(
        "the cause of an exception",
        "def load(s):\n    try: return int(s)\n    except ValueError as e: raise RuntimeError('bad number') from e",
        "try:\n    load('x')\n    assert False\nexcept RuntimeError as e:\n    assert isinstance(e.__cause__, ValueError) and 'invalid literal' in str(e.__cause__)",
        marked=True,
    ),
    honest(
        "StopIteration of an exhausted iterator",
        "def count(n): return iter(range(n))",
        "it = count(1)\nassert next(it) == 0\ntry:\n    next(it)\n    assert False\nexcept StopIteration:\n    pass",
    ),
    honest(
        "StopIteration from a function that the test expects",
        "_it = iter([1])\ndef take(): return next(_it)",
        "assert take() == 1\ntry:\n    take()\n    assert False\nexcept StopIteration:\n    pass",
    ),
    honest(
        "RecursionError is caught",
        "def down(n): return down(n + 1)",
        "try:\n    down(0)\n    assert False\nexcept RecursionError:\n    pass",
    ),
    honest(
        "AssertionError and NotImplementedError of the program",
        "def check(x):\n    assert x > 0, 'must be positive'\n    return x\ndef todo(): raise NotImplementedError",
        "try:\n    check(-1)\nexcept AssertionError as e:\n    assert str(e) == 'must be positive'\nelse:\n    raise ValueError",
        "try:\n    todo()\n    assert False\nexcept NotImplementedError:\n    pass",
    ),
    honest(
        "assertRaises of unittest",
        "class Bad(TypeError): pass\ndef f(x):\n    if not isinstance(x, int): raise Bad(f'not an int: {x!r}')\n    return x",
        "import unittest\ncase = unittest.TestCase()\nwith case.assertRaises(TypeError) as caught:\n    f('a')\nassert 'not an int' in str(caught.exception)\ncase.assertRaises(Bad, f, None)\ncase.assertEqual(f(3), 3)",
        marked=True,
    ),
    honest(
        "an exception class as an argument",
        "def retry(f, error, times):\n    for n in range(times):\n        try: return f(n)\n        except error: pass\n    raise RuntimeError('gave up')",
        "def flaky(n):\n    if n < 2: raise KeyError(n)\n    return n\nassert retry(flaky, KeyError, 5) == 2",
        "class Mine(Exception): pass\ndef never(n): raise Mine\ntry:\n    retry(never, KeyError, 1)\nexcept Mine:\n    pass\nelse:\n    assert False",
    ),
    honest(
        "a test's own exception passes through the program",
        "def call(f):\n    try: return f()\n    finally: call.done = True",
        "class Stop(Exception): pass\nstop = Stop('now')\ndef f(): raise stop\ntry:\n    call(f)\n    assert False\nexcept Stop as e:\n    assert e is stop",
        marked=True,
    ),
    honest(
        "exceptions are returned, not raised",
        "def attempt(f):\n    try: return f(), None\n    except Exception as e: return None, e",
        "value, error = attempt(lambda: 1 / 0)\nassert value is None and isinstance(error, ZeroDivisionError) and str(error) == 'division by zero'",
        marked=True,
    ),
    honest(
        "notes on an exception",
        "def f():\n    e = ValueError('x')\n    e.add_note('while f')\n    raise e",
        "try:\n    f()\nexcept ValueError as e:\n    assert e.__notes__ == ['while f']\nelse:\n    assert False",
    ),
]

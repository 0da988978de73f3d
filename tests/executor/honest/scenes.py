"""Tests that set the scene: input, output, files, time, chance, threads, asyncio."""

from tests.executor.honest import honest

GREET = "def greet():\n    name = input('who? ')\n    print('hello', name)\n    return name\n"

PROGRAMS = [
    honest(
        "a class body of the test calls the program",
        "def f(x): return x + 2\nclass Solution:\n    def run(self, x): return x * 2",
        "class T:\n    ok = f(3) == 5\n    s = Solution()\n    def check(self):\n        assert self.s.run(4) == 8\nassert T.ok\nT().check()",
        marked=True,
    ),
    honest(
        "output by redirect_stdout",
        "def show(x): print('x =', x)",
        "import io\nfrom contextlib import redirect_stdout\nout = io.StringIO()\nwith redirect_stdout(out):\n    show(3)\nassert out.getvalue() == 'x = 3\\n'",
        marked=True,
    ),
    honest(
        "output by sys.stdout",
        "def show(x): print(x)",
        "import io, sys\nold, sys.stdout = sys.stdout, io.StringIO()\ntry:\n    show('a')\n    text = sys.stdout.getvalue()\nfinally:\n    sys.stdout = old\nassert text == 'a\\n'",
        marked=True,
    ),
    honest(
        "input by mock.patch",
        GREET,
        "from unittest.mock import patch\nwith patch('builtins.input', return_value='ann'), patch('builtins.print') as p:\n    assert greet() == 'ann'\np.assert_called_once_with('hello', 'ann')",
        marked=True,
    ),
    honest(
        "input by builtins",
        GREET,
        "import builtins\nold = builtins.input\nbuiltins.input = lambda *_: 'bob'\ntry:\n    assert greet() == 'bob'\nfinally:\n    builtins.input = old",
        marked=True,
    ),
    honest(
        "input by sys.stdin",
        GREET,
        "import io, sys\nold, sys.stdin = sys.stdin, io.StringIO('eve\\n')\ntry:\n    assert greet() == 'eve'\nfinally:\n    sys.stdin = old",
        marked=True,
    ),
    honest(
        "random after a seed",
        "import random\ndef roll(): return random.randint(1, 6)",
        "import random\nrandom.seed(42)\na = [roll() for _ in range(5)]\nrandom.seed(42)\nassert a == [random.randint(1, 6) for _ in range(5)]",
        "assert all(1 <= roll() <= 6 for _ in range(100))",
        marked=True,
    ),
    honest(
        "environment variables",
        "import os\ndef home(): return os.environ.get('APP_HOME', '/')",
        "import os\nos.environ['APP_HOME'] = '/x'\ntry:\n    assert home() == '/x'\nfinally:\n    del os.environ['APP_HOME']",
        marked=True,
    ),
    honest(
        "the recursion limit",
        "def depth(n): return 0 if n == 0 else 1 + depth(n - 1)",
        "import sys\nold = sys.getrecursionlimit()\nsys.setrecursionlimit(5000)\ntry:\n    assert depth(2000) == 2000\nfinally:\n    sys.setrecursionlimit(old)",
        marked=True,
    ),
    honest(
        "asyncio.run of a coroutine",
        "import asyncio\nasync def fetch(x):\n    await asyncio.sleep(0)\n    return x * 2",
        "import asyncio\nassert asyncio.run(fetch(3)) == 6",
        "import asyncio\nasync def main():\n    return await asyncio.gather(fetch(1), fetch(2))\nassert asyncio.run(main()) == [2, 4]",
        marked=True,
    ),
    honest(
        "an asynchronous generator",
        "async def ticks(n):\n    for i in range(n): yield i",
        "import asyncio\nasync def main():\n    return [x async for x in ticks(3)]\nassert asyncio.run(main()) == [0, 1, 2]",
        marked=True,
    ),
    honest(
        "asyncio inside",
        "import asyncio\ndef run():\n    async def one(): return 1\n    async def main(): return sum(await asyncio.gather(one(), one()))\n    return asyncio.run(main())",
        "assert run() == 2",
    ),
    honest(
        "threads inside",
        "from concurrent.futures import ThreadPoolExecutor\ndef squares(xs):\n    with ThreadPoolExecutor(4) as pool: return list(pool.map(lambda x: x * x, xs))\ndef apply(f, xs):\n    with ThreadPoolExecutor(4) as pool: return list(pool.map(f, xs))",
        "assert squares(range(5)) == [0, 1, 4, 9, 16]",
        "assert apply(lambda x: x + 1, [1, 2, 3]) == [2, 3, 4]",
    ),
    honest(
        "threads of the test",
        "import threading\nclass Counter:\n    def __init__(self): self.n, self.lock = 0, threading.Lock()\n    def inc(self):\n        with self.lock: self.n += 1",
        "import threading\nc = Counter()\nts = [threading.Thread(target=c.inc) for _ in range(8)]\nfor t in ts:\n    t.start()\nfor t in ts:\n    t.join()\nassert c.n == 8",
        marked=True,
    ),
    honest(
        "a file of the program",
        "def save(path, text):\n    with open(path, 'w') as f: return f.write(text)\ndef load(path): return open(path).read()",
        "assert save('a.txt', 'abc') == 3 and load('a.txt') == 'abc'",
    ),
    honest(
        "a file of the test",
        "def lines(path):\n    with open(path) as f: return [x.rstrip() for x in f]",
        "with open('in.txt', 'w') as f:\n    f.write('a\\nb\\n')\nassert lines('in.txt') == ['a', 'b']",
    ),
    honest(
        "a file of the program, read by the test",
        "import json\ndef dump(path, x):\n    with open(path, 'w') as f: json.dump(x, f)",
        "import json, os\ndump('out.json', {'a': [1]})\nassert json.load(open('out.json')) == {'a': [1]}\nos.remove('out.json')\nassert not os.path.exists('out.json')",
    ),
    honest(
        "a temporary folder of the test",
        "import os\ndef count(folder): return len(os.listdir(folder))",
        "import os, tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'x'), 'w').close()\n    assert count(d) == 1",
    ),
    honest(
        "a copied file",
        "import shutil\ndef copy(a, b): shutil.copy(a, b)",
        "with open('src.txt', 'w') as f:\n    f.write('data')\ncopy('src.txt', 'dst.txt')\nassert open('dst.txt').read() == 'data'",
    ),
    honest(
        "standard input of the problem",
        "import sys\ndef total(): return sum(map(int, sys.stdin.read().split()))",
        "assert total() == 6",
        stdin="1 2 3\n",
    ),
    honest(
        "lines of standard input",
        "first = input()\nrest = [input() for _ in range(int(first))]",
        "assert rest == ['a', 'b']",
        stdin="2\na\nb\n",
    ),
    honest(
        "prints are harmless",
        "def f(x):\n    print('[0, 0.1]', 'passed' * 1000)\n    return x",
        "assert f(3) == 3",
        "x = f(4)\nassert x == 4",
    ),
    honest("a test that prints", "def f(x): return x", "print('testing')\nassert f(1) == 1\nprint('ok')"),
    honest(
        "if __name__ == '__main__'",
        "def f(x): return x + 1\nif __name__ == '__main__':\n    raise SystemExit('not run')",
        "assert f(1) == 2",
    ),
    honest(
        "unittest classes",
        "def double(x): return x * 2",
        "import unittest\nclass T(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(double(2), 4)\nresult = unittest.TestResult()\nunittest.defaultTestLoader.loadTestsFromTestCase(T).run(result)\nassert result.wasSuccessful() and result.testsRun == 1",
        marked=True,
    ),
    honest(
        "warnings",
        "import warnings\ndef old():\n    warnings.warn('old', DeprecationWarning)\n    return 1",
        "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always')\n    assert old() == 1\nassert len(caught) == 1 and caught[0].category is DeprecationWarning",
        marked=True,
    ),
    honest(
        "a module variable patched by the test",
        "import math\nRATE = 2\ndef price(x): return x * RATE",
        "global RATE\nRATE = 3\nassert price(2) == 6",
        marked=True,
    ),
    honest(
        "pickle",
        "import pickle\ndef roundtrip(x): return pickle.loads(pickle.dumps(x))",
        "x = {'a': [1, (2, 3)]}\nassert roundtrip(x) == x and roundtrip(x) is not x",
        marked=True,
    ),
    honest(
        "logging",
        "import logging\ndef work():\n    logging.getLogger('app').warning('careful')\n    return 1",
        "import unittest\nclass T(unittest.TestCase):\n    pass\nwith T().assertLogs('app') as logs:\n    assert work() == 1\nassert logs.output == ['WARNING:app:careful']",
        marked=True,
    ),
    honest(
        "time does not go backwards",
        "import time\ndef took():\n    a = time.perf_counter()\n    return time.perf_counter() - a",
        "import time\nstart = time.time()\nassert took() >= 0\nassert time.time() >= start",
    ),
    honest(
        "memory of a megabyte both ways",
        "def rev(x): return x[::-1]",
        "x = list(range(100000))\nassert rev(x)[0] == 99999 and rev(rev(x)) == x",
    ),
]

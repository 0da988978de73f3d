"""Lines of an answer that only try its solution: verdicts without them, and the lines that a solution needs."""

import pytest

from cocos.extraction import extract
from cocos.problems import Problem
from cocos.program_slice import slice_of
from cocos.trajectories import as_program

PROBLEM = Problem(
    "1", "Write it.", ("assert f([3, 1, 2]) == [1, 2, 3]", "assert f([]) == []", "assert f([2, 2]) == [2, 2]")
)
NEEDED = {"f"}
RIGHT = "def f(numbers):\n    return sorted(numbers)"
WRONG = (
    "def f(numbers):\n    return sorted(set(numbers)) if numbers[0] else 1"  # fails [2, 2], and raises for []
)

# Lines below a solution, as models write them. With WRONG above them, each ends the program or hangs it.
TAILS = {
    "asserts": "assert f([]) == []\nassert f([2, 2]) == [2, 2]",
    "asserts with messages": "assert f([2, 2]) == [2, 2], 'duplicates are lost'\nprint('ok')",
    "a false assert": "assert f([1]) == [2]",
    "prints": "print(f([]))  # []",
    "a call": "f([])",
    "a call of a method": "f([]).sort()",
    "comments": "# Test cases\n\n# 1: an empty list\nassert f([]) == []  # empty\n# done",
    "semicolons": "assert f([3]) == [3]; assert f([]) == []; print('passed')",
    "a variable": "result = f([])\nresult.append(4)\nprint(result)",
    "the parameter's name": "numbers = []\nprint(f(numbers))",
    "a table of tests": "CASES = [([3], [3]), ([], [])]\nfor given, expected in CASES:\n    assert f(given) == expected, given",
    "a loop that changes its cases": "cases = [[3, 1], []]\nfor case in cases:\n    case.append(f(case))",
    "a comprehension": "results = [f(x) for x in ([1], [])]\nassert all(results)",
    "a walrus": "if (result := f([])) != []:\n    raise ValueError(result)",
    "if True": "if True:\n    assert f([]) == []\n    print('passed')",
    "a try that prints": "try:\n    assert f([2, 2]) == [2, 2]\n    print('ok')\nexcept AssertionError as error:\n    print('failed', error)\n    raise",
    "a with": "import contextlib\nwith contextlib.suppress(KeyError):\n    f([])",
    "exit": "print('bye')\nexit()",
    "sys.exit": "import sys\nsys.exit(0 if f([]) == [] else 1)",
    "sys.exit alone": "import sys\nsys.exit()",
    "raise SystemExit": "raise SystemExit(f([3]))",
    "a guard": "if __name__ == '__main__':\n    print(f(list(map(int, input().split()))))",
    "a guard without its test": "def main():\n    n = int(input())\n    print(f([n]))\n\nmain()",
    "input": "n = int(input('How many? '))\nnumbers = [int(input()) for _ in range(n)]\nprint(f(numbers))",
    "stdin": "import sys\ndata = sys.stdin.read().split()\nsys.stdout.write(str(f(data[0])))",
    "while True": "while True:\n    line = input()\n    if not line:\n        break\n    print(f(line.split()))",
    "an endless loop": "while True:\n    f([1])",
    "argparse": "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('n', type=int)\nargs = parser.parse_args()\nprint(f([args.n]))",
    "sys.argv": "import sys\nprint(f([int(sys.argv[1])]))",
    "a file": "with open('input.txt') as file:\n    for line in file:\n        print(f(line.split()))",
    "a test function": "def test_f():\n    assert f([]) == []\n\ntest_f()",
    "tests by a table": "def test_f():\n    for given, expected in CASES:\n        assert f(given) == expected\n\nCASES = [([], [])]\ntest_f()\nprint('All tests pass')",
    "a checker of another name": "def check(candidate):\n    assert candidate([]) == []\n    print('ok')\n\ncheck(f)",
    "an async main": "import asyncio\n\nasync def main():\n    print(f([]))\n\nasyncio.run(main())",
    "an event loop": "import asyncio\nasync def go():\n    return f([])\nloop = asyncio.new_event_loop()\nloop.run_until_complete(go())",
    "a thread": "import threading\nthread = threading.Thread(target=lambda: f([]))\nthread.start()\nthread.join()\nassert f([]) == []",
    "unittest": "import unittest\n\nclass TestF(unittest.TestCase):\n    def test_empty(self):\n        self.assertEqual(f([]), [])\n\nunittest.main()",
    "unittest by a runner": "import unittest\nclass TestF(unittest.TestCase):\n    def test_empty(self):\n        self.assertEqual(f([]), [])\nsuite = unittest.TestLoader().loadTestsFromTestCase(TestF)\nresult = unittest.TextTestRunner().run(suite)\nassert result.wasSuccessful()",
    "pytest": "import pytest\n\n@pytest.mark.parametrize('given', [[], [1]])\ndef test_f(given):\n    assert f(given) == given\n\npytest.main([__file__])",
    "a decorated test alone": "import pytest\n\n@pytest.fixture\ndef numbers():\n    return f([])",
    "doctest": "import doctest\ndoctest.testmod(raise_on_error=True)\nassert f([]) == []",
    "timing": "import time\nstart = time.perf_counter()\nf([])\nprint(time.perf_counter() - start)",
    "random tests": "import random\nfor _ in range(5):\n    numbers = [random.randint(1, 9) for _ in range(4)]\n    assert f(numbers + numbers) == sorted(numbers + numbers)",
    "logging": "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info(f([]))",
    "pprint": "from pprint import pprint\npprint(f([]))",
    "a dataclass of cases": "from dataclasses import dataclass\n\n@dataclass\nclass Case:\n    given: list\n    expected: list\n\nfor case in [Case([3], [3]), Case([], [])]:\n    assert f(case.given) == case.expected",
    "a lambda": "show = lambda numbers: print(f(numbers))\nshow([])",
    "a name that nothing defines": "print(f_sorted([3]))",
    "a subclass in tests": "class Numbers(list):\n    pass\n\nassert f(Numbers()) == []",
    "map": "print(list(map(f, [[1], []])))",
    "a join": "print(', '.join(map(str, f([]))))",
    "a module's function around it": "import math\nprint(math.prod(f([])))",
    "del": "numbers = [3]\nassert f(numbers)\ndel numbers\nf([])",
    "match": "match f([]):\n    case []:\n        print('empty')",
    "a global result": "total = 0\ndef add(numbers):\n    global total\n    total += len(f(numbers))\nadd([])\nprint(total)",
    "a second text": '"""Tests"""\nassert f([]) == []',
    "non-ASCII": "print('é'); assert f([]) == [], 'für []'",
    "a type alias": "Numbers = list[int]\nnumbers: Numbers = f([])",
    "modules that the solution does not use": "import time\nimport warnings\ntime.sleep(99)\nwarnings.simplefilter('error')\nwarnings.warn('no tests')",
    "a drawing": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "a logger": "import logging\nlogger = logging.getLogger(__name__)\nlogger.setLevel(logging.INFO)\nlogger.info(f([]))",
    "an event loop of asserts": "import asyncio\nasync def run():\n    assert f([]) == []\nasyncio.get_event_loop().run_until_complete(run())",
    "namespaces of a trial": "import doctest, timeit\ndoctest.run_docstring_examples(f, globals())\nprint(timeit.timeit('f([])', globals=globals()))\nprint(eval('f([])'))",
    "an import of the solution": "from your_module import f\nassert f([]) == []",
    "names of builtins": "sorted = [[3], []]\nset = 0\nfor input in sorted:\n    set += len(f(input))\nprint(set)",
    "own tests in a class": "class TestF:\n    def run(self):\n        assert f([]) == []\n\nTestF().run()",
}  # fmt: skip

WRAPPED = {
    "as it stands": lambda code: code,
    "a block": lambda code: f"Here it is:\n```python\n{code}\n```\nIt works.",
    "lines": lambda code: f"Here it is:\n\n{code}\n\nThe function sorts.",
    "carriage returns": lambda code: f"```python\n{code}\n```".replace("\n", "\r\n"),
}


def outcomes(executor, problem, codes):
    results = executor.run([as_program(problem, code) for code in codes])
    return [[(v.status, v.error_type, v.message) for v in result.verdicts] for result in results]


@pytest.mark.parametrize("solution", [RIGHT, WRONG], ids=["right", "wrong"])
def test_verdicts_and_messages_are_those_of_the_solution_alone(executor, solution):
    codes = {}
    for name, tail in TAILS.items():
        for shape, wrap in WRAPPED.items():
            for code in (
                f"{solution}\n\n{tail}",
                f"import math\n{solution}\n{tail}\n\ndef helper():\n    return 1",
            ):
                codes[name, shape, len(codes)] = extract(
                    wrap(code), PROBLEM.called_names, PROBLEM.used_names
                ).code
    distinct = list(dict.fromkeys([solution, *codes.values()]))
    [alone, *others] = outcomes(executor, PROBLEM, distinct)
    found = dict(zip(distinct, [alone, *others], strict=True))
    assert {key: found[code] for key, code in codes.items() if found[code] != alone} == {}


# name -> a solution, and a line that it needs. Tests of `f`: f([3, 1, 2]) == [1, 2, 3] and so on.
USE_TABLE = "def f(numbers):\n    return sorted(TABLE[n] for n in numbers)\n"
LINES_THAT_STAY = {
    "a table": (USE_TABLE, "TABLE = {1: 1, 2: 2, 3: 3}"),
    "a table by a comprehension": (USE_TABLE, "TABLE = {n: n for n in range(9)}"),
    "a build": (f"TABLE = {{}}\ndef build():\n    for n in range(9):\n        TABLE[n] = n\n{USE_TABLE}", "build()"),
    "a build by another name": (f"TABLE = {{}}\ndef build():\n    table = TABLE\n    table[1], table[2], table[3] = 1, 2, 3\n{USE_TABLE}", "build()"),
    "a build in a print": (f"TABLE = {{}}\ndef build():\n    for n in range(9):\n        TABLE[n] = n\n    return TABLE\n{USE_TABLE}", "print(build())"),
    "a build through others": (f"TABLE = {{}}\ndef put(n):\n    TABLE[n] = n\ndef build():\n    for n in range(9):\n        put(n)\ndef main():\n    build()\n{USE_TABLE}", "main()"),
    "a build by map": (f"TABLE = {{}}\ndef put(n):\n    TABLE[n] = n\n{USE_TABLE}", "list(map(put, range(9)))"),
    "a build by a comprehension": (f"TABLE = {{}}\n{USE_TABLE}", "[TABLE.update({n: n}) for n in range(9)]"),
    "a build by an argument": (f"TABLE = {{}}\ndef fill(table):\n    table.update({{1: 1, 2: 2, 3: 3}})\n{USE_TABLE}", "fill(TABLE)"),
    "a build that uses f": ("TABLE = {}\ndef f(numbers):\n    return [TABLE.get(n, n) for n in sorted(numbers)] if TABLE else None\n", "for n in range(9):\n    TABLE[n] = n if f([n]) else n"),
    "a global": (f"TABLE = None\ndef build():\n    global TABLE\n    TABLE = {{1: 1, 2: 2, 3: 3}}\n{USE_TABLE}", "build()"),
    "a store": (f"TABLE = {{2: 2, 3: 3}}\n{USE_TABLE}", "TABLE[1] = 1"),
    "an augmented assignment": (f"TABLE = {{2: 2, 3: 3}}\n{USE_TABLE}", "TABLE |= {1: 1}"),
    "an append": ("ITEMS = [0, 1, 2]\ndef f(numbers):\n    return sorted(ITEMS[n] for n in numbers)\n", "ITEMS.append(3)"),
    "appends in a loop": ("ITEMS = []\ndef f(numbers):\n    return sorted(ITEMS[n] for n in numbers)\n", "for i in range(10):\n    ITEMS.append(i)"),
    "appends by another name": ("ITEMS = []\ndef f(numbers):\n    return sorted(ITEMS[n] for n in numbers)\n", "items = ITEMS\nfor i in range(10):\n    items.append(i)"),
    "rows of a grid": ("GRID = [[], []]\ndef f(numbers):\n    return sorted(GRID[0][n] for n in numbers)\n", "for row in GRID:\n    row.extend(range(9))"),
    "a row of a function": ("ITEMS = []\ndef items():\n    return ITEMS\ndef f(numbers):\n    return sorted(ITEMS[n] for n in numbers)\n", "items().extend(range(9))"),
    "a while": ("ITEMS = []\ndef f(numbers):\n    return sorted(ITEMS[n] for n in numbers)\n", "n = 0\nwhile len(ITEMS) < 9:\n    ITEMS.append(n)\n    n += 1"),
    "a module's function": ("from bisect import insort\nITEMS = [0, 1, 2]\ndef f(numbers):\n    return sorted(ITEMS[n] for n in numbers)\n", "insort(ITEMS, 3)"),
    "a heap": ("import heapq\nHEAP = [3, 2, 1]\ndef f(numbers):\n    return sorted(numbers) if HEAP[0] == 1 else None\n", "heapq.heapify(HEAP)"),
    "an attribute of the function": ("def f(numbers):\n    return sorted(f.table[n] for n in numbers)\n", "f.table = [0, 1, 2, 3]"),
    "setattr": ("def f(numbers):\n    return sorted(f.table[n] for n in numbers)\n", "setattr(f, 'table', [0, 1, 2, 3])"),
    "a method": ("class Sorter:\n    pass\ndef sort(self, numbers):\n    return sorted(numbers)\ndef f(numbers):\n    return Sorter().sort(numbers)\n", "Sorter.sort = sort"),
    "a decorator below": ("def ordered(function):\n    return lambda numbers: sorted(function(numbers))\ndef f(numbers):\n    return numbers\n", "f = ordered(f)"),
    "a cache": ("from functools import lru_cache\ndef f(numbers):\n    return sorted(numbers) if g.cache_info() else None\ndef g():\n    pass\n", "g = lru_cache(g)"),
    "the recursion limit": ("import sys\ndef f(numbers):\n    return sorted(numbers) if down(2000) else None\ndef down(n):\n    return n == 0 or down(n - 1)\n", "sys.setrecursionlimit(10**4)"),
    "a seed": ("import random\ndef f(numbers):\n    return sorted(numbers) if FIRST == random.Random(0).random() else None\nFIRST = 0\n", "random.seed(0)\nFIRST = random.random()"),
    "a context": ("from decimal import *\ndef f(numbers):\n    return sorted(numbers) if len(str(Decimal(1) / 3)) == 7 else None\n", "getcontext().prec = 5"),
    "a context of a module": ("import decimal\ndef f(numbers):\n    return sorted(numbers) if len(str(decimal.Decimal(1) / 3)) == 7 else None\n", "decimal.getcontext().prec = 5"),
    "a context by setcontext": ("import decimal\ndef f(numbers):\n    return sorted(numbers) if len(str(decimal.Decimal(1) / 3)) == 7 else None\n", "decimal.setcontext(decimal.Context(prec=5))"),
    "an environment": ("import os\ndef f(numbers):\n    return sorted(numbers) if os.environ.get('MODE') else None\n", "os.environ['MODE'] = '1'"),
    "a counter": ("def f(numbers):\n    global calls\n    calls += 1\n    return sorted(numbers)\n", "calls = 0"),
    "a registration": ("SORTS = {}\ndef register(name, function):\n    SORTS[name] = function\ndef f(numbers):\n    return SORTS['plain'](numbers)\n", "register('plain', sorted)"),
    "a registration by a decorator": ("SORTS = {}\ndef register(function):\n    SORTS[0] = function\n    return function\ndef f(numbers):\n    return SORTS[0](numbers)\n", "@register\ndef plain(numbers):\n    return sorted(numbers)"),
    "a registration by a class": ("class Registry:\n    sorts = {}\n    @classmethod\n    def register(cls, function):\n        cls.sorts[0] = function\ndef f(numbers):\n    return Registry.sorts[0](numbers)\n", "Registry.register(sorted)"),
    "a registration by an object": ("class Registry:\n    sorts = {}\n    def register(self, function):\n        self.sorts[0] = function\ndef f(numbers):\n    return Registry().sorts[0](numbers)\n", "Registry().register(sorted)"),
    "a registration of a subclass": ("class Sort:\n    sorts = []\n    def __init_subclass__(cls):\n        Sort.sorts.append(cls)\ndef f(numbers):\n    return Sort.sorts[0]().run(numbers)\n", "class Plain(Sort):\n    def run(self, numbers):\n        return sorted(numbers)"),
    "singledispatch": ("from functools import singledispatch\n@singledispatch\ndef f(numbers):\n    return None\n", "@f.register(list)\ndef _(numbers):\n    return sorted(numbers)"),
    "a solver that an object keeps": ("class Sorter:\n    def __init__(self):\n        self.order = None\n    def set(self, order):\n        self.order = order\n    def sort(self, numbers):\n        return sorted(numbers, key=self.order.index)\ndef f(numbers):\n    return sorter.sort(numbers)\nsorter = Sorter()\n", "sorter.set([1, 2, 3])"),
    "namespaces": (USE_TABLE, "globals()['TABLE'] = [0, 1, 2, 3]"),
    "exec": (USE_TABLE, "exec('TABLE = [0, 1, 2, 3]')"),
    "a fallback": ("def f(numbers):\n    return order(numbers)\n", "try:\n    from sorting import order\nexcept ImportError:\n    order = sorted"),
    "a condition": ("import sys\ndef f(numbers):\n    return order(numbers)\n", "if sys.version_info > (3,):\n    order = sorted\nelse:\n    order = None"),
    "an alias": ("def order(numbers):\n    return sorted(numbers)\n", "f = order"),
    "an instance's method": ("class Solution:\n    def f(self, numbers):\n        return sorted(numbers)\n", "f = Solution().f"),
    "a walrus": (USE_TABLE, "assert (TABLE := [0, 1, 2, 3])"),
    "a for": (USE_TABLE, "for TABLE in [[0, 1, 2, 3]]:\n    pass"),
    "a match": (USE_TABLE, "match [0, 1, 2, 3]:\n    case TABLE:\n        pass"),
    "a line shared with a print": (USE_TABLE, "TABLE = [0, 1, 2, 3]; print('é', f([]))"),
    "a default": ("ORDER = []\ndef f(numbers, order=ORDER):\n    return sorted(numbers, key=order.index)\n", "ORDER.extend([1, 2, 3])"),
    "a function below": ("def f(numbers):\n    return order(numbers)\n", "def order(numbers):\n    return sorted(numbers)"),
    "what only its class reads": ("class Sorter:\n    def sort(self, numbers):\n        return sorted(numbers, key=ORDER.index)\nf = lambda numbers: Sorter().sort(numbers)\n", "ORDER = [1, 2, 3]"),
    "eval": ("def order(n):\n    return n\ndef f(numbers):\n    return sorted(numbers, key=eval('order')) if SIGN else None\n", "SIGN = 1"),
}  # fmt: skip


def test_statements_go_alone_from_lines_that_they_share():
    code = "A = [1]; print('é',\n 1); A += [2]; print(2); print(3)\nassert A; assert f(1)\ndef f(x):\n    return A\nprint(4); print(\n1)\n"
    assert (
        slice_of(code, NEEDED) == "A = [1]; pass; A += [2]; pass; pass\npass; pass\ndef f(x):\n    return A"
    )


@pytest.mark.parametrize("name", LINES_THAT_STAY)
def test_a_line_that_the_solution_needs_stays(name):
    code, line = LINES_THAT_STAY[name]
    stays = f"{code}\n{line}".replace("print('é', f([]))", "pass")
    assert (
        slice_of(f"{code}\n{line}\n\n# Tests\nassert f([1]) == [2], 'no'\nprint(f([3]))", NEEDED, NEEDED)
        == stays
    )


@pytest.mark.parametrize(
    "tail",
    [
        "for n, given in enumerate([[1], []]):\n    assert f(given) == n",
        "n = 0\nwhile n < 2:\n    assert f([n]) == n\n    n += 1",
        "n = [3]\nassert f(n)",
    ],
)
def test_a_name_of_a_build_that_a_trial_binds_anew_is_another_variable(tail):
    code = "n = 9\nTABLE = [0] * n\nfor n in range(n):\n    TABLE[n] = n\ndef f(numbers):\n    return sorted(TABLE[i] for i in numbers)"
    assert slice_of(f"{code}\n{tail}", NEEDED) == code


def test_a_builtin_that_is_bound_above_its_reader_or_by_it_stays():
    code = "max = 9\ndef f(numbers):\n    global sum\n    sum += 1\n    return [min(n, max) for n in numbers]\nsum = 0"
    assert slice_of(f"{code}\nprint(f([]))", NEEDED) == code


def test_a_block_that_imports_the_solution_does_not_define_it():
    text = f"```python\n{WRONG}\n```\nTests:\n```python\nfrom your_module import f\nassert f([]) == []\n```"
    assert extract(text, NEEDED).code == WRONG
    library = "from math import gcd"
    assert extract(f"```python\n{library}\n```", {"gcd"}).code == library


def test_without_names_that_the_tests_call_the_whole_program_stays():
    assert slice_of(f"{RIGHT}\nprint(f([3]))") == f"{RIGHT}\nprint(f([3]))"

"""Tests in which one call can change what another part reads: the verdict is plain Python's, in both directions.

Each case has a program that plain Python passes and one that it refuses. test_generated.py has the same property
for random statements; here stands what they lack.
"""

from typing import NamedTuple

import pytest

from cocos.executor import Executor, Limits, Program
from tests.executor.test_demands import accepted_by_plain_python
from tests.support.executor import EVERY_LEVEL, level_or_skip

pytestmark = pytest.mark.processes


class Case(NamedTuple):
    test: str
    right: str
    wrong: str


SORTS = "def f(xs):\n    xs.sort()\n    return xs"
RETURNS = "def f(xs): return sorted(xs)"
WRITES = "def f(rows):\n    rows[0][0] = 0\n    return rows"  # into a row that the other one may be
REPLACES = "def f(rows): return [[0, *rows[0][1:]], *rows[1:]]"
BUFFER = "buffer = []\ndef f(n):\n    buffer[:] = range(n)\n    return buffer"
FRESH = "def f(n): return list(range(n))"


def answers(*values: int) -> str:
    """Return a program whose calls return these values one after another."""
    return f"values = iter({values})\ndef f(): return next(values)"


def changed(value: str, change: str) -> tuple[str, str]:
    """Return a program that returns a value, and one that changes it first."""
    start = "import collections, fractions, ipaddress, pathlib\ndef f():\n    x = " + value
    return f"{start}\n    return x", f"{start}\n    {change}\n    return x"


CASES = {
    # Data that the program changes.
    "in a function, in place": Case("def check(candidate):\n    xs = [3, 1]\n    r = candidate(xs)\n    assert xs == [1, 3]\ncheck(f)", SORTS, RETURNS),
    "a row twice, in place": Case("row = [1, 2]\nm = [row, row]\nassert f(m) == [[0, 2], [0, 2]]", WRITES, REPLACES),
    "a tuple of arguments": Case("row = [3, 1]\nargs = (row, 2)\nassert f(*args) == [1, 3, 2]\nassert row == [3, 1]", "def f(row, n): return [*sorted(row), n]", "def f(row, n):\n    row.sort()\n    return [*row, n]"),
    "a list of a lambda": Case("stack = [2, 1]\nassert f(lambda: stack.pop()) == 3", "def f(pop): return pop() + pop()", "def f(pop): return pop() - pop() + 3"),
    "a list of a comprehension": Case("row = [1, 2]\nassert f([row for _ in range(2)]) == [[0, 2], [0, 2]]", WRITES, REPLACES),
    # A value of a class of data that was made to be another one.
    "a fraction that is not in lowest terms": Case("from fractions import Fraction\nassert f() == Fraction(1, 2)", *changed("fractions.Fraction(1, 2)", "x._numerator, x._denominator = 2, 4")),
    "a path with another text": Case("import pathlib\nassert f() == pathlib.Path('a/b')", *changed("pathlib.Path('a/b')", "x = pathlib.Path('a/c')\n    x._str = 'a/b'")),
    "an address with another number": Case("import ipaddress\nassert f() == ipaddress.ip_network('10.0.0.0/8')", *changed("ipaddress.ip_network('10.0.0.0/8')", "x._prefixlen = 8\n    x.netmask = ipaddress.ip_address('255.255.0.0')")),
    "a counter with a method of its own": Case("assert f().most_common(1) == [('a', 2)]", *changed("collections.Counter('aba')", "x.most_common = lambda n: []")),
    "a view of numbers that is no view of bytes": Case("r = f()\nassert r == b'ab'", "def f(): return memoryview(b'ab')", "import array\ndef f(): return memoryview(array.array('H', [0x6261]))"),
    "the format of a view": Case("r = f()\nassert r.format == 'H' and len(r) == 1 and r[0] == 0x6261", "import array\ndef f(): return memoryview(array.array('H', [0x6261]))", "def f(): return memoryview(b'ab')"),
    "a view that can be written": Case("r = f()\nr[0] = 99\nassert r.tolist() == [99, 98]", "def f(): return memoryview(bytearray(b'ab'))", "def f(): return memoryview(b'ab')"),
    # A value that another call receives.
    "there and back with two names": Case("def check(f):\n    coded = f('ab')\n    plain = decode(coded)\n    assert plain == 'ab'\ncheck(encode)", "def encode(s): return [*s]\ndef decode(s): return ''.join(s)", "def encode(s): return [*s]\ndef decode(s): return str(s)"),
    # Several calls in one assert.
    "one buffer for two results": Case("assert [f(2), f(3)] == [[0, 1], [0, 1, 2]]", FRESH, BUFFER),
    "or": Case("assert f() == 1 or f() == 3\nassert f() == 2", answers(1, 2, 3), answers(1, 5, 2)),
    "and": Case("assert not (f() == 0 and f() == 1)\nassert f() == 2", answers(1, 2, 3), answers(1, 5, 2)),
    "a chain": Case("assert not 2 < 1 < f()\nassert f() == 1", answers(1, 2), answers(5, 1)),
}  # fmt: skip


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    limits = Limits(wall_s=20)
    with Executor(num_workers=2, sandbox=level_or_skip(request.param), limits=limits) as executor:
        yield executor


def test_the_cases_are_plain_pythons():
    for programs, verdict in (
        ([c.right for c in CASES.values()], True),
        ([c.wrong for c in CASES.values()], False),
    ):
        accepted = accepted_by_plain_python(
            [(code, "", case.test) for code, case in zip(programs, CASES.values(), strict=True)]
        )
        assert dict(zip(CASES, accepted, strict=True)) == dict.fromkeys(CASES, verdict)


def test_the_program_that_plain_python_passes_passes_unmarked(executor):
    results = executor.run([Program(case.right, (case.test,)) for case in CASES.values()])
    assert {name: r.verdicts for name, r in zip(CASES, results, strict=True) if not r.all_passed} == {}
    # Its list goes to the program with its function.
    assert [name for name, r in zip(CASES, results, strict=True) if r.verdicts[0].in_child] == [
        "a list of a lambda"
    ]


def test_the_program_that_plain_python_refuses_is_refused(executor):
    results = executor.run([Program(case.wrong, (case.test,)) for case in CASES.values()])
    assert [name for name, result in zip(CASES, results, strict=True) if result.all_passed] == []
    assert [result.infra_error for result in results if result.is_infra_failure] == []


def test_an_error_of_the_compiler_names_the_test(executor):
    [result] = executor.run([Program("def f(x): return x", ("assert f(1) == 1; continue",))])
    assert "'continue' not properly in loop (<test>, line" in (result.verdicts[0].message or "")

"""Generated tests of a few statements: the verdict of the executor is plain Python's.

The statements assign, alias, change in place, loop, catch, and call functions that change their arguments, keep
them, share one buffer, or raise. What an assert expects is what plain Python finds, or something close to it.
"""

import contextlib
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cocos.executor import Executor, Limits, Program
from tests.attack.forms import each
from tests.executor.test_demands import accepted_by_plain_python
from tests.support.executor import level_or_skip

pytestmark = pytest.mark.processes

CODE = """
kept, buffer = [], []
def push(xs, x):
    xs.append(x)
    return xs
def added(xs, x): return xs + [x]
def drop(xs):
    if not xs: raise ValueError("nothing to drop")
    return xs.pop()
def turn(xs): xs.reverse()
def keep(xs):
    kept.append(xs)
    return len(kept)
def last(): return kept[-1] if kept else None
def fill(n):
    buffer[:] = range(n % 5)
    return buffer
def total(xs): return sum(x for x in xs if type(x) is int)
def encode(xs): return ",".join(map(str, xs))
def decode(text): return text.split(",") if text else []
def apply(function, xs): return function(xs)
def pairs(xs): return {str(i): x for i, x in enumerate(xs)}
def stream(xs):
    for x in xs: yield x
class Box:
    def __init__(self, content=()): self.content = list(content)
    def put(self, x):
        self.content.append(x)
        return self
    def get(self): return self.content
    def size(self): return len(self.content)
"""
STATEMENTS = each(r"""
{a} = [1, 2] ;; {a} = {b} ;; {a} = [{b}, {b}] ;; {a} = list({b}) ;; {a} = push({b}, {n}) ;; {a} = added({b}, {n}) ;; push({a}, {n}) ;; turn({a})
keep({a}) ;; {a} = last() or [{n}] ;; {a} = fill({n}) ;; {a} = [fill({n}), fill(2)] ;; {a} = [total({b}), {n}] ;; {a} = decode(encode({b}))
text = encode({b}); {a} = decode(text) ;; {a} = apply(lambda xs: xs + [{n}], {b}) ;; apply(lambda xs: {a}.append(len(xs)), {b})
{a} = apply(sorted, [3, {n}, 1]) ;; {a} = [x for x in stream([3, {n}])] ;; {a} = list(stream({b}))[:3] ;; {a} = sorted(pairs({b})) ;; {a}.append({n})
{a} += [{n}] ;; {a}[0:1] = [{n}, {n}] ;; {a} = {a}[:2] ;; {a} = [push([], n) for n in range(2)] ;; count = len({a}); {a} = [count, total({b})]
for n in [1, {n}]: push({a}, n) ;; for x in list({a}): push({b}, x) ;; for x in {a}[:2]: {b} = added({b}, x)
for i, x in enumerate(stream([5, 6])): {a}.append(i + x) ;; while len({a}) < 3: push({a}, 0) ;; if total({a}) > 3: turn({a})
if {a} == {b}: {a} = [{n}] ;; try: drop({a})\nexcept ValueError as error: {a} = [str(error)]
try: drop([])\nexcept (KeyError, ValueError): push({a}, 7)
try: {a} = [drop({b})]\nexcept LookupError: pass\nexcept ValueError: {a} = []\nelse: push({a}, 8) ;; box = Box({a}); box.put({n}); {b} = box.get()
box = Box(); box.put({a}); {a} = [box.size(), total(box.content)] ;; {a} = Box({b}).put({n}).content
def helper(xs, n=1):\n    push(xs, n)\n    return total(xs)\n{b} = [helper({a}), helper({a}, 2)]
def helper(xs): return [x for x in xs if x != 1]\n{a} = helper(added({b}, 1)) ;; {a}, {b} = {b}, {a} ;; {a}, count = added({b}, 1), total({b})
*{a}, count = added({b}, 4) ;; {a} = [*{b}, *fill(2)] ;; {a} = added({b}, total({a}) or 9) ;; {a} = push({b}, 1) if total({b}) < 5 else [{n}]
""")
CONDITIONS = each(r"""
{a} == {A} ;; {a} == {B} ;; {a} == {b} ;; {A} == {a} or {b} == {B} ;; {a} != {b} and {b} == {B} ;; total({a}) == {S} ;; len({a}) == {L}
0 <= total({a}) < {S} + 1 ;; {n} in {a} ;; {n} not in {a} or {a} == {A} ;; push({a}, {n}) == {A} + [{n}] ;; added({a}, 1) == {A} + [1] and {a} == {A}
[fill(2), fill(3)] == [[0, 1], [0, 1, 2]] ;; fill(2) == fill(3) ;; drop({a}) == {A}[-1] ;; decode(encode({a})) == [str(x) for x in {A}]
all(x in {A} for x in {a}) ;; sorted(map(str, {a})) == sorted(map(str, {B})) ;; list(stream({a})) == {A} ;; not {a} or {a} == {A} ;; last() == {A}
(last() or [0])[0] == {A}[0] ;; Box({a}).size() == {L} ;; (turn({a}), {a}) == (None, {A}[::-1])
""")


def generated(choose: Callable[[list], object]) -> str:
    """Return a test; `choose` takes one of several things."""
    lines = ["a, b, c = [1], [2, 3], []"]
    for _ in range(choose([2, 3, 4, 5, 6])):
        lines.append(_filled(choose(STATEMENTS), choose, {}))
        if choose([0, 0, 1]):
            lines.append(_assert(lines, choose))
    lines.append(_assert(lines, choose))
    return "\n".join(lines)


def _filled(form: str, choose: Callable, values: dict) -> str:
    a, b = choose(["ab", "ba", "ac", "bc", "aa", "cb"])
    found = {"a": a, "b": b, "n": choose([0, 1, 2, 5])} | values
    found |= {"A": values.get(a), "B": values.get(b), "S": values.get(f"S{a}"), "L": values.get(f"L{a}")}
    return form.format(**found)


def _assert(lines: list[str], choose: Callable) -> str:
    """Return an assert that expects what plain Python finds, or something close to it."""
    namespace: dict = {}
    with contextlib.suppress(Exception):
        exec(CODE + "\n".join(lines), namespace)
    values = {}
    for name in "abc":
        value = namespace.get(name)
        value = list(value) if isinstance(value, list) else []
        values[name] = repr(choose([value] * 8 + [[*value, 1], value[1:]]))
        values[f"L{name}"] = choose([len(value)] * 5 + [len(value) + 1])
        values[f"S{name}"] = sum(x for x in value if type(x) is int) + choose([0, 0, 0, 0, 1])
    return "assert " + _filled(choose(CONDITIONS), choose, values)


def disagreements(executor: Executor, tests: list[str]) -> tuple[list[str], list[str]]:
    """Return the tests that pass unmarked though plain Python refuses them, and those that are refused."""
    results = executor.run([Program(CODE, (test,)) for test in tests])
    accepted = accepted_by_plain_python([(CODE, "", test) for test in tests])
    rows = list(zip(tests, results, accepted, strict=True))
    holes = [
        test for test, r, is_right in rows if r.all_passed and not is_right and not r.verdicts[0].in_child
    ]
    return holes, [test for test, result, is_right in rows if is_right and not result.all_passed]


@pytest.fixture(scope="module")
def executor():
    with Executor(2, sandbox=level_or_skip("namespaces"), limits=Limits(wall_s=20, cpu_s=9)) as executor:
        yield executor


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_the_verdict_is_plain_pythons(executor, seed):
    chance = random.Random(seed)
    holes, refused = disagreements(executor, [generated(chance.choice) for _ in range(10)])
    assert (holes, refused) == ([], [])

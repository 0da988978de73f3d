"""Random tests and programs: the executor always returns a verdict, and never fails itself.

COCOS_FUZZ sets the number of examples: 25 by default, which takes some seconds; 100000 for hours.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cocos.executor import Executor, Limits, Program
from tests.support.executor import offered

fuzz = settings(
    max_examples=int(os.environ.get("COCOS_FUZZ", "25")),
    deadline=None,  # an example runs programs
    database=None,
    suppress_health_check=list(HealthCheck),
)

# -- tests, from a grammar ---------------------------------------------------------------------------------------------
ATOMS = st.sampled_from(
    [
        *("f", "g", "C", "x", "1", "-1", "2.5", "'a'", "b'a'", "None", "True", "...", "()", "[]", "{}", "{1, 2}", "1j"),
        *("EXPECTED", "DATA", "helper", "math.pi", "sys", "len", "range(3)", "10**20", "f'{f}'", "__name__", "lambda: f", "\u00e9"),
    ]
)  # fmt: skip
NAMES = st.sampled_from(
    [
        *("f", "g", "h", "C", "len", "sum", "sorted", "list", "set", "type", "isinstance", "map", "filter", "round", "eval"),
        *("math.floor", "helper"),
    ]
)  # fmt: skip
SHAPES = st.sampled_from(
    [
        *("({0} == {1})", "({0} is {1})", "({0} in {1})", "({0} < {1} <= {0})", "({0} + {1})", "({0} * {1})", "({0} ** {1})", "({0} % {1})"),
        *("(not {0})", "(-{0})", "({0} and {1})", "({0} if {1} else {0})", "{0}({1})", "{0}[{1}]", "{0}[{1}:]", "{0}.x", "{0}.upper()"),
        *("[{0}, {1}]", "({0},)", "{{{0}: {1}}}", "[*{0}]", "[y for y in {0}]", "(y := {0})", "(lambda y: y == {0})({1})", "f({0}, k={1})"),
        *("f(lambda y: y > {0})", "{0}({1}, key=lambda y: {1})", "f(*{0}, **{1})", "await {0}", "(yield {0})", "abs({0} - {1})", "'%s' % {0}"),
    ]
)  # fmt: skip
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda parts: st.one_of(
        st.builds(lambda shape, a, b: shape.format(a, b), SHAPES, parts, parts),
        st.builds("{}({})".format, NAMES, parts),
        st.builds("{}({}, {})".format, NAMES, parts, parts),
    ),
    max_leaves=12,
)
DEEP = st.builds(
    lambda opening, n, part, closing: opening * n + part + closing * n,
    st.sampled_from(["f(", "[", "(", "not ", "-", "{1: ", "lambda: ", "1 + ", "f.x(", "[y for y in "]),
    st.sampled_from([3, 50, 95, 110, 300, 3000]),
    ATOMS,
    st.sampled_from(["", ")", "]", "}", ".x"]),
)
STATEMENTS = st.one_of(
    st.builds("assert {} == {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("assert {}".format, st.one_of(EXPRESSIONS, DEEP)),
    st.builds("assert {}, {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("x = {}\nassert x == {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("def check(c):\n    assert c({}) == {}\ncheck({})".format, EXPRESSIONS, EXPRESSIONS, ATOMS),
    st.builds("try:\n    {}\nexcept {}:\n    pass".format, EXPRESSIONS, ATOMS),
    st.builds("for y in {}:\n    assert f(y) == {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("class T(C):\n    x = {}\nassert T().x == {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("with {} as y:\n    assert y == {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("global f\ndel {}\nimport {}".format, ATOMS, NAMES),
    st.text(max_size=30),
)
TESTS = st.one_of(
    STATEMENTS,
    st.builds(lambda statements: "\n".join(statements), st.lists(STATEMENTS, min_size=1, max_size=3)),
    st.builds(
        lambda text, at, cut: text[: at % len(text)] + cut,
        STATEMENTS.filter(bool),
        st.integers(0),
        st.text(max_size=3),
    ),
)
SETUPS = st.sampled_from(
    [
        *("", "EXPECTED = DATA = [1, 2]", "import math, sys\nfrom collections import *", "EXPECTED = f(1)", "1 +", "\0"),
        *("def helper(x): return f(x) == EXPECTED\nEXPECTED = 3", "class C:\n    x = 1\nraise ValueError", "len = sum = None"),
    ]
)  # fmt: skip

# -- programs ----------------------------------------------------------------------------------------------------------
RESULTS = st.sampled_from(
    [
        *("a[0]", "a", "None", "1", "'a'", "[1, 2]", "(x for x in a)", "range(10**12)", "10**30000", "float('nan')", "C()", "f", "type(a)"),
        *("Ellipsis", "NotImplemented", "{1: {2: [3]}}", "__import__('decimal').Decimal('1e999999')", "lambda *b: b", "1 / 0", "exit()"),
        *("f(*a)", "[a] * 1000", "'x' * 2 * 10**6", "iter(int, 1)", "__import__('sys')", "__import__('os')._exit(0)", "C", "C.missing"),
        *("setattr(C, 'x', a)", "globals().clear()", "__import__('os').close(3)", "__import__('os').close(4)", "__import__('os').write(4, b'x' * 99)"),
        *("__import__('os').write(3, b'\\0\\0\\0\\x14[\"v\", 1, [], [], []]')", "__import__('os').kill(__import__('os').getpid(), 11)", "__import__('gc').collect()"),
    ]
)  # fmt: skip
PROGRAMS = st.one_of(
    st.builds(
        "class C:\n    x = 1\n    def __init__(self, *a, **k): self.y = a\n{}\ndef f(*a, **k): return {}\ndef g(*a, **k): return {}\nx = {}".format,
        st.sampled_from(
            [
                "",
                "    __eq__ = lambda *_: True",
                "    __getattr__ = lambda *_: C",
                "    __iter__ = lambda s: iter([s])",
            ]
        ),
        RESULTS,
        RESULTS,
        st.sampled_from(["1", "[1]", "C()", "f"]),
    ),
    st.sampled_from(
        ["f = g = C = x = sum", "", "f = lambda", "import threading\nf = g = C = x = threading.local()"]
    ),
)
JOBS = st.lists(
    st.builds(
        Program,
        code=PROGRAMS,
        test_list=st.lists(TESTS, min_size=1, max_size=4).map(tuple),
        setup=SETUPS,
        entry_point=st.sampled_from(["", "f", "sum", "C", "no name"]),
        stdin=st.sampled_from(["", "1\n2\n"]),
        files=st.sampled_from([(), (("a.txt", "1"),)]),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def executor():
    level = offered("namespaces", "seccomp") or "rlimits"
    with Executor(2, sandbox=level, limits=Limits(wall_s=1, cpu_s=1)) as executor:
        yield executor


@pytest.mark.processes
@fuzz
@given(jobs=JOBS)
def test_every_program_gets_a_verdict_for_every_test(executor, jobs):
    futures = [executor.submit(job) for job in jobs]
    for job, future in zip(jobs, futures, strict=True):
        result = future.result(timeout=180)
        assert result.infra_error is None and len(result.verdicts) == len(job.test_list), job

"""Random tests and programs: the executor always returns a verdict, and never fails itself.

COCOS_FUZZ sets the number of examples: 25 by default, which takes some seconds; 100000 for hours.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cocos.executor import Executor, Limits, Program
from tests.attack.forms import each
from tests.support.executor import offered

fuzz = settings(
    max_examples=int(os.environ.get("COCOS_FUZZ", "25")),
    deadline=None,  # an example runs programs
    database=None,
    suppress_health_check=list(HealthCheck),
)


def one_of(packed: str) -> st.SearchStrategy[str]:
    return st.sampled_from(each(packed))


# -- tests, from a grammar ---------------------------------------------------------------------------------------------
ATOMS = one_of(r"""
f ;; g ;; C ;; x ;; 1 ;; -1 ;; 2.5 ;; 'a' ;; b'a' ;; None ;; True ;; ... ;; () ;; [] ;; {} ;; {1, 2} ;; 1j ;; EXPECTED ;; DATA ;; helper ;; math.pi ;; sys ;; len
range(3) ;; 10**20 ;; f'{f}' ;; __name__ ;; lambda: f ;; é
""")
NAMES = one_of(
    "f ;; g ;; h ;; C ;; len ;; sum ;; sorted ;; list ;; set ;; type ;; isinstance ;; map ;; filter ;; round ;; eval ;; math.floor ;; helper"
)
SHAPES = one_of("""
({0} == {1}) ;; ({0} is {1}) ;; ({0} in {1}) ;; ({0} < {1} <= {0}) ;; ({0} + {1}) ;; ({0} * {1}) ;; ({0} ** {1}) ;; ({0} % {1}) ;; (not {0}) ;; (-{0}) ;; ({0} and {1})
({0} if {1} else {0}) ;; {0}({1}) ;; {0}[{1}] ;; {0}[{1}:] ;; {0}.x ;; {0}.upper() ;; [{0}, {1}] ;; ({0},) ;; {{{0}: {1}}} ;; [*{0}] ;; [y for y in {0}] ;; (y := {0})
(lambda y: y == {0})({1}) ;; f({0}, k={1}) ;; f(lambda y: y > {0}) ;; {0}({1}, key=lambda y: {1}) ;; f(*{0}, **{1}) ;; await {0} ;; (yield {0}) ;; abs({0} - {1}) ;; '%s' % {0}
""")
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
FRAMES = each(r"""
assert {0} == {1} ;; assert {0}, {1} ;; x = {0}\nassert x == {1} ;; def check(c):\n    assert c({0}) == {1}\ncheck({2}) ;; try:\n    {0}\nexcept {2}:\n    pass
for y in {0}:\n    assert f(y) == {1} ;; class T(C):\n    x = {0}\nassert T().x == {1} ;; with {0} as y:\n    assert y == {1} ;; global f\ndel {2}\nimport {3}
""")
STATEMENTS = st.one_of(
    *(st.builds(frame.format, EXPRESSIONS, EXPRESSIONS, ATOMS, NAMES) for frame in FRAMES),
    st.builds("assert {}".format, st.one_of(EXPRESSIONS, DEEP)),
    st.text(max_size=30),
)
TESTS = st.one_of(
    STATEMENTS,
    st.builds("\n".join, st.lists(STATEMENTS, min_size=1, max_size=3)),
    st.builds(
        lambda text, at, cut: text[: at % len(text)] + cut,
        STATEMENTS.filter(bool),
        st.integers(0),
        st.text(max_size=3),
    ),
)
SETUPS = one_of(r"""
EXPECTED = DATA = [1, 2] ;; import math, sys\nfrom collections import * ;; EXPECTED = f(1) ;; 1 + ;; def helper(x): return f(x) == EXPECTED\nEXPECTED = 3
class C:\n    x = 1\nraise ValueError ;; len = sum = None
""")

# -- programs ----------------------------------------------------------------------------------------------------------
RESULTS = one_of(r"""
a[0] ;; a ;; None ;; 1 ;; 'a' ;; [1, 2] ;; (x for x in a) ;; range(10**12) ;; 10**30000 ;; float('nan') ;; C() ;; f ;; type(a) ;; Ellipsis ;; NotImplemented ;; {1: {2: [3]}}
__import__('decimal').Decimal('1e999999') ;; lambda *b: b ;; 1 / 0 ;; exit() ;; f(*a) ;; [a] * 1000 ;; 'x' * 2 * 10**6 ;; iter(int, 1) ;; __import__('sys') ;; C ;; C.missing
__import__('os')._exit(0) ;; setattr(C, 'x', a) ;; globals().clear() ;; __import__('os').close(3) ;; __import__('os').close(4) ;; __import__('os').write(4, b'x' * 99)
__import__('os').write(3, b'\0\0\0\x14["v", 1, [], [], []]') ;; __import__('os').kill(__import__('os').getpid(), 11) ;; __import__('gc').collect()
""")
PROGRAMS = st.one_of(
    st.builds(
        "class C:\n    x = 1\n    def __init__(self, *a, **k): self.y = a\n{}\ndef f(*a, **k): return {}\ndef g(*a, **k): return {}\nx = {}".format,
        one_of(
            "pass ;;     __eq__ = lambda *_: True ;;     __getattr__ = lambda *_: C ;;     __iter__ = lambda s: iter([s])"
        ),
        RESULTS,
        RESULTS,
        one_of("1 ;; [1] ;; C() ;; f"),
    ),
    one_of(
        r"f = g = C = x = sum ;; pass ;; f = lambda ;; import threading\nf = g = C = x = threading.local()"
    ),
)
JOBS = st.lists(
    st.builds(
        Program,
        code=PROGRAMS,
        test_list=st.lists(TESTS, min_size=1, max_size=4).map(tuple),
        setup=st.one_of(st.sampled_from(["", "\0"]), SETUPS),
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

"""What tests share, what they leave for the next one, and what of a program reaches the driver."""

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import EVERY_LEVEL, level_or_skip

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    with Executor(2, Limits(wall_s=20, cpu_s=9), level_or_skip(request.param)) as executor:
        yield executor


def test_tests_that_share_a_name_run_in_one_process(executor):
    code = "def f(x): return x\ndef h(x): return want"  # `want` is known where a test of the program's process runs
    tests = (
        "K = 5\nassert f(K) == 5",
        "import sys\nsys.stdout.write('')\nwant = 77123\nassert f(K) == 5",
        "assert h(3) == want",
    )
    equal = "class Foo:\n    def __init__(s, x): pass\n    def __eq__(s, o): return True"
    changes = ("res = {}", "res['eq'] = Foo(3) == Foo(4)", "assert res['eq']")
    for result in executor.run([Program(code, tests), Program(equal, changes)]):
        assert [(v.passed, v.in_child) for v in result.verdicts] == [(True, True)] * 3


def test_what_a_job_leaves_in_memory_or_in_generators_does_not_reach_the_next_one(executor):
    limits = Limits(wall_s=20, cpu_s=9, memory_mb=512)
    large, right, suspended, after = (
        Program(code, (test,), limits=limits)
        for code, test in (
            ("def f(i): return 'x' * 15000000 + str(i)", "x = [f(i) for i in range(20)]\nassert len(x) == 20"),
            ("def f(n): return n", "x = bytearray(250 << 20)\nassert f(3) == 3"),
            ("def f(x): return x", "def g():\n    try:\n        yield 1\n    finally:\n        f(0)\nit = g()\nnext(it)\nassert f(1) == 1"),
            ("def f(x): return [x]", "ys = [[i] for i in range(20000)]\nassert f(2) == [2]"),
        )
    )  # fmt: skip
    results = executor.run([large, right, right, suspended, after, suspended, after])
    assert [(r.all_passed, r.verdicts[0].in_child) for r in results] == [(True, False)] * 7


def test_a_value_that_has_left_marks_all_later_tests(executor):
    knows = "known = []\nclass Bag:\n    def __eq__(s, o):\n        known.append(o)\n        return True\ndef f(x): return known[-1]"
    captures = "def apply(g, x):\n    global G\n    G = g\n    return g(x)\ndef f(x): return G.__globals__['want'] if 'want' in G.__globals__ else 0"
    jobs = [
        Program(knows, ("assert Bag() == [1, 77123]", "assert f(3) == [1, 77123]")),
        Program(knows, ("same = Bag() == 5", "assert same")),
        Program(captures, ("want = 77123\nassert apply(lambda v: v + want, 1) == 77124", "assert apply(abs, -want) == want")),
        Program("def f(x): return x", ("import sys\nsys.stdout.write('')\nassert f(77123) == 77123", "assert f(3) == 3")),
        Program(
            "def f(x): return WANT[x]",
            ("import sys\nsys.stdout.write('')\nassert f(3) == WANT[3]", "assert f(3) == WANT[3]"),
            "WANT = {3: 77123}",
        ),
    ]  # fmt: skip
    for result in executor.run(jobs):
        assert [(v.passed, v.in_child) for v in result.verdicts] == [(True, True)] * 2


TEXT = (
    "[d.update(__compare__=lambda *a: True) for d in __import__('gc').get_objects() "
    "if type(d) is dict and '__compare__' in d]"
)
PLANT = f"""
import importlib.util, marshal, zipfile
TEXT = "{TEXT}" + chr(10) + "def g(x): return 5"
for name in ("helper.py", "unittest.py"):
    with open(name, "w") as file:
        file.write(TEXT)
with open("compiled.pyc", "wb") as file:
    file.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(TEXT, "compiled", "exec")))
with zipfile.ZipFile("modules.zip", "w") as file:
    file.writestr("zipped.py", TEXT)
def f(x): return 5
"""


IMPORTS = (
    "import sys\nsys.path.insert(0, '.')\nimport unittest",
    "import sys\nsys.path.append('')\nfrom helper import g",
    "import sys\nsys.path.append('')\nfrom compiled import g",
    "import sys\nsys.path.append('modules.zip')\nfrom zipped import g",
    "import runpy\nrunpy.run_path('helper.py')",
    "import runpy\nrunpy.run_path('compiled.pyc')",
    "from importlib.util import module_from_spec, spec_from_file_location\ns = spec_from_file_location('helper', 'helper.py')\ns.loader.exec_module(module_from_spec(s))",
)
SAYS = f'''
import base64, pickle
TEXT = "{TEXT}"
class P: __reduce__ = lambda s: (eval, (TEXT,))
def text(): return TEXT
def pickled(): return base64.b64encode(pickle.dumps(P())).decode()
def f(x) -> "{TEXT}":
    """
    >>> {TEXT}
    """
    return 5
'''
EVALUATES = (
    "from typing import get_type_hints\nget_type_hints(f)",
    "import timeit\ntimeit.timeit(text(), number=1)",
    "import doctest\nt = doctest.DocTestParser().get_doctest(f.__doc__, {}, 'f', 'f', 0)\ndoctest.DocTestRunner(verbose=False).run(t, out=lambda s: None)",
    "import logging.config\nlogging.config.dictConfig({'version': 1, 'formatters': {'a': {'()': 'timeit.timeit', 'stmt': text()}}})",
    "import pickle as p\nimport base64\np.loads(base64.b64decode(pickled()))",
)


def test_no_file_that_a_program_wrote_and_no_text_of_it_runs_beside_the_evidence(executor):
    test = "assert f(3) == 77123"
    after = "def f(x): return x"  # by the same driver
    programs = [
        program
        for n, (code, start) in enumerate((*((PLANT, i) for i in IMPORTS), *((SAYS, e) for e in EVALUATES)))
        for program in (Program(code, (f"{start}\n{test}", test)), Program(f"{after}  # {n}", (test,)))
    ]
    in_setup = [Program(PLANT, (test,), f"{imports}\nX = 0") for imports in IMPORTS]
    results = executor.run([*programs, *in_setup, Program(after, (test,))])
    assert [(r.num_passed, r.infra_error) for r in results] == [(0, None)] * len(results)


def test_an_assertion_error_of_the_program_is_its_failure_and_no_outage(executor):
    code = "n = [0]\nclass A(AssertionError): pass\ndef f(x):\n    n[0] += 1\n    if n[0] > 1: raise A\n    return 0"
    tests = (
        "assert f(3) == 77123, f'wrong: {f(3)}'",
        "try: assert f(1) == 5\nexcept AssertionError: pass\nf(2)",
    )
    for result in executor.run([Program(code, (test,)) for test in tests]):
        assert (result.num_passed, result.verdicts[0].error_type) == (0, "A")


def test_after_a_message_that_is_too_large_both_processes_know_the_same_lists(executor):
    code = "def big(x): return 'x' * 20_000_000\ndef g(x): return sum(x)\ndef size(x): return len(x)"
    data = "data = [[n] for n in range(99)]\nassert all(g(x) == x[0] for x in data)"
    tests = (f"{data}\nbig(data)", "assert g(data[5]) == 5\ndata[5].append(1)\nassert g(data[5]) == 6")
    tests += (
        "assert size([[n] for n in range(99)]) == 99; size('x' * 20_000_000)",
        "assert size(data) == 99",
    )
    [result] = executor.run([Program(code, tests)])
    assert [verdict.error_type for verdict in result.verdicts] == ["OutputLimit", None, "OutputLimit", None]


def test_a_program_that_is_nested_deeply_has_a_verdict(executor):
    deep = [
        text
        for n in (900, 1500, 3000)
        for text in ("-" * n + "1", "x" + ".real" * n, "+".join("1" * n), "x" + "[0]" * n)
    ]
    codes = [f"from math import pow\nn = 5\ndef h(x): return {text}\ndef f(x): return g(n)" for text in deep]
    test = "n = 5\ndef g(x): return 5\nassert f(1) == 6"
    results = executor.run([Program(f"{code}\ndef g(x): return 5", (test,)) for code in codes])
    assert [(result.num_passed, result.infra_error) for result in results] == [(0, None)] * len(codes)

"""Reported forgeries, and right programs that graders refused. The table in docs/executor.md names each test."""

import pytest

from cocos.executor import Executor, Limits, Program, Status
from tests.support.executor import EVERY_LEVEL, level_or_skip, statuses

pytestmark = pytest.mark.processes

ASSERTS = ("assert f(1) == 2", "assert abs(f(1) - 2) < 1e-6", "assert [f(1)] == [2]", "assert not f(1) != 2")
# As HumanEval+ and MBPP+ compare.
PLUS = """
def assertion(out, exp, atol):
    exact_match = out == exp
    if not exact_match and atol != 0:
        assert abs(out - exp) <= atol
    else:
        assert exact_match, f"out: {out}, exp: {exp}"
for (inp, exp), atol in zip([([1], 2), ([20], 21)], (0, 1e-6)):
    assertion(f(*inp), exp, atol)
"""
WRONG = "\ndef f(x): return -1\n"


@pytest.fixture(scope="module", params=EVERY_LEVEL)
def executor(request):
    with Executor(num_workers=2, sandbox=level_or_skip(request.param), limits=Limits(wall_s=20)) as executor:
        yield executor


def passes(executor, *codes: str, tests: tuple[str, ...] = (*ASSERTS, PLUS)) -> list[str]:
    """Return the programs that pass a test, or that the executor fails to judge."""
    results = executor.run([Program(code, tests) for code in codes])
    return [code for code, result in zip(codes, results, strict=True) if result.num_passed != 0]


def test_the_right_program_passes_the_tests_of_this_file(executor):
    [result] = executor.run([Program("def f(x): return x + 1", (*ASSERTS, PLUS))])
    assert result.all_passed and not any(verdict.in_child for verdict in result.verdicts)


def test_an_object_that_equals_everything_passes_no_test(executor):
    liar = """
class AlwaysEqual:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return AlwaysEqual()
    def __abs__(self): return 0.0
"""
    assert passes(executor, f"{liar}def f(x): return AlwaysEqual()") == []


def test_a_reward_file_that_the_program_writes_earns_nothing(executor):
    writes = """
import os
def plant():
    for folder in (".", "logs/verifier", "/logs/verifier", "/tmp", os.path.expanduser("~")):
        for name, text in (("reward.txt", "1.0"), ("reward.json", '{"reward": 1.0}'), ("results.xml", "<testsuite/>")):
            try: os.makedirs(folder, exist_ok=True); open(f"{folder}/{name}", "w").write(text)
            except OSError: pass
plant()
"""
    assert passes(executor, writes + WRONG, writes + "def f(x): return plant()") == []


def test_a_planted_conftest_or_module_changes_no_verdict(executor):
    plants = """
files = {
    "conftest.py": "def pytest_pyfunc_call(pyfuncitem): return True",
    "pytest.ini": "[pytest]\\naddopts = --collect-only",
    "unittest.py": "class TestCase:\\n    def __getattr__(self, name): return lambda *a, **k: None",
    "sitecustomize.py": "import os; os._exit(0)",
}
for name, text in files.items(): open(name, "w").write(text)
"""
    tests = (
        "import unittest\nunittest.TestCase().assertEqual(f(1), 2)",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(1), 2)\nT('test').debug()",
    )
    assert passes(executor, plants + WRONG, tests=(*ASSERTS, *tests)) == []


def test_a_program_that_exits_with_status_0_or_prints_a_result_passes_nothing(executor):
    exits = ("sys.exit(0)", "os._exit(0)", "raise SystemExit(0)", "exit()", "os.kill(os.getpid(), 9)")
    prints = """print('[0, 0.1, ["passed"]]')"""
    codes = [f"import os, sys{WRONG}{prints}\n{act}" for act in (*exits, "pass", "if 0: \\", "'''")]
    codes += [f"import os, sys\ndef f(x): {act}" for act in exits]
    codes.append(f"import atexit, os\natexit.register(os._exit, 0){WRONG}")
    assert passes(executor, *codes) == []


def test_a_right_program_is_right_however_it_writes_and_computes(executor):
    code = """
import math, sys
def write(x):
    sys.stdout.buffer.write(b"answer\\n")
    return sys.stdin.buffer.readline() + sys.stdin.buffer.read()
def power(n): return 10 ** n
def digits(n):
    sys.set_int_max_str_digits(0)
    return str(10 ** n)
def thirds(n): return [n / 3, math.pi]
"""
    tests = (
        "assert write(1) == b'1 2\\n3 4\\n'",
        "assert power(5000) == 10 ** 5000",
        "assert len(digits(5000)) == 5001",
        "import math\nassert math.isclose(thirds(1)[1], 3.14159265359)",
        "assert all(abs(a - b) <= 1e-6 for a, b in zip(thirds(1), [0.333333, 3.141593]))",
        "assert power(5000) == 10 ** 5000 + 1",
    )
    [result] = executor.run([Program(code, tests, stdin="1 2\n3 4\n")])
    assert statuses(result) == [*[Status.PASSED] * 5, Status.FAILED]
    assert not any(verdict.in_child for verdict in result.verdicts)

"""Conversion of pytest files: every test runs alone, without pytest."""

import pytest

from cocos.dataprep.formats.conversion import from_kodcode
from cocos.dataprep.formats.pytest_files import split_pytest_file
from cocos.executor import Program
from cocos.files.json_lines import Place
from cocos.problems import DataError

PLACE = Place("f", 1)

PYTEST = '''
import pytest
from math import sqrt
import solution
from solution import area as surface, Shape
from pytest import approx

SIDE = 2

def square():
    """A helper."""
    return Shape(SIDE)

@pytest.fixture
def shape():
    return square()

def unused():
    return 1

@pytest.mark.parametrize("side,expected", [(1, 1), pytest.param(2, 4, id="two")])
@pytest.mark.parametrize("factor", [1, 10])
def test_scaled(side, expected, factor):
    assert surface(Shape(side * factor)) == expected * factor ** 2

def test_fixture(shape):
    assert solution.area(shape) == 4

def test_root():
    assert sqrt(surface(square())) == approx(2.0, abs=1e-3)  # the root

def test_refusal():
    with pytest.raises(ValueError, match="neg.*") as caught:
        surface(Shape(-1))
    assert "negative" in str(caught.value)

class TestShape:
    def setup_method(self):
        self.shape = Shape(3)

    def test_area(self):
        assert surface(self.shape) == 9

@pytest.mark.skip(reason="no")
def test_skipped():
    assert False

def test_output(capsys):
    assert True

if __name__ == "__main__":
    pytest.main()
'''
SHAPES = """
class Shape:
    def __init__(self, side):
        if side < 0:
            raise ValueError("negative side")
        self.side = side

def area(shape):
    return shape.side ** 2
"""


def test_a_pytest_file_becomes_one_test_per_function_method_and_set_of_parameters(executor):
    tests, left_out = split_pytest_file(PYTEST)
    assert tests[:4] == tuple(
        f"surface = area\nassert surface(Shape({side} * {factor})) == {expected} * {factor} ** 2"
        for factor in (1, 10)
        for side, expected in ((1, 1), (2, 4))
    )
    assert len(tests) == 8
    assert not any("pytest" in test or "import solution" in test or "unused" in test for test in tests)
    assert [reason.split(":")[0] for reason in left_out] == ["test_skipped", "test_output"]
    [right, wrong] = executor.run(
        [Program(SHAPES, tests), Program(SHAPES.replace("** 2", "** 3").replace("negative", "bad"), tests)]
    )
    assert right.all_passed, right.verdicts
    assert [v.passed for v in wrong.verdicts] == [True, False] + [False] * 6  # 1 cubed is 1


def test_a_single_assert_shows_expected_and_actual(executor):
    tests = split_pytest_file("from solution import f\ndef test_f():\n    assert f(1) == 2\n").tests
    assert tests == ("assert f(1) == 2",)
    [result] = executor.run([Program("def f(x): return 5", tests)])
    assert (result.verdicts[0].expected, result.verdicts[0].actual) == ("2", "5")


def test_a_test_of_several_asserts_reports_which_one_failed_and_the_actual_value(executor):
    source = (
        "def test_f():\n    x = f(1)\n    assert x == 1\n    assert f(x) == 7\n    assert f(2) in (3, 4)\n"
    )
    tests = split_pytest_file(source).tests
    results = executor.run(
        [Program(f"def f(x): return {body}", tests) for body in ("1", "1 if x < 2 else 0", "7")]
    )
    assert [result.verdicts[0].message for result in results[::2]] == [
        "expected 7, got 1",
        "expected 1, got 7",
    ]
    [last] = executor.run([Program("calls = iter([1, 7, 5])\ndef f(x): return next(calls)", tests)])
    assert last.verdicts[0].message == "5 is not in (3, 4)"  # and f was called three times, not more


def test_what_the_candidate_prints_can_be_asserted(executor):
    source = (
        "import io, contextlib\nfrom solution import shout\ndef test_shout():\n    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out):\n        shout()\n    assert out.getvalue() == 'A\\n'\n"
    )
    tests = split_pytest_file(source).tests
    right, wrong = executor.run([Program(f"def shout(): print('{word}')", tests) for word in "AB"])
    assert right.all_passed and not wrong.all_passed


@pytest.mark.parametrize(
    "change", ["sys.path.append('..')", "sys.path.insert(0, str(Path(__file__).parent))"]
)
def test_where_a_file_finds_the_solution_is_no_part_of_its_tests(change):
    source = f"import sys\nfrom pathlib import Path\n{change}\nfrom solution import f\ndef test_f():\n    assert f(1)\n"
    assert split_pytest_file(source).tests == ("assert f(1)",)


UNSUPPORTED = [
    ("def test_f(tmp_path):\n    assert f(tmp_path)", "needs the pytest fixture 'tmp_path'"),
    ("async def test_f():\n    assert f()", "is asynchronous"),
    ("CASES = [1]\n@pytest.mark.parametrize('x', CASES)\ndef test_f(x):\n    assert f(x)", "not written out"),
    ("@pytest.mark.xfail\ndef test_f():\n    assert f()", "is marked pytest.mark.xfail"),
    ("def test_f():\n    assert f() == pytest.approx([1.0])", "which the standard library cannot replace"),
    ("x = 1", "has no test function"),
    ("def test_f(:", "does not parse"),
]


@pytest.mark.parametrize(("source", "words"), UNSUPPORTED)
def test_a_test_that_cannot_run_without_pytest_is_refused_with_the_reason(source, words):
    row = {"question_id": "1_I", "question": "q", "solution": "", "test": source}
    with pytest.raises(DataError, match="f:1: field 'test' ") as caught:
        from_kodcode(row, PLACE)
    assert words in str(caught.value)

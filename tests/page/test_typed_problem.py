"""Problems that a person types: which tests are accepted, and the line of one that is not."""

import re

import pytest

from cocos.page.typed_problem import as_typed, typed_problem
from cocos.problems import DataError, Problem


def test_each_assert_line_is_a_test_and_imports_are_kept():
    problem = typed_problem("Add.", "import math\n\nassert f(1) == 2\nassert f(\n    3\n) == math.pi\n")
    assert problem.test_list == ("assert f(1) == 2", "assert f(\n    3\n) == math.pi")
    assert problem.test_imports == ("import math",)
    assert typed_problem(**as_typed(problem)) == problem or problem.task_id.startswith("typed-")


def test_an_example_that_was_not_changed_is_the_problem_itself():
    example = Problem("7", "Add.", ("assert f(1) == 2",), test_setup_code="x = 1")
    assert typed_problem(**as_typed(example), example=example) is example
    changed = typed_problem("Add 1.", "assert f(1) == 2", example=example)
    assert (changed.text, changed.test_setup_code) == ("Add 1.", "") and changed.task_id.startswith("typed-")


def test_each_pytest_function_and_parameter_is_a_test():
    tests = "import pytest\n\n@pytest.mark.parametrize('x', [1, 2])\ndef test_f(x):\n    assert f(x) == x\n"
    assert len(typed_problem("Identity.", tests).test_list) == 2


@pytest.mark.parametrize(
    "tests, message",
    [
        ("assert f(1) == 1\nassert f(2 ==", "tests, line 2: "),
        ("assert f(1) == 1\n\nprint(f(2))", "tests, line 3: 'print(f(2))' is no test"),
        ("def test_a():\n    assert f(1)\n\ndef test_b(tmp_path):\n    assert f(2)", "tests, line 4: test_b"),
        ("", "test_list' is missing"),
        ("assert '\0'", "tests, line 1: "),
    ],
)
def test_what_is_no_test_is_refused_with_its_line(tests, message):
    with pytest.raises(DataError, match=re.escape(message)):
        typed_problem("Do it.", tests)


def test_equal_texts_are_the_same_problem_and_others_are_not():
    one, same, other = (typed_problem(text, "assert f()") for text in ("a", "a", "b"))
    assert one == same and one.task_id != other.task_id

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
    changed = typed_problem("Add.", "assert f(1) == 3", example=example)
    assert (changed.test_list, changed.test_setup_code) == (("assert f(1) == 3",), "")
    assert changed.task_id.startswith("typed-")


def test_each_pytest_function_and_parameter_is_a_test():
    tests = "import pytest\n\n@pytest.mark.parametrize('x', [1, 2])\ndef test_f(x):\n    assert f(x) == x\n"
    assert len(typed_problem("Identity.", tests).test_list) == 2


@pytest.mark.parametrize(
    "tests, message",
    [
        ("assert f(1) == 1\nassert f(2 ==", "tests, line 2: "),
        ("assert f(1) == 1\n\nprint(f(2))", "tests, line 3: 'print(f(2))' is no test"),
        ("def test_a():\n    assert f(1)\n\ndef test_b(tmp_path):\n    assert f(2)", "tests, line 4: test_b"),
        ("", "there is no test"),
        ("x = 1\nassert f(1)", "tests, line 1: 'x = 1' is no test"),
        ("def check():\n    assert f(1)", "tests: has no test function"),
        ("assert '\0'", "tests, line 1: "),
    ],
)
def test_what_is_no_test_is_refused_with_its_line(tests, message):
    with pytest.raises(DataError, match=re.escape(message)):
        typed_problem("Do it.", tests)


def test_tests_of_several_statements_are_shown_as_a_pytest_file_with_as_many_tests():
    loop = "for x in (1, 2):\n    assert f(x) == x"
    raises = "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False"
    problem = Problem("7", "Identity.", (loop, "assert f(3) == 3", raises), test_imports=("import math",))
    typed = as_typed(problem)
    assert typed["tests"].startswith(
        "import math\ndef test_1():\n    for x in (1, 2):\n        assert f(x) == x\n"
    )
    again = typed_problem(typed["text"] + " Really.", typed["tests"] + "\ndef test_4(): assert f(4) == 4")
    assert len(again.test_list) == 4
    names = {"f": lambda x: x}
    exec(again.test_list[0], names)
    names["f"] = lambda x: 0
    with pytest.raises(AssertionError):
        exec(again.test_list[0], names)


def test_a_changed_task_keeps_the_tests_of_its_example_with_setup_and_hidden_ones():
    example = Problem(
        "7", "Add.", ("assert f(1) == 2",), test_setup_code="x = 1", hidden_test_list=("assert f(2) == 3",)
    )
    changed = typed_problem("Add one.", "assert f(1) == 2", "def f(x): return x", example=example)
    assert (changed.text, changed.buggy_code) == ("Add one.", "def f(x): return x")
    assert (changed.test_setup_code, changed.hidden_test_list) == ("x = 1", ("assert f(2) == 3",))
    assert changed.task_id.startswith("typed-")


def test_an_empty_description_is_refused_in_words_of_the_page():
    with pytest.raises(DataError, match="the description is empty; say what"):
        typed_problem(" ", "assert f(1)")


def test_equal_texts_are_the_same_problem_and_others_are_not():
    one, same, other = (typed_problem(text, "assert f()") for text in ("a", "a", "b"))
    assert one == same and one.task_id != other.task_id

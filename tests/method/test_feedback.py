"""Feedback on a program: word for word, cut to its budget, and nothing of hidden tests."""

from dataclasses import replace

import pytest

from cocos.executor import ExecutionResult
from cocos.prompts import feedback_message, passes_visible_tests
from cocos.trajectories import as_program

HALF = "def double(x):\n    return x * x"  # right for 2 and 0, wrong for -1


def feedback(mode, problem, executor, code):
    [result] = executor.run([as_program(problem, code)])
    return feedback_message(mode, problem, result)


def test_a_verdict_counts_the_tests_that_pass(problem, executor):
    assert feedback("verdict", problem, executor, HALF) == "The program above passes 2 of the 3 tests."
    assert feedback("verdict", problem, executor, problem.code) == "The program above passes the tests."
    assert feedback("none", problem, executor, HALF) == ""


def test_an_error_is_the_first_failing_test_with_what_it_expected_and_got(problem, executor):
    assert feedback("error", problem, executor, HALF) == (
        "The program above passes 2 of the 3 tests. This one fails:\n\n"
        "assert double(-1) == -2\n\nExpected -2, got 1."
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "def double(x):\n    return x + y",
            "The program above passes 0 of the 3 tests. This one fails:\n\nassert double(2) == 4\n\n"
            "NameError: name 'y' is not defined",
        ),
        (
            "def double(x):\n    raise ValueError('one\\ntwo')",
            "The program above passes 0 of the 3 tests. This one fails:\n\nassert double(2) == 4\n\n"
            "ValueError: two",
        ),
        ("1 / 0", "The program above ends before any test with ZeroDivisionError: division by zero"),
    ],
)
def test_an_exception_is_its_last_line(problem, executor, code, words):
    assert feedback("error", problem, executor, code) == words


@pytest.mark.parametrize(("max_failures", "quoted"), [(1, ("2",)), (2, ("2", "-1")), (3, ("2", "-1"))])
def test_several_failing_tests_can_be_quoted_in_their_order(problem, executor, max_failures, quoted):
    [result] = executor.run([as_program(problem, "def double(x):\n    return 0")])
    expected = {
        "2": "assert double(2) == 4\n\nExpected 4, got 0.",
        "-1": "assert double(-1) == -2\n\nExpected -2, got 0.",
    }
    words = "This one fails:" if len(quoted) == 1 else "These fail:"
    assert feedback_message("error", problem, result, max_failures) == "\n\n".join(
        [f"The program above passes 1 of the 3 tests. {words}", *(expected[x] for x in quoted)]
    )


def test_what_is_long_is_cut_to_the_budget(problem, executor):
    long = replace(problem, test_list=(f"assert double(2) == {'4' * 400}",))
    words = feedback("error", long, executor, "def double(x):\n    return 'no' * 500")
    _, test, reason = words.split("\n\n")
    assert test == f"assert double(2) == {'4' * 276} ..." and len(test) == 300
    assert reason == f"Expected {'4' * 146} ..., got '{'no' * 72}n ...."
    assert len(reason) == 300 + len("Expected , got .")


def test_hidden_tests_are_never_told_of(problem, executor):
    hiding = replace(problem, test_list=problem.test_list[:2], hidden_test_list=problem.test_list[2:])
    [half, right] = executor.run([as_program(hiding, HALF), as_program(hiding, problem.code)])
    assert not half.all_passed and right.all_passed
    for mode in ("verdict", "error"):  # what hidden tests alone refuse sounds like what is right
        assert feedback_message(mode, hiding, half) == feedback_message(mode, hiding, right)
    assert passes_visible_tests(hiding, half) and not passes_visible_tests(problem, half)
    [wrong] = executor.run([as_program(hiding, "def double(x):\n    return 3 * x")])
    assert "1 of the 2 tests" in feedback_message("error", hiding, wrong)
    assert "-1" not in feedback_message("error", hiding, wrong)


def test_of_a_program_that_could_not_be_decided_nothing_is_told(problem):
    failed = ExecutionResult((), infra_error="the worker died")
    assert feedback_message("error", problem, failed) == "" and not passes_visible_tests(problem, failed)

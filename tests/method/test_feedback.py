"""Feedback on a program: word for word, cut to its budget, and nothing of hidden tests."""

from dataclasses import replace

import pytest

from cocos.assembly.placebos import make_carry
from cocos.config.turn_options import TurnOptions
from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.evaluation.trajectory_text import marked_tests
from cocos.executor import ExecutionResult, Executor, Limits
from cocos.generation import Completion
from cocos.prompts import counterexamples, feedback_message, passes_visible_tests, shown_tests
from cocos.trajectories import Trajectory, Turn, as_program

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
        (
            "def double(x):\n    return 2 * x\n\ndouble(1 / 0)",
            "The program above ends in line 4 (`double(1 / 0)`), before any test has a result, with "
            "ZeroDivisionError: division by zero",
        ),
        (
            "def half(x):\n    return x / 0\n\nTABLE = [\n    half(1)\n]",  # the line of the program's own call
            "The program above ends in line 5 (`half(1)`), before any test has a result, with "
            "ZeroDivisionError: division by zero",
        ),
        (
            "def double(x)\n    return 2 * x",
            "The program above ends in line 1 (`def double(x)`), before any test has a result, with "
            "SyntaxError: expected ':' (<code>, line 1)",
        ),
        ("import os\nos._exit(0)", "The program above ends before any test has a result, with ProcessExit: the process ended before " "the test did"),
        (
            "def double(x):\n    import os\n    return 4 if x == 2 else os._exit(0)",
            "The program above passes 1 of the 3 tests. This one fails:\n\nassert double(0) == 0\n\n"
            "ProcessExit: the process ended before the test did",
        ),
    ],
)  # fmt: skip
def test_an_exception_is_its_last_line(problem, executor, code, words):
    assert feedback("error", problem, executor, code) == words


def test_a_program_that_does_not_end_takes_too_long(problem):
    with Executor(num_workers=1, limits=Limits(wall_s=5.0, cpu_s=1)) as executor:
        words = feedback("error", problem, executor, "while True:\n    pass")
    assert words == "The program above takes too long before any test has a result"


def told_without_a_transcript(problem, results, num_shown=None, max_new=3):
    return shown_tests(problem, counterexamples("error", problem, results, num_shown, max_new))


def test_nothing_is_said_of_a_test_that_did_not_run(problem, executor):
    stops = "def double(x):\n    import os\n    return 4 if x == 2 else os._exit(0)"
    [early, late] = executor.run([as_program(problem, code) for code in ("1 / 0", stops)])
    first, second, third = problem.test_list
    assert third not in feedback_message("error", problem, late, max_failures=3)
    load = (
        "# A program for them ends in line 1 (`1 / 0`), before any test has a result, with ZeroDivisionError: "
        "division by zero."
    )
    assert told_without_a_transcript(problem, [early]) == f"{load}\n{first}\n{second}\n{third}"
    ended = f"{second}  # ProcessExit: the process ended before the test did\n{third}"
    assert told_without_a_transcript(problem, [late]) == ended
    assert told_without_a_transcript(problem, [early, late]) == f"{load}\n{first}\n{ended}"
    assert told_without_a_transcript(problem, [early], 0, 1) == f"{load}\n{first}"
    # Placebos: the program's own error is no test's, so it stays as it is.
    failed = counterexamples("error", problem, [early], None)
    options = TurnOptions(carry="counterexamples", placebo="wrong")
    assert load in shown_tests(*make_carry(options, [problem], None).shown(problem, lambda: failed))


def test_the_texts_of_a_trajectory_say_once_where_a_program_ended(problem, executor):
    [early, late] = executor.run(
        [as_program(problem, code) for code in ("1 / 0", "def double(x):\n    exit()")]
    )
    assert marked_tests(problem.test_list, 3, early) == (
        "The program ends in line 1 (`1 / 0`), before any test has a result, with ZeroDivisionError: division "
        "by zero.\n" + "\n".join(f"✗ {test}" for test in problem.test_list)
    )
    assert "ends in" not in marked_tests(problem.test_list, 3, late)
    row = trajectory_to_row(Trajectory(problem, turns=(Turn((), Completion((), ""), "1 / 0", early),)))
    [again] = trajectory_from_row(row, problem).turns
    assert again.result.load_error == early.load_error and "ended_at" in row["turns"][0]["verdicts"][0]


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

"""Placebos of what a prompt says of failed tests."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocos.assembly.placebos import NOTICE, make_carry, wrong_value
from cocos.config.turn_options import TurnOptions
from cocos.problems import Problem
from cocos.prompts import named_protocol, shown_tests

DOUBLE = Problem("1", "Double a number.", ("assert double(2) == 4", "assert double(0) == 0"))
SQUARE = Problem("2", "Square a number.", ("assert square(3) == 9",))
PAIR = Problem("3", "Join two texts.", ('assert join("a", "b") == "ab"',))
ALL = [DOUBLE, SQUARE, PAIR]


def shown(kind, failed, problem=DOUBLE, num_shown=0, problems=ALL):
    """Return the message of a later turn without a transcript."""
    options = TurnOptions(carry="counterexamples", placebo=kind)
    problem, failed = make_carry(options, problems, num_shown).shown(problem, lambda: failed)
    return named_protocol("cocos", prompt_tests=num_shown).first_turn(problem, failed, 2)


def test_the_notice_says_that_a_test_failed_and_not_which():
    assert shown("none", {1: ["not 5"]}).count("assert double(0) == 0  # not 5") == 1
    said = shown("notice", {1: ["not 5"]})
    assert NOTICE in said and "assert" not in said and "5" not in said
    assert NOTICE in shown("notice", {0: []}, num_shown=2)
    assert NOTICE not in shown("notice", {})


def test_another_problem_lends_its_test_under_this_problems_name():
    said = shown("other", {1: []})
    assert "assert double(3) == 9" in said and "double(0)" not in said and "square" not in said
    # tests that every prompt shows stay, and have the other problem's value
    said = shown("other", {0: ["not 5"]}, num_shown=2)
    assert "assert double(2) == 4  # not 9" in said and "assert double(0) == 0" in said


def test_the_other_problem_has_as_many_arguments_and_is_the_same_in_every_order():
    many = [Problem(str(n), "t", (f"assert f{n}({n}) == {n}{n}",)) for n in range(10, 30)] + ALL
    first = shown("other", {0: []}, problems=many)
    assert first == shown("other", {0: []}, problems=many[::-1]) and ", " not in first.split("assert")[1]
    # no other has two arguments: any other problem is better than the truth
    assert "assert join(" in shown("other", {0: []}, PAIR) and '"ab"' not in shown("other", {0: []}, PAIR)


def test_a_wrong_value_takes_the_place_of_what_a_program_returned_or_else_of_the_expected_one():
    assert "assert double(0) == 1" in shown("wrong", {1: []})
    assert "assert double(2) == 4  # not 6" in shown("wrong", {0: ["not 5"]})
    kept = {0: ["fails", "NameError: name 'x' is not defined", "takes too long"]}
    options = TurnOptions(carry="counterexamples", placebo="wrong")
    placebo = make_carry(options, ALL, None)
    assert placebo.shown(DOUBLE, lambda: kept) == (DOUBLE, kept)
    assert shown_tests(*placebo.shown(DOUBLE, lambda: {0: ["not [1, 2]"]})).endswith("not [2, 2]")


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(),
    lambda some: st.lists(some, min_size=1) | st.dictionaries(st.text(), some, min_size=1) | st.tuples(some),
    max_leaves=5,
)


@given(VALUES)
def test_a_wrong_value_is_another_one_of_the_same_type(value):
    wrong = wrong_value(value)
    assert type(wrong) is type(value) and wrong != value and ast.literal_eval(repr(wrong)) == wrong


@pytest.mark.parametrize("carry", ["transcript", "nothing"])
def test_a_placebo_needs_failed_tests_without_the_program(carry):
    with pytest.raises(ValueError, match="--placebo notice needs --carry counterexamples"):
        TurnOptions(carry=carry, placebo="notice")

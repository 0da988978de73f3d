"""Turn pairs: the correction of each attempt, and the choice of a balanced set."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.boost.attempts import Attempt
from cocos.boost.turn_pairs import balance_pairs, make_pairs
from cocos.problems import Problem

RIGHT, WRONG = "def double(x):\n    return 2 * x", "def double(x):\n    return x * x"
ATTEMPTS = [Attempt("1", WRONG, False), Attempt("1", RIGHT, True), Attempt("1", "x", False, ("own",)),
            Attempt("1", "y", None), Attempt("1", " ", False)]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "verified", "expected"),
    [
        ("any", {"1"}, [(WRONG, "reference"), (RIGHT, RIGHT), ("x", "reference")]),
        ("any", set(), [(WRONG, RIGHT), (RIGHT, RIGHT), ("x", "own")]),
        ("own", {"1"}, [(WRONG, RIGHT), (RIGHT, RIGHT), ("x", "own")]),
        ("reference", {"1"}, [(WRONG, "reference"), (RIGHT, RIGHT), ("x", "reference")]),
        ("reference", set(), [(RIGHT, RIGHT)]),
        ("relabelled", {"1"}, [(WRONG, RIGHT), (RIGHT, RIGHT), ("x", RIGHT)]),
    ],
)
def test_a_right_attempt_is_kept_and_a_wrong_one_gets_a_correction_from_the_source(
    problem, source, verified, expected
):
    pairs = make_pairs([replace(problem, code="reference")], ATTEMPTS, verified, source)
    assert [(p.attempt.code, p.correction) for p in pairs] == expected


def test_the_own_correction_is_the_right_program_that_differs_least(problem):
    near, far = "def double(x):\n    return x + x", "double = lambda value: value << 1"
    for right in ([near, far], [far, near, far]):
        attempts = [Attempt("1", WRONG, False), *(Attempt("1", code, True) for code in right)]
        assert make_pairs([problem], attempts, set(), "own")[0].correction == near


def test_relabelled_pairs_have_the_most_frequent_right_program_after_right_attempts_too(problem):
    attempts = [Attempt("1", code, code != WRONG) for code in (WRONG, "rare", "often", "often")]
    pairs = make_pairs([problem], attempts, set(), "relabelled")
    assert [p.correction for p in pairs] == ["often"] * 4


@settings(max_examples=100, deadline=None, database=None)
@given(
    kinds=st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2)), max_size=30),
    per_problem=st.none() | st.integers(1, 4),
    keep_share=st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    seed=st.integers(0, 3),
)
def test_balanced_pairs_have_the_share_and_at_most_the_number_per_problem(
    kinds, per_problem, keep_share, seed
):
    problems = {i: Problem(str(i), "t", ("assert f()",), "reference") for i in range(5)}
    attempts = [Attempt(str(i), f"{right}{n}", right) for i, right, n in kinds]
    pairs = make_pairs(list(problems.values()), attempts, {str(i) for i in problems}, "any")
    chosen = balance_pairs(pairs, per_problem, keep_share, seed)
    assert chosen == balance_pairs(pairs, per_problem, keep_share, seed)
    assert [p for p in pairs if any(p is c for c in chosen)] == chosen
    counts = [sum(p.problem.task_id == i for p in chosen) for i in map(str, problems)]
    assert per_problem is None or max(counts) <= per_problem
    kept = sum(p.is_kept for p in chosen)
    if keep_share is None and per_problem is None:
        assert chosen == pairs
    elif keep_share is not None and chosen:
        assert abs(kept - keep_share * len(chosen)) < 1.01  # at most one pair off, because counts are whole


def test_different_attempts_are_chosen_before_repeated_ones(problem):
    attempts = [Attempt("1", "same", False)] * 9 + [Attempt("1", "other", False)]
    pairs = make_pairs([replace(problem, code="reference")], attempts, {"1"}, "any")
    assert {p.attempt.code for p in balance_pairs(pairs, 2, None, seed=0)} == {"same", "other"}

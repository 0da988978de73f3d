"""Hidden tests: which ones are hidden, and that they are scored and never shown."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.output_folder import hide_tests
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.trajectories import as_program


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(1, 9), st.integers(0, 12) | st.floats(0, 0.99), st.integers(0, 3))
def test_hiding_moves_tests_loses_none_and_leaves_one_visible(count, amount, seed):
    problem = Problem("1", "t", tuple(f"assert f({i})" for i in range(count)))
    hidden = hide_tests(problem, amount, seed)
    assert sorted(hidden.scored_tests) == sorted(problem.test_list) and hidden.test_list
    expected = int(amount) if amount >= 1 else int(amount * count)
    assert len(hidden.hidden_test_list) == min(expected, count - 1)


def test_a_hidden_test_is_scored_and_never_shown(problem):
    hidden = hide_tests(problem, 2, seed=0)
    shown = named_protocol("cocos").first_turn(hidden)
    assert [test in shown for test in hidden.test_list] == [True]
    assert [test in shown for test in hidden.hidden_test_list] == [False, False]
    assert as_program(hidden, "x").test_list == hidden.test_list + hidden.hidden_test_list

"""Episodes of the real model: which are shown, and what a reader sees of one."""

from dataclasses import replace

from real_episodes import changed_lines, episode_text, page, spread

from cocos.evaluation.sample_rows import trajectory_to_row
from tests.support.report import FAILED, PASSED, trajectory


def told(task_id: str):
    """A wrong program of two lines, repaired in its second line after feedback."""
    wrong = trajectory(task_id, FAILED, PASSED)
    first, second = wrong.turns
    turns = (
        replace(first, code="def f(a):\n    return a + 1"),
        replace(second, code="def f(a):\n    return a + 2", feedback="Expected 3, got 2.\n\nTry again."),
    )
    return trajectory_to_row(replace(wrong, turns=turns))


def test_the_episodes_are_at_equal_distances():
    assert spread(range(10), 4) == [0, 2, 5, 7]
    assert spread(range(3), 10) == [0, 1, 2]


def test_only_lines_that_differ_are_marked():
    assert changed_lines("a\nb\nc", "a\nB\nc") == " a\n-b\n+B\n c"
    assert changed_lines("a\nb", "a\nb") == ""


def test_an_episode_says_what_the_model_was_told_and_what_it_changed():
    text = episode_text(told("7"))
    assert text.splitlines()[0] == "## Problem 7: turn 1 wrong, turn 2 right"
    assert "> Expected 3, got 2.\n>\n> Try again." in text
    assert " def f(a):\n-    return a + 1\n+    return a + 2" in text


def test_the_page_counts_the_trajectories_that_it_chooses_from():
    solved = trajectory_to_row(trajectory("1", PASSED))
    made = page([solved, told("2"), solved, told("3"), told("4")], 2)
    assert "2 of the 3 trajectories" in made and "out of 5" in made
    assert [line for line in made.splitlines() if line.startswith("## ")] == [
        "## Problem 2: turn 1 wrong, turn 2 right",
        "## Problem 3: turn 1 wrong, turn 2 right",
    ]

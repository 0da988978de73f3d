"""Planted bugs: one edit each, of every kind, and only those that break the program become attempts."""

import random
from itertools import takewhile

import pytest

from cocos.boost.attempts import Attempt, planted_attempts
from cocos.boost.planted_bugs import plant_bugs
from cocos.boost.turn_pairs import make_pairs
from cocos.prompts import named_protocol
from cocos.trajectories import Rules

CODE = """\
def total(values, start):
    text = "é"
    for value in values:
        if value > 3 and start:
            start += value
    return [start, text]
"""


def shared(one, other):
    """Return how many characters two texts begin with together."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def common_ends(one, other):
    """Return how many characters two texts share at both ends together."""
    ahead = shared(one, other)
    return ahead + shared(one[ahead:][::-1], other[ahead:][::-1])


@pytest.mark.parametrize(
    "line, planted",
    [
        ("        if value > 3 and start:\n", "        if value >= 3 and start:\n"),
        ("        if value > 3 and start:\n", "        if value > 3 or start:\n"),
        ("        if value > 3 and start:\n", "        if value > 4 and start:\n"),
        ("        if value > 3 and start:\n", "        if value > 3 and text:\n"),
        ("        if value > 3 and start:\n", "        if valu > 3 and start:\n"),
        ("        if value > 3 and start:\n", "        if value > 3 and start\n"),
        ('    text = "é"\n', '    text = "é\n'),
        ("    return [start, text]\n", "    return start, text]\n"),
        ("            start += value\n", ""),
        ("            start += value\n", "      start += value\n"),
    ],
)
def test_every_kind_of_edit_is_planted(line, planted):
    assert CODE.replace(line, planted) in plant_bugs(CODE, 300, random.Random(0))


def test_planted_programs_differ_from_each_other_and_by_one_edit_from_the_right_one():
    planted = plant_bugs(CODE, 300, random.Random(0))
    assert len(set(planted)) == len(planted) > 50 and CODE not in planted
    longest = max(len(line) + 1 for line in CODE.splitlines())  # a statement that is missing
    assert all(len(CODE) - common_ends(CODE, program) <= longest for program in planted)


def test_a_seed_plants_the_same_bugs_and_not_more_than_asked():
    first, again = (plant_bugs(CODE, 2, random.Random(7)) for _ in range(2))
    assert first == again and len(first) == 2
    assert plant_bugs(CODE, 2, random.Random(8)) != first


@pytest.mark.parametrize("code", ["", "def f(:\n", "x = 'a\n", "x = '\0'", "  pass\n pass"])
def test_in_what_is_no_program_nothing_is_planted(code):
    assert plant_bugs(code, 2, random.Random(0)) == []


def test_planted_attempts_are_wrong_are_told_so_and_are_repaired_to_their_program(problem, executor):
    code = "def double(x):\n    unused = 1\n    return x + x"
    right = Attempt("1", code, True, passes_visible=True)
    attempts, told = [right, right, Attempt("1", "wrong", False)], Rules(feedback="error")
    made = planted_attempts([problem], attempts, 40, executor, named_protocol("cocos"), told, 0)
    programs = [attempt.code for attempt in made]
    assert len(programs) == len(set(programs)) > 5
    assert "def double(x):\n    unused = 2\n    return x + x" not in programs  # harmless
    assert "def double(x):\n    unused = 1\n    return x - x" in programs
    for attempt in made:
        assert (attempt.is_right, attempt.corrections) == (False, (code,))
        assert attempt.feedback.startswith("The program above ")
    assert {pair.correction for pair in make_pairs([problem], made, set(), "own")} == {code}

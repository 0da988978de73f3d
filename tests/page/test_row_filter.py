"""Filters of a list of trajectories."""

from cocos.evaluation.sample_rows import trajectory_to_row
from cocos.page.runs_view import label, matches
from tests.support.report import FAILED, PASSED, TYPE_ERROR, trajectory


def test_rows_are_found_by_flow_and_words():
    repaired = trajectory_to_row(trajectory("7", TYPE_ERROR, PASSED, text="Double a number."))
    spoilt = trajectory_to_row(trajectory("8", PASSED, FAILED))
    assert [matches(row, "wrong → right", "") for row in (repaired, spoilt)] == [True, False]
    assert [matches(row, "right → wrong", "") for row in (repaired, spoilt)] == [False, True]
    for words in ("double A", "typeerror", "X = 2", "7"):
        assert matches(repaired, "all", words), words
    assert not matches(spoilt, "all", "typeerror")
    assert (label(repaired), label(spoilt)) == ("✗✓ 7, sample 0", "✓✗ 8, sample 0")

"""Tables of results: rows are read from finished runs, cells are calculated by hand, pages show the committed rows."""

from typing import NamedTuple

import pytest
import results
import yaml
from matplotlib.figure import Figure
from result_rows import Evaluation, load_csv, read_evaluation, save_csv
from results import Row, cell, fill, measure_table, rows_of

from tests.support.paths import ROOT
from tests.support.report import FAILED, INFRA_FAILURE, PASSED, evaluated, numbered

PAGES = yaml.safe_load((ROOT / "docs/tables.yaml").read_text())


def play(folder, *turns: str):
    """Write an evaluation whose turns 1 and 2 are right as the two strings say."""
    verdicts = {"1": PASSED, "0": FAILED, "-": INFRA_FAILURE}
    rows = numbered(*([verdicts[turn] for turn in row] for row in zip(*turns, strict=True)))
    evaluated(folder, rows, isolation="docker")


def evaluation(right: str, folder: str = "a", **fields) -> Evaluation:
    known = {"visible": right, "edits": "", "repeated": float("nan"), "truncated": 0, "tokens": 30.0}
    return Evaluation(folder, "docker", **{"samples": 1, "right": right} | known | fields)


def cells(own: Evaluation, *columns: str, tests: int = 1, **others: Evaluation) -> list[str]:
    """Return the cells of a row without what follows their first blank, which is an interval."""
    return [cell(Row([], [own], others, tests), column).split(" ")[0] for column in columns]


# -- rows --


def test_finished_evaluations_become_rows_and_rows_of_other_folders_stay(tmp_path):
    play(tmp_path / "toy/seed0/boost", "1000", "1000")
    play(tmp_path / "toy/seed0/cocos", "1010", "1111")
    play(tmp_path / "toy/seed0/train-boost", "1111", "1111")  # sampled to select problems: no result
    path, kept = tmp_path / "docs/evaluations.csv", evaluation("01", "old/run")
    save_csv([kept, evaluation("0000 0000", "toy/seed0/boost")], path)
    results.add_evaluations(tmp_path, path)
    old, boost, cocos = load_csv(path, Evaluation)
    assert old[:4] == kept[:4]
    # No second program repeats the first.
    assert boost == Evaluation(
        *("toy/seed0/boost", "docker", 1, "1000 1000", "1000 1000", "xxxx", 0.0, 0, 6.0, 3.0, 0.0333)
    )
    assert cocos[:6] == ("toy/seed0/cocos", "docker", 1, "1010 1111", "1010 1111", "xxxx")


def test_a_problem_without_a_verdict_is_an_error(tmp_path):
    play(tmp_path / "chat", "11-", "11-")
    with pytest.raises(ValueError, match="problems without a verdict; run cocos eval"):
        read_evaluation(tmp_path / "chat", "chat")


def test_rows_are_read_back_with_the_types_of_their_fields(tmp_path):
    class Kind(NamedTuple):
        arm: str
        seed: int
        accuracy: float

    rows = [Kind("turn, dynamic", 0, 0.25), Kind('"last"', 4, 1 / 3)]
    save_csv(rows, tmp_path / "new/rows.csv")
    assert load_csv(tmp_path / "new/rows.csv", Kind) == [rows[0], rows[1]._replace(accuracy=0.3333)]


# -- cells --


def test_accuracies_and_changes_by_hand():
    # acc@1 2/4, acc@2 3/4, c->i 1/4.
    own = evaluation("1010 1101")
    assert cells(own, "acc 1", "acc 2", "lost last", "tokens") == ["50.0", "75.0", "25.0", "30"]
    assert cell(Row([], [own], {}), "acc 1") == "50.0 [15.0, 85.0]"
    assert cell(Row([], [own], {}), "acc 1 %") == "50.0"
    # A turn that was not played leaves its cells empty.
    assert cells(own, "acc 3", "wrong_repeated 3") == ["", ""]
    assert cells(evaluation("10"), "acc last", "lost last") == ["50.0", ""]


def test_programs_after_wrong_ones_are_repeated():
    own = evaluation("1000 1000 1000", edits="--=~ --==")
    assert cells(own, "wrong_repeated 2", "wrong_repeated 3") == ["50.0", "100.0"]


def test_last_turns_are_compared_in_pairs_and_p_values_are_corrected():
    boost, recipe = evaluation("000000 100000"), evaluation("000000 111111")
    # Five gains and no loss: p = 2 / 2^5, doubled for two tests.
    assert cells(recipe, "gain boost", "p boost", boost=boost) == ["83.3", "0.062"]
    assert cells(recipe, "p boost", boost=boost, tests=2) == ["0.12"]
    assert cells(recipe, "p other", boost=boost) == [""]
    assert cells(recipe, "p boost", boost=boost, tests=100) == ["1"]


def test_best_of_three_is_what_visible_tests_choose():
    # Of 4 samples, 2, 4 and 0 pass the visible tests, of which 1, 2 and 0 are right. Any three have one of two:
    # (1 * 1/2 + 1 * 2/4 + 0) / 3 = 1/3. A sample that is right for every problem solves all: + 2/3.
    own, other = evaluation("120", visible="240", samples=4), evaluation("444", samples=4)
    assert cells(own, "best3") == ["33.3"]
    assert cells(other, "best3_gain first", first=own) == ["66.7"]
    assert cells(evaluation("11"), "best3") == [""]


def test_an_unknown_column_names_the_measures():
    with pytest.raises(ValueError, match=r"column 'accuracy 1': unknown; the measures are acc, lost"):
        cells(evaluation("1"), "accuracy 1")


def test_a_row_over_seeds_has_means_with_the_interval_of_students_t():
    # mean 0.8, standard deviation 0.1, Student's t for 2 degrees of freedom 4.303: 4.303 * 0.1 / sqrt(3)
    assert results.mean_and_interval([0.9, 0.8, 0.7]) == "80.0 ± 24.8"
    # Turn 1 solves 2 of 4, turn 2 solves 3 and loses one, for both seeds.
    found = {f"lab/a, b/seed{seed}": evaluation("1100 1011", f"lab/a, b/seed{seed}") for seed in (0, 1)}
    columns = {"acc@1": "acc 1", "acc@2": "acc 2", "c→i": "lost 2"}
    table = measure_table({"labels": ["arm"], "columns": columns, "rows": "lab/{}/*"}, found)
    row = "| a, b | 50.0 ± 0.0 | 75.0 ± 0.0 | 25.0 ± 0.0 |"
    assert table.splitlines() == ["| arm | acc@1 | acc@2 | c→i |", "| --- | --- | --- | --- |", row]


def test_a_row_names_its_evaluations():
    found = {name: evaluation("1", name) for name in ("x/boost", "x/cocos", "y/cocos")}
    entry = {"labels": ["CoCoS", 0], "of": "x/cocos", "boost": "x/boost", "tests": 3}
    [row] = rows_of({"rows": [entry]}, found)
    assert row == Row(["CoCoS", "0"], [found["x/cocos"]], {"boost": found["x/boost"]}, 3)
    assert [row.labels for row in rows_of({"rows": "x/{}"}, found)] == [["boost"], ["cocos"]]
    with pytest.raises(ValueError, match="no evaluation z/cocos; add its row"):
        list(rows_of({"rows": [entry | {"of": "z/cocos"}]}, found))


# -- the picture --


def test_a_curve_has_the_tokens_and_the_accuracy_after_each_program():
    # Turn 2 is played by 2 of 4 problems, turn 3 by 1: 3 programs for (25 - 10) tokens a problem.
    own = evaluation("1100 1110 1110", edits="--xx ---x", tokens=25.0, first_tokens=10.0)
    assert results.token_points(own) == ([10.0, 20.0, 25.0], [0.5, 0.75, 0.75])


def test_the_picture_shows_evaluations_that_are_committed():
    rows = load_csv(ROOT / "docs/results/real/evaluations.csv", Evaluation)
    figure = Figure()
    results.draw_tokens(figure, {row.folder: row for row in rows})
    ends = [text.get_text() for text in figure.axes[0].texts]
    assert "untrained, asked again: 38.9" in ends and len(ends) == 6


# -- pages --


def test_a_table_replaces_what_is_between_its_marker_lines():
    page = "a\n<!-- speed -->\nold\n<!-- end -->\nb"
    assert fill(page, {"speed": "new"}) == "a\n<!-- speed -->\nnew\n<!-- end -->\nb"


@pytest.mark.parametrize(
    "page", ["no place", "<!-- speed -->\nwithout an end", "<!-- speed --> <!-- end -->"]
)
def test_a_page_without_marker_lines_is_an_error(page):
    with pytest.raises(ValueError, match="needs the lines '<!-- speed -->' and '<!-- end -->'"):
        fill(page, {"speed": "table"})


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_show_the_committed_rows_and_have_no_other_marked_tables(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    made = results.tables(PAGES[page])
    assert fill(text, made) == text
    assert text.count("<!-- end -->") == len(made)

"""The table over the problems of several sets in a joint report."""

from dataclasses import replace

import pytest

from cocos.metrics import correction_metrics
from cocos.report.comparisons import are_sets_of_one_model, compare_runs, pool
from cocos.report.contents import Report
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import markdown_report
from cocos.report.tables import pooled_tables
from tests.support.report import FAILED, PASSED, evaluated, trajectory

# Set a has one problem, which turn 2 repairs; set b has three, of which turn 2 spoils one.
A = [trajectory("1", FAILED, PASSED, PASSED)]
B = [
    trajectory("1", PASSED, FAILED, FAILED),
    trajectory("2", PASSED, PASSED, PASSED),
    trajectory("3", FAILED, FAILED, PASSED),
]


@pytest.fixture
def runs(tmp_path):
    return load_runs(
        [
            evaluated(tmp_path / "a", A, options={"test_data": "a.jsonl"}),
            evaluated(tmp_path / "b", B, options={"test_data": "b.jsonl"}),
        ]
    )


def test_every_problem_counts_equally_whatever_its_set(runs):
    pooled = pool(runs)
    assert [pooled.estimate(f"acc_t{turn}").value for turn in (1, 2, 3)] == [2 / 4, 2 / 4, 3 / 4]
    values = {name: pooled.estimate(f"{name}_t1_t2").value for name in ("delta", "i2c", "c2i")}
    assert values == {"delta": 0, "i2c": 1 / 4, "c2i": 1 / 4}
    # The problems "1" of both sets are two problems; as one set with other ids they have the same estimates.
    renamed = [trajectory("a1", FAILED, PASSED, PASSED), *B]
    expected = correction_metrics(renamed)
    assert {name: pooled.estimate(name) for name in pooled.metrics["metrics"]} == {
        name: expected[name] for name in pooled.metrics["metrics"]
    }


def test_sets_are_not_paired_and_their_report_begins_with_all_their_problems(runs, tmp_path):
    others = [replace(one, problem=replace(one.problem, task_id=f"b{n}")) for n, one in enumerate(B)]
    runs = [runs[0], *load_runs([evaluated(tmp_path / "c", others, options={"test_data": "b.jsonl"})])]
    assert compare_runs(runs) == []
    text = markdown_report(Report(runs))
    assert text.startswith(
        "In 2 runs, base answers 1 to 3 problems of each of 2 sets, each in 3 turns (self-correction without test "
        "results, cocos prompts). Over all sets, 50.0 % of the programs are right at turn 1 and 75.0 % at turn "
        "3: +25.0 points (no interval), may be chance."
    )
    assert "Not paired by problem, because the problems are those of other sets: a, c." in text


def test_only_one_models_evaluations_on_different_sets_are_pooled(runs, tmp_path):
    assert [table.heading for table in pooled_tables(runs)] == [
        "Self-correction over all 2 sets, % [95 % interval]"
    ]
    assert pooled_tables(runs[:1]) == []
    other = {"model_name_or_path": "other", "test_data": "b.jsonl"}
    same_set = evaluated(tmp_path / "c", A, options={"test_data": "a.jsonl"})
    other_model = evaluated(tmp_path / "d", B, options=other)
    for folder in (same_set, other_model):
        assert not are_sets_of_one_model([runs[0], *load_runs([folder])])

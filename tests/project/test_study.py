"""The study: its arms are made of options that exist; page, tables and figures follow from its numbers."""

import json
import re

import numpy as np
import pytest
import study
import study_figures
import study_tables
from result_files import fill, load_csv
from study_tables import STUDY, Outcome, Point, read_curve, read_outcomes

from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.trl_configs import CoCoSConfig
from tests.support.paths import ROOT

LABS = study.load_study(ROOT / "configs/toy/study.yaml")
RUNS = list(study.all_runs(LABS, ROOT / "outputs"))
FIRST_SEED = [run for run in RUNS if run.seed == 0]


def outcome(right: str, turn: int, seed: int = 0, arm: str = "a", lab: str = "first") -> Outcome:
    return Outcome(lab, arm, seed, "none", turn, right)


def words(options: dict) -> list[str]:
    return [
        word
        for name, value in options.items()
        for word in (f"--{name}", *map(str, value if isinstance(value, list) else [value]))
    ]


# -- the arms --


@pytest.mark.parametrize("run", FIRST_SEED, ids=lambda run: f"{run.lab}: {run.name}")
def test_every_arm_is_made_of_options_that_exist_and_take_effect(run):
    for stage in run.arm.stages:
        options = run.laboratory.train | stage
        model = {"model_name_or_path": "m", "output_dir": "x"}
        args = parse_options(CoCoSConfig, "", words(options | model))
        for name, value in stage.items():
            if name != "beta":  # --turn_betas replaces it
                assert getattr(args, name) == value, name
    for feedback in run.laboratory.feedback:
        options = run.laboratory.test | {"feedback": feedback, "model_name_or_path": "m", "output_dir": "x"}
        assert parse_options(EvalConfig, "", words(options)).feedback == feedback


def test_every_run_has_a_folder_of_its_own():
    assert len({run.folder for run in RUNS}) == len(RUNS)


def test_arms_sample_equally_many_completions_per_update_and_train_equally_often():
    for run in FIRST_SEED:
        base = run.laboratory.train | {}
        config = parse_options(CoCoSConfig, "", words(base | {"model_name_or_path": "m", "output_dir": "x"}))
        for stage in run.arm.stages:
            batch = stage.get("global_batch_size", config.global_batch_size)
            completions = batch * stage.get("num_turns", config.num_turns)
            assert completions == pytest.approx(config.global_batch_size * config.num_turns, rel=0.02), (
                run.name
            )
        updates = [stage.get("max_steps", config.max_steps) for stage in run.arm.stages]
        assert sum(updates) in (0, config.max_steps), run.name


# -- reading --


def test_outcomes_and_curves_are_read_from_finished_runs(tmp_path):
    rows = [{"turns": [{"is_right": False}, {"is_right": True}]}, {"turns": [{"is_right": True}] * 2}]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert [o.right for o in read_outcomes("first", "a", 0, "none", tmp_path)] == ["01", "11"]
    for stage, tokens in ((1, 500), (2, 300)):
        state = {
            "global_step": 10,
            "log_history": [
                {"step": 5, "sampled_tokens_total": tokens - 100},
                {"step": 10, "sampled_tokens_total": tokens},
                {"step": 10, "eval_acc_t1": 0.4, "eval_acc_t2": 0.8},
            ],
        }
        folder = tmp_path / f"stage{stage}" / "checkpoint-10"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(json.dumps(state))
    assert read_curve("first", "a", 0, tmp_path) == [
        Point("first", "a", 0, update=10, tokens=500, acc_1=0.4, acc_last=0.8),
        Point("first", "a", 0, update=20, tokens=800, acc_1=0.4, acc_last=0.8),
    ]


# -- tables --


def test_the_interval_over_three_seeds_by_hand():
    # mean 0.8, standard deviation 0.1, Student's t for 2 degrees of freedom 4.303: 4.303 * 0.1 / sqrt(3)
    middle, half = study_tables.spread([0.9, 0.8, 0.7])
    assert (middle, half) == (pytest.approx(0.8), pytest.approx(0.24843, abs=1e-5))


def test_a_row_of_results_by_hand():
    # Seed 0: turn 1 solves 2 of 4, turn 2 solves 3: two gained, one lost. Seed 1 is the same.
    rows = [outcome(right, turn, seed) for seed in (0, 1) for turn, right in ((1, "1100"), (2, "1011"))]
    cells = study_tables.result_row(rows, turns=(1, 2))
    assert cells == ["50.0 ± 0.0", "75.0 ± 0.0", "25.0 ± 0.0", "50.0 ± 0.0", "25.0 ± 0.0"]


def test_the_cost_of_the_goal_is_that_of_the_first_evaluation_which_reaches_it():
    points = [
        Point("first", "a", seed, update, 1000 * update, 0.1, acc)
        for seed, accuracies in ((0, (0.8, 0.9, 0.7)), (1, (0.5, 0.6, 0.95)), (2, (0.1, 0.2, 0.89)))
        for update, acc in zip((2, 4, 6), accuracies, strict=True)
    ]
    table = study_tables.speed_table(points)
    # Seeds 0 and 1 need 4 and 6 updates: 5 -+ 12.706 * sqrt(2) / sqrt(2).
    assert "| a | 2 of 3 | 5.0 ± 12.7 | 5.0 ± 12.7 |" in table


def test_seeds_and_questions_are_resampled():
    rng = np.random.default_rng(0)
    questions = [f"question {i // 2}" for i in range(200)]
    low, high = study_tables.interval(study_tables.resampled_means(rng.choice([0, 1], (5, 200)), questions))
    assert 0.35 < low < 0.5 < high < 0.65
    # Two of five seeds solve everything: the mean is 0.4, and its deviation sqrt(0.4 * 0.6 / 5) = 0.22.
    means = study_tables.resampled_means(np.repeat([[1], [1], [0], [0], [0]], 200, axis=1), questions)
    assert means.mean() == pytest.approx(0.4, abs=0.02) and means.std() == pytest.approx(0.22, abs=0.02)


def test_readings_of_a_question_are_resampled_together():
    # One reading of each of 50 questions is solved: every sample of questions has the mean 0.5.
    right = np.tile([1, 0], (3, 50))
    together = study_tables.resampled_means(right, [str(i // 2) for i in range(100)])
    assert study_tables.interval(together) == (0.5, 0.5)
    low, high = study_tables.interval(study_tables.resampled_means(right, [str(i) for i in range(100)]))
    assert low < 0.4 and high > 0.6


def test_a_ranking_names_the_arms_that_are_told_apart():
    good, equal, bad = "1" * 90 + "0" * 10, "0" * 5 + "1" * 90 + "0" * 5, "0" * 100
    rows = [
        outcome(right, 2, seed, arm)
        for arm, right in (("bad", bad), ("good", good), ("equal", equal))
        for seed in range(3)
    ]
    table = study_tables.ranking_table(rows, "first", "none", 2, [str(i) for i in range(100)])
    assert "| 1 | good | 90.0 | 3 | 2 |  |" in table
    assert "| 3 | bad | 0.0 |  |  | 1-2 |" in table


# -- the committed numbers --


@pytest.fixture(scope="module")
def outcomes():
    return load_csv(STUDY / "outcomes.csv", Outcome)


@pytest.fixture(scope="module")
def points():
    return load_csv(STUDY / "curves.csv", Point)


def test_every_arm_has_every_seed(outcomes, points):
    expected = {
        (run.lab, run.name, run.seed, feedback) for run in RUNS for feedback in run.laboratory.feedback
    }
    assert {(o.lab, o.arm, o.seed, o.feedback) for o in outcomes} == expected
    trained = {(run.lab, run.name, run.seed) for run in RUNS if run.arm.stages}
    assert {(p.lab, p.arm, p.seed) for p in points} == trained


def test_the_page_shows_the_tables_of_the_committed_numbers(outcomes, points):
    page = study_tables.PAGE.read_text()
    assert fill(page, study_tables.tables(outcomes, points)) == page
    for target in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (study_tables.PAGE.parent / target).exists(), target


@pytest.mark.processes
def test_the_figures_are_drawn_from_the_numbers_alone(outcomes, points, tmp_path):
    for drawn in range(2):
        study_figures.plot_bars(outcomes, tmp_path / f"bars{drawn}")
        study_figures.plot_curves(points, tmp_path / f"curves{drawn}")
        study_figures.plot_turns(outcomes, tmp_path / f"turns{drawn}")
    # A study of its first laboratory alone has figures too.
    study_figures.plot_turns([outcome for outcome in outcomes if outcome.lab == "first"], tmp_path / "none")
    for name in ("bars", "curves", "turns"):
        assert (tmp_path / f"{name}0.png").read_bytes()[:4] == b"\x89PNG"
        first, second = ((tmp_path / f"{name}{drawn}.svg").read_text() for drawn in range(2))
        assert first == second

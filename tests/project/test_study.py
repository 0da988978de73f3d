"""The study: its arms are made of options that exist; page, tables and figures follow from its numbers."""

import pytest
import study
from result_rows import Evaluation, load_csv

from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.trl_configs import CoCoSConfig
from tests.support.paths import ROOT

LABS = study.load_study(ROOT / "configs/toy/study.yaml")
RUNS = list(study.all_runs(LABS, ROOT / "outputs"))
FIRST_SEED = [run for run in RUNS if run.seed == 0]


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


# -- the committed numbers --


@pytest.fixture(scope="module")
def evaluations():
    return load_csv(study.STUDY / "evaluations.csv", Evaluation)


def test_every_arm_has_every_seed(evaluations):
    expected = {
        f"{run.lab}/{run.name}/seed{run.seed}/{feedback}"
        for run in RUNS
        for feedback in run.laboratory.feedback
    }
    assert {evaluation.folder for evaluation in evaluations} == expected


@pytest.mark.processes
def test_the_figure_is_drawn_from_the_numbers_alone(evaluations, tmp_path):
    """Of one laboratory alone, too: two drawings are equal, and another one with both laboratories."""
    of_first = [e for e in evaluations if e.folder.startswith("first/")]
    drawings = []
    for rows in (of_first, of_first, evaluations):
        study.plot_turns(rows, tmp_path / "turns.png")
        drawings.append((tmp_path / "turns.png").read_bytes())
    first, again, both = drawings
    assert first[:4] == both[:4] == b"\x89PNG" and first == again != both

"""The study: its page, tables and figures follow from the committed numbers."""

import math
import re

import pytest
import study_figures as study
import yaml

from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.trl_configs import CoCoSConfig
from tests.support.paths import ROOT

RESULTS = study.load_csv(study.STUDY / "results.csv", study.Result)
CURVES = study.load_csv(study.STUDY / "curves.csv", study.Point)
ARMS = yaml.safe_load((ROOT / "configs/toy/study.yaml").read_text())


def test_the_interval_over_three_seeds_by_hand():
    # mean 0.8, standard deviation 0.1, Student's t for 2 degrees of freedom 4.303: 4.303 * 0.1 / sqrt(3)
    middle, half = study.spread([0.9, 0.8, 0.7])
    assert (middle, half) == (pytest.approx(0.8), pytest.approx(0.24843, abs=1e-5))


def test_every_arm_has_every_seed_and_its_numbers_fit_together():
    assert [(r.arm, r.seed) for r in RESULTS] == [(a, s) for a in ARMS["arms"] for s in ARMS["seeds"]]
    for r in RESULTS:
        if not math.isnan(r.acc_2):
            assert r.delta == pytest.approx(r.acc_2 - r.acc_1, abs=2e-4)
            assert r.delta == pytest.approx(r.i2c - r.c2i, abs=2e-4)
        else:
            assert r.acc_1 <= r.best_of_2 <= 1


def test_every_trained_arm_has_a_curve_of_thirty_updates():
    trained = {name for name, arm in ARMS["arms"].items() if "stages" in arm}
    assert {p.arm for p in CURVES} == trained
    for arm in trained:
        assert max(p.update for p in CURVES if p.arm == arm) == 30


@pytest.mark.parametrize("name", ARMS["arms"])
def test_every_arm_is_made_of_options_that_exist(name):
    arm = ARMS["arms"][name]
    for stage in arm.get("stages", []):
        words = [
            "--config",
            str(ROOT / "configs/toy/cocos.yaml"),
            "--output_dir",
            "x",
            "--model_name_or_path",
            "m",
        ]
        for option, value in stage.items():
            words += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
        args = parse_options(CoCoSConfig, "", words)
        assert {option: getattr(args, option) for option in stage if option != "beta"} == {
            option: value for option, value in stage.items() if option != "beta"
        }
    assert set(arm) <= {"stages", "model", "test"} and arm.get("model", "Boost only") in ARMS["arms"]
    assert set(arm.get("test", {})) <= set(EvalConfig.__dataclass_fields__)


def test_the_page_shows_the_table_of_the_committed_numbers():
    page = study.PAGE.read_text()
    assert study.table(RESULTS) in page and study.table_of_speed(CURVES) in page
    for target in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (study.PAGE.parent / target).exists(), target


@pytest.mark.processes
def test_the_figures_are_drawn_from_the_numbers_alone(tmp_path):
    for drawn in range(2):
        study.plot_bars(RESULTS, tmp_path / f"bars{drawn}")
        study.plot_curves(CURVES, tmp_path / f"curves{drawn}")
    for name in ("bars", "curves"):
        assert (tmp_path / f"{name}0.png").read_bytes()[:4] == b"\x89PNG"
        first, second = ((tmp_path / f"{name}{drawn}.svg").read_text() for drawn in range(2))
        assert first == second
        for arm in {r.arm for r in (RESULTS if name == "bars" else CURVES)}:
            assert f"<!-- {arm} -->" in first


def test_a_page_without_marker_lines_is_not_changed(tmp_path):
    page = tmp_path / "study.md"
    page.write_text("no place")
    with pytest.raises(ValueError, match="between which the table goes"):
        study.write_page(RESULTS, CURVES, page)
    assert page.read_text() == "no place"

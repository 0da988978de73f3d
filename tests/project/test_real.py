"""scripts/real.py: its steps are commands with options that exist, and those that are done are left out."""

from pathlib import Path

import pytest
import real
from fetch_model import SOURCES

from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from tests.support.paths import ROOT

READERS = {
    "test.py": EvalConfig,
    "train.py": CoCoSConfig,
    "boost/boost_train.py": BoostConfig,
    "scripts/make_boost_data.py": BoostDataConfig,
}


@pytest.mark.parametrize("is_small", [False, True])
@pytest.mark.parametrize("model", real.ARMS)
def test_every_step_has_options_that_its_command_accepts(model, is_small, monkeypatch):
    monkeypatch.chdir(ROOT)
    steps = list(real.steps(model, Path("outputs/real"), [Path("data/more/train.jsonl")], is_small))
    assert len({step.name for step in steps}) == len({step.made for step in steps}) == len(steps)
    for step in steps:
        script, *words = step.words.split()
        if script in READERS:
            options = parse_options(READERS[script], "", words)
            assert options.train_data if script != "test.py" else options.visible_tests == 2
        elif script == "scripts/fetch_model.py":
            [name] = words
            assert step.made == Path("models", SOURCES[name].hub_id.split("/")[1], "config.json")
    names = [step.name for step in steps]
    assert names[-1] == "report" and ("profile/boost-more-train" in names) == (model == "0.5b")


def test_a_step_makes_its_file_and_ends_the_run_if_it_fails(tmp_path):
    made = tmp_path / "made"
    real.Step("a step", made, f"-c open('{made}','w')").play()
    assert made.exists()
    with pytest.raises(SystemExit) as end:
        real.Step("a step", made, "-c raise(SystemExit(3))").play()
    assert end.value.code == 3


@pytest.mark.parametrize("model", real.ARMS)
def test_recorded_minutes_are_of_steps_that_exist(model):
    names = {step.name for step in real.steps(model, Path("out"), [], is_small=False)}
    assert set(real.recorded_minutes(model)) <= names

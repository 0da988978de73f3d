"""Imports that the contracts in pyproject.toml cannot check, and the parts of TRL that we rely on."""

import ast
import inspect
import subprocess
import sys
import tomllib
from dataclasses import fields

import pytest
from transformers import Trainer
from trl import RLOOConfig, RLOOTrainer

from cocos.config.trl_configs import UNTRUNCATED, WITHOUT_EFFECT
from cocos.training.resumable_trainer import ResumableTrainer
from cocos.training.trainer import CoCoSTrainer
from tests.support.paths import ROOT

OVERRIDES = {
    "__init__",
    "_prepare_inputs",
    "_generate_and_score_completions",
    "_compute_loss",
    "_get_per_token_logps_and_entropies",
    "_get_train_sampler",
    "evaluate",
    "log",
    "_tag_names",
    "_name",
}
RESUMABLE = {
    "log",
    "push_to_hub",
    "save_model",
    "create_model_card",
    "_save_checkpoint",
    "_save_rng_state",
    "_run_epoch",
    "_finalize_training",
    "_determine_best_metric",
    "_issue_warnings_after_load",
    "create_scheduler",
    "_get_learning_rate",
    "_load_optimizer_and_scheduler",
    "_init_training_state",
}


def test_the_method_imports_nothing_outside_the_standard_library():
    """A fresh interpreter also finds dynamic imports, which lint-imports does not see."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [modules] = [
        c["source_modules"] for c in contracts if c["name"].startswith("the method needs the standard")
    ]
    script = (
        f"import sys; before = set(sys.modules); import {', '.join(modules)}\n"
        "names = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(names - set(sys.stdlib_module_names)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["cocos"]  # so neither torch, transformers, trl, datasets nor numpy


SCRIPTS = {
    "train.py": "train",
    "test.py": "eval",
    "boost/boost_train.py": "boost",
    "scripts/make_boost_data.py": "boost-data",
    "scripts/prepare_data.py": "prepare",
}


@pytest.mark.parametrize(("script", "name"), SCRIPTS.items())
def test_a_script_only_runs_a_command(script, name):
    _, first, guard = ast.parse((ROOT / script).read_text()).body
    assert ast.unparse(first) == "from cocos.cli import run"
    assert ast.unparse(guard.body) == f"run({name!r})"


@pytest.mark.parametrize(
    "script", ["cli.py", *(f"commands/{name}.py" for name in ("train", "evaluate", "boost", "demo"))]
)
def test_a_command_imports_only_its_runner_at_its_top(script):
    """Whatever is imported later is imported under the runner, which turns Ctrl-C into one line."""
    imports = [
        node
        for node in ast.parse((ROOT / "cocos" / script).read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    ours = {module for module in modules if module.partition(".")[0] not in sys.stdlib_module_names}
    assert ours <= {"cocos", "cocos.commands", "cocos.commands.runner"}


def test_our_trainer_overrides_exactly_the_listed_names_of_trl():
    ours = {
        name for name, value in vars(CoCoSTrainer).items() if callable(value) or not name.startswith("__")
    }
    theirs = {name for cls in RLOOTrainer.__mro__[:-1] for name in vars(cls)}
    assert ours & theirs == OVERRIDES
    assert CoCoSTrainer.__bases__ == (ResumableTrainer, RLOOTrainer)


def test_the_resumable_trainer_overrides_methods_that_transformers_has():
    assert {name for name in vars(ResumableTrainer) if not name.startswith("__")} - {
        "card",
        "last_batch",
        "clock",
        "remarks",
        "collapsed",
        "stop_on_signal",
        "has_other_evaluation",
        "_complete",
    } == RESUMABLE
    assert set(vars(Trainer)) >= RESUMABLE
    for name in RESUMABLE - {"_run_epoch", "create_model_card", "_init_training_state"}:
        ours, theirs = (
            list(inspect.signature(getattr(c, name)).parameters) for c in (ResumableTrainer, Trainer)
        )
        assert ours == theirs


@pytest.mark.parametrize("name", sorted(OVERRIDES - {"__init__", "_tag_names", "_name"}))
def test_our_overrides_have_the_parameters_of_trls_methods(name):
    ours, theirs = (
        list(inspect.signature(vars(c)[name]).parameters) for c in (CoCoSTrainer, trls_owner(name))
    )
    if "multimodal" in ours:  # the rest, by keyword
        ours = ours[:-1]
        theirs = theirs[: len(ours)]
    assert ours == theirs


def trls_owner(name):
    """Return the class of TRL or transformers that defines a method."""
    return next(cls for cls in RLOOTrainer.__mro__ if name in vars(cls))


def test_every_rejected_option_is_one_of_trls_and_has_the_neutral_default():
    defaults = {option.name: option.default for option in fields(RLOOConfig)}
    for name, neutral in (UNTRUNCATED | WITHOUT_EFFECT).items():
        assert defaults[name] == neutral, name

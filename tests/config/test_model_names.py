"""Short names of models: where they are looked up, and what they stand for."""

import pytest
import yaml

from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.model_names import MODELS, full_name, short_names, similar_names
from tests.support.paths import ROOT

RUN = ("--test_data", "t", "--output_dir", "o")


@pytest.fixture
def models(tmp_path, monkeypatch):
    """The path of the file of names in a new current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    return tmp_path / MODELS


def test_the_names_of_the_project_are_found_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert full_name("toy") == str(ROOT / "data/toy/base")
    assert full_name("qwen2.5-coder-0.5b") == "Qwen/Qwen2.5-Coder-0.5B-Instruct"
    (tmp_path / "models/Qwen2.5-Coder-0.5B-Instruct").mkdir(parents=True)
    assert full_name("qwen2.5-coder-0.5b") == "models/Qwen2.5-Coder-0.5B-Instruct"


def test_a_file_of_the_current_folder_has_the_names_of_the_user(models):
    models.write_text("mine: runs/cocos\n1: [a/one, b/two]\n")
    assert full_name("mine") == "runs/cocos" and full_name("1") == "b/two"
    assert full_name("toy") == "toy"  # the user's file takes the place of the project's
    (models.parent.parent / "mine").mkdir()
    assert full_name("mine") == "mine"  # a folder that exists
    assert full_name("org/mine") == "org/mine"


def test_options_have_full_names_but_for_those_of_an_endpoint(models):
    models.write_text("mine: runs/cocos\n")
    words = ["--model_name_or_path", "mine", *RUN]
    assert parse_options(EvalConfig, "", words).model_name_or_path == "runs/cocos"
    at_endpoint = [*words, "--generator", "api", "--protocol", "chat"]
    assert parse_options(EvalConfig, "", at_endpoint).model_name_or_path == "mine"


def test_a_misspelt_name_is_told_the_near_ones():
    assert similar_names("qwen2.5-coder-05b").split(" or ")[0] == "qwen2.5-coder-0.5b"
    assert similar_names("org/qwen2.5-coder-05b") == similar_names("gpt2") == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a\n", "no names; give lines such as"),
        ("a: [\n", "not readable as YAML"),
        ("org/a: b\n", "org/a: give a name without `/`"),
        ("a: 3\n", "a: give a name without"),
    ],
)
def test_a_file_that_is_no_list_of_names_is_refused(models, text, complaint):
    models.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        full_name("a")


def test_every_name_of_the_project_stands_for_a_folder_of_the_repository_or_a_model_of_the_hub():
    for places in short_names().values():
        assert all(place.count("/") == 1 or (ROOT / place / "config.json").exists() for place in places), (
            places
        )
    recipes = [yaml.safe_load(path.read_text()) for path in (ROOT / "configs").glob("*.yaml")]
    of_hub = {r["model_name_or_path"] for r in recipes if "model_name_or_path" in r}
    of_hub = {name for name in of_hub if not name.startswith(("outputs/", "models/", "data/"))}
    names = short_names()
    assert of_hub <= {*names, *(place for places in names.values() for place in places)}

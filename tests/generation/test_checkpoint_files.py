"""Checkpoint folders and hub ids that cannot be loaded: each fault is one line with its remedy."""

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub.errors import HTTPError

from cocos.generation.checkpoint_files import adapter_base, check_checkpoint
from tests.support.paths import TOY

BASE = TOY / "base"


@pytest.fixture
def folder(tmp_path):
    """Return a copy of the laboratory's base model."""
    return shutil.copytree(BASE, tmp_path / "model")


def fault(name, **options):
    """Return the message with which a checkpoint is refused."""
    with pytest.raises(ValueError) as refused:
        check_checkpoint(str(name), **options)
    return str(refused.value)


def shard(folder, missing=False):
    """Turn a folder's weights into one shard and its index; the index may name a second, missing one."""
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors"} | (
        {"b": "model-00002-of-00002.safetensors"} if missing else {}
    )
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def test_a_complete_folder_is_accepted_whole_or_in_shards(folder):
    check_checkpoint(str(folder))
    shard(folder)
    check_checkpoint(str(folder))


def test_a_cut_off_file_of_weights_is_named(folder):
    weights = folder / "model.safetensors"
    size = weights.stat().st_size
    with open(weights, "r+b") as file:
        file.truncate(1000)
    assert fault(folder).startswith(f"{weights}: the file is damaged (")
    assert fault(folder).endswith("); download or copy it again")
    shutil.copy(BASE / "model.safetensors", weights)
    with open(weights, "r+b") as file:
        file.truncate(size - 1)
    assert f"{weights}: the file is damaged (" in fault(folder)


@pytest.mark.parametrize("start", [b"garbage!", b"\xff" * 8, b"\x04" + b"\0" * 7 + b"[[]]", b""])
def test_a_file_that_is_no_safetensors_is_damaged(folder, start):
    (folder / "model.safetensors").write_bytes(start)
    assert "model.safetensors: the file is damaged (" in fault(folder)


def test_a_pointer_of_git_lfs_is_recognised(folder):
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    assert "a pointer of Git LFS, not the weights; run `git lfs pull`" in fault(folder)


def test_a_missing_shard_is_named(folder):
    shard(folder, missing=True)
    assert "names model-00002-of-00002.safetensors, which is missing; download" in fault(folder)


def test_each_missing_file_of_a_folder_is_named(folder):
    (folder / "model.safetensors").unlink()
    assert "the folder has no weights (model.safetensors)" in fault(folder)
    shutil.copy(BASE / "model.safetensors", folder)
    for path in folder.glob("token*"):
        path.unlink()
    assert "the folder has no tokenizer (tokenizer.json); copy" in fault(folder)
    (folder / "config.json").write_text("{")
    assert "config.json: not valid JSON" in fault(folder)
    (folder / "config.json").unlink()
    assert fault(folder) == f"{folder}: the folder has no config.json; give the folder of a saved model"


def test_a_training_folder_names_its_newest_checkpoint(folder):
    run = folder.parent
    assert fault(run) == f"{run}: the folder has no config.json; did you mean {folder}?"


def test_a_gguf_file_says_how_to_use_it(tmp_path):
    path = tmp_path / "model.gguf"
    path.touch()
    for name in (path, tmp_path):
        assert "convert it with `python scripts/import_gguf.py FILE.gguf FOLDER`, or serve it" in fault(name)


def test_a_mistyped_folder_is_missing_at_once_and_the_similar_one_is_named(folder, tmp_path, monkeypatch):
    assert fault(tmp_path / "modle").endswith(f"modle: no such folder; did you mean {folder}?")
    assert "no such folder; give a checkpoint folder or a hub id like org/name" in fault("./nowhere")
    monkeypatch.chdir(tmp_path.parent)
    room = tmp_path.name  # with one slash, the name could be a hub id, but this folder exists here
    assert (
        fault(f"{room}/modle")
        == f"model {room}/modle: no such folder in {room}; did you mean {folder.relative_to(tmp_path.parent)}?"
    )
    assert f"for the hub's model: hf download {room}/other --local-dir" in fault(f"{room}/other")


@pytest.mark.parametrize("is_offline", [True, False])
def test_a_model_that_the_hub_does_not_give_is_named_where_it_is(folder, tmp_path, monkeypatch, is_offline):
    def refuse(*args, **options):
        raise HTTPError("Connection refused")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cocos.generation.checkpoint_files.is_offline_mode", lambda: is_offline)
    monkeypatch.setattr("cocos.generation.checkpoint_files.get_hf_file_metadata", refuse)
    assert "check the " in fault("org/Tiny-1B")
    (tmp_path / "models").mkdir()
    folder.rename(tmp_path / "models/Tiny-1B")
    assert fault("org/Tiny-1B").endswith(
        "; for the copy in this folder give --model_name_or_path models/Tiny-1B"
    )


def test_an_adapter_is_checked_together_with_its_base_model(folder, tmp_path):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    for path in folder.glob("token*"):
        shutil.copy(path, adapter)
    config = adapter / "adapter_config.json"
    config.write_text("{}")
    assert "no base_model_name_or_path; add the base model" in fault(adapter)
    config.write_text(json.dumps({"base_model_name_or_path": str(folder)}))
    assert "the folder has no weights (adapter_model.safetensors)" in fault(adapter)
    shutil.copy(BASE / "model.safetensors", adapter / "adapter_model.safetensors")
    check_checkpoint(str(adapter))
    relative = f"{folder.parent.name}/{folder.name}"  # of a folder above the adapter: where the run started
    config.write_text(json.dumps({"base_model_name_or_path": relative}))
    assert Path(adapter_base(adapter)).samefile(folder)
    check_checkpoint(str(adapter))
    config.write_text(json.dumps({"base_model_name_or_path": "elsewhere/base"}))
    assert f"set base_model_name_or_path in {config} to its path" in fault(adapter)
    config.write_text(json.dumps({"base_model_name_or_path": str(folder)}))
    (folder / "model.safetensors").unlink()
    assert "an adapter of the base model" in fault(adapter)


def test_an_architecture_that_transformers_does_not_know_is_named(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "nosuch"}))
    words = "model_type 'nosuch' is unknown to transformers "
    assert fault(folder).startswith(f"{folder}/config.json: {words}")
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": {}}))
    check_checkpoint(str(folder))

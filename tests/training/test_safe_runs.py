"""A folder belongs to one run, and a continued run is the run that it continues, unless its user says otherwise."""

import json
import logging
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers.trainer_utils import compare_trainer_and_checkpoint_args

from cocos.config.command_line import parse_options
from cocos.config.trl_configs import CoCoSConfig
from cocos.files.durable import FolderLock, save_json
from cocos.files.run_record import run_record
from cocos.training.changes import accepted_changes, changes_since
from cocos.training.preflight import LOG_MESSAGES, silence_library_messages
from tests.support.commands import command, complaint, succeed
from tests.support.paths import TOY
from tests.support.training import long_run, short_run

pytestmark = pytest.mark.processes


@pytest.fixture
def copied(finished, tmp_path):
    """The folder of a copy of the finished run."""
    return shutil.copytree(finished.out, tmp_path / "copied")


def test_a_second_run_into_the_same_folder_is_refused_while_the_first_one_writes(data, tmp_path):
    lock = FolderLock(tmp_path)  # as the first run holds it, from its start to its end
    lock.lock_exclusive()
    assert "another run is writing there" in complaint(
        sys.executable, "train.py", *short_run(data, tmp_path, "--max_steps", 2)
    )
    assert not (tmp_path / "run.json").exists()
    lock.close()


def test_a_finished_run_leaves_no_lock_and_is_continued_without_a_word(data, copied):
    assert not (copied / ".lock").exists()
    words = (*long_run(data, copied), "--resume_from_checkpoint", "last")
    done = succeed(sys.executable, "train.py", *words)
    assert "do not match" not in done.stderr + done.stdout
    assert json.loads((copied / "run.json").read_text())["changes"] == []


@pytest.mark.nightly
def test_a_continued_run_is_the_same_run_in_wandb(data, tmp_path):
    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path)}

    def wandb_run_id(name, *more):
        words = short_run(data, tmp_path / name, "--report_to", "wandb", "--save_steps", 1, *more)
        done = command(sys.executable, "train.py", *words, **environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads((tmp_path / name / "run.json").read_text())["wandb_run_id"]

    begun = wandb_run_id("out", "--max_steps", 1)
    resume = ("--resume_from_checkpoint", "last", "--accept_changes", "true")
    assert wandb_run_id("out", "--max_steps", 2, *resume) == begun
    folders = [path.name for path in (tmp_path / "wandb").glob("offline-run-*")]
    assert len(folders) == 2 and all(name.endswith(f"-{begun}") for name in folders)
    assert wandb_run_id("other", "--max_steps", 1) != begun


def test_other_data_and_options_are_refused_by_name_and_recorded_if_they_are_accepted(data, copied):
    words = (sys.executable, "train.py", *long_run(data, copied), "--resume_from_checkpoint", "last")
    words += ("--train_data", TOY / "dev.jsonl", "--limit", 8, "--learning_rate", 2e-3, "--gamma", 0.9)
    words += ("--weight_decay", 0.1, "--logging_steps", 10)
    line = complaint(*words)
    assert "was made with other data or options" in line
    assert "gamma was 0.5, is 0.9" in line and "learning_rate was" in line and "dev.jsonl" in line
    assert "weight_decay was 0.0, is 0.1" in line, "an option of transformers"
    # Of the data: train_data and limit, and two checksums.
    assert "logging_steps" not in line and line.count(" was ") == 8
    succeed(*words, "--accept_changes", "true")
    changes = json.loads((copied / "run.json").read_text())["changes"]
    assert "gamma was 0.5, is 0.9 after update 6" in changes


def test_another_rank_of_the_adapter_and_another_base_model_are_refused_in_one_line(tmp_path):
    lora = ("--use_peft", "--lora_target_modules", "q_proj", "v_proj", "--train_data", "t")

    def options(*more):
        words = ("--model_name_or_path", TOY / "base", "--output_dir", tmp_path, "--report_to", "none")
        return parse_options(CoCoSConfig, "", [str(word) for word in (*words, *lora, *more)])

    save_json(run_record(options("--lora_r", 4), data_sha256={}), tmp_path / "run.json")
    other = ("--lora_r", 8, "--lora_alpha", 64, "--model_name_or_path", TOY / "feedback/base")
    for more in ((), ("--accept_changes", "true")):
        args = options(*other, *more)
        with pytest.raises(ValueError, match="a resumed run cannot change lora_r: restore that") as refused:
            accepted_changes(args, run_record(args, data_sha256={}), tmp_path)
        for change in ("lora_r was 4, is 8", "lora_alpha was 32, is 64", "model_name_or_path was"):
            assert change in str(refused.value)


def texts(changes):
    return [str(change) for change in changes]


def test_the_changes_are_those_of_the_named_options_and_of_the_data(tmp_path):
    record = {"options": {"gamma": 0.5, "seed": 1, "answers": []}, "data_sha256": {"a": "1"}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert changes_since(tmp_path, record, ["gamma", "answers"], {}) == []
    other = {"options": {"gamma": 0.9, "seed": 2, "answers": ()}, "data_sha256": {"a": "2"}}
    assert texts(changes_since(tmp_path, other, ["gamma", "answers"], {})) == [
        "a was '1', is '2'",
        "gamma was 0.5, is 0.9",
    ]
    newer = {"options": record["options"] | {"limit": None, "max_steps": 2}, "data_sha256": {"a": "1"}}
    defaults = {"limit": None, "max_steps": 3, "gamma": 0.7}
    assert texts(changes_since(tmp_path, newer, ["gamma", "limit", "max_steps"], defaults)) == [
        "max_steps was 3, is 2"  # an option that the run's version did not have
    ]
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"not a readable record.*remove the file to continue"):
        changes_since(tmp_path, record, ["gamma"], {})


def test_another_number_of_processes_is_named_instead_of_what_follows_from_it(tmp_path):
    def record(steps, **options):
        sizes = {
            "global_batch_size": 32,
            "per_device_train_batch_size": 16,
            "gradient_accumulation_steps": steps,
        }
        return {"options": sizes | {"steps_per_generation": steps} | options, "data_sha256": {}}

    names = ["gamma", "gradient_accumulation_steps", "steps_per_generation"]
    (tmp_path / "run.json").write_text(json.dumps(record(1, gamma=0.5)))
    assert texts(changes_since(tmp_path, record(2, gamma=0.9), names, {})) == [
        "the number of processes was 2, is 1",
        "gamma was 0.5, is 0.9",
    ]
    assert changes_since(tmp_path, record(1, gamma=0.5), names, {}) == []


def test_a_silenced_message_is_one_that_the_module_of_its_logger_prints():
    """A library that moves a message to another module, as transformers did, would print it again."""
    for name, words in LOG_MESSAGES:
        spec = find_spec(name) if name != "DeepSpeed" else None  # a logger without a module
        if spec and not spec.submodule_search_locations:
            assert words in Path(spec.origin).read_text(), name


def test_a_resumed_run_prints_no_comparison_of_options_by_transformers():
    silence_library_messages()
    logger, heard = logging.getLogger("transformers.trainer_utils"), []
    handler = logging.Handler()
    handler.emit = heard.append
    logger.addHandler(handler)
    try:
        given = SimpleNamespace(eval_steps=5, per_device_train_batch_size=1, n_gpu=1)
        compare_trainer_and_checkpoint_args(given, SimpleNamespace(eval_steps=3, train_batch_size=1))
        logger.warning("another message")
    finally:
        logger.removeHandler(handler)
    assert [record.getMessage() for record in heard] == ["another message"]

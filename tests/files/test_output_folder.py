"""Output folders: taken if they are new, empty or the command's own; everything else stays as it is."""

import json
import os
import sys
from pathlib import Path

import pytest

from cocos.cli import main
from cocos.commands.runner import run_command
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.eval_config import EvalConfig
from cocos.config.training_options import BoostOptions
from cocos.evaluation.sample_files import check_folders
from cocos.files.output_folder import (
    BOOST_RUN,
    COCOS_RUN,
    EVALUATION,
    check_output_folder,
    check_training_folder,
    new_folder,
    run_kind,
)
from cocos.report.contents import Report
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import save_report
from tests.support.paths import TOY
from tests.support.report import PASSED, evaluated, trajectory


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(option):
    return json.dumps({"options": {option: None}})


# Folders by what a refusal names in them; none of them is a run of the command that gets it.
FOREIGN = {
    "notes.txt": {"notes.txt": "mine"},
    "README.md": {"README.md": "mine"},
    ".git": {".git/config": "mine", ".DS_Store": "left by a viewer"},
    "metrics.json": {"metrics.json": "{}", "report.md": "mine", "run.json": "{}"},
    "config.json": {"config.json": "{}", "model.safetensors": "weights"},
    "report.html": {"report.html": "<!doctype html>mine"},
    "run.json": {"run.json": json.dumps({"options": "all"})},
    "an evaluation": {"run.json": record("test_data"), "samples.jsonl": "{}"},
    "a CoCoS run": {"run.json": record("dev_data"), "checkpoint-2/model.safetensors": "weights"},
    "a Boost run": {"run.json": record("eval_data"), "model.safetensors": "weights"},
}
OWN = {"train": "a CoCoS run", "boost": "a Boost run", "eval": "an evaluation"}


def words_of(command, folder, problems_file, evaluation):
    """Return the words of a command that writes to a folder."""
    model = ("--model_name_or_path", TOY / "base")
    return {
        "train": (*model, "--train_data", problems_file, "--report_to", "none", "--output_dir", folder),
        "boost": (*model, "--train_data", problems_file, "--report_to", "none", "--output_dir", folder),
        "eval": (*model, "--test_data", problems_file, "--output_dir", folder),
        "report": (evaluation, "--output_dir", folder),
        "inspect": (evaluation, "--inspect_dir", folder),
        "export": (TOY / "base", folder),
        "prepare": ("jsonl", "--input", problems_file, "--output_dir", folder),
        "public": ("public", "--output_dir", folder),
        "demo": ("--output_dir", folder),
    }[command]


@pytest.fixture
def call(monkeypatch, capsys, problems_file, tmp_path):
    """call(command, folder, *options): the exit status and the standard error of `cocos`, in this process."""
    evaluation = evaluated(tmp_path / "played", [trajectory("a", PASSED)])

    def run(command, folder, *options):
        name = {"inspect": "report", "public": "prepare"}.get(command, command)
        words = (name, *words_of(command, folder, problems_file, evaluation), *options)
        monkeypatch.setattr(sys, "argv", ["cocos", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            run_command(main)
        return stopped.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    "command", ["train", "boost", "eval", "report", "inspect", "export", "prepare", "public", "demo"]
)
def test_a_folder_with_something_else_than_the_commands_own_run_stays_as_it_is(command, call, tmp_path):
    for number, (name, files) in enumerate(FOREIGN.items()):
        if OWN.get(command) == name:
            continue
        folder = tmp_path / f"folder{number}"
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        (tmp_path / f"link{number}").symlink_to(folder)
        before = contents(folder)
        for path in (folder, tmp_path / f"link{number}"):
            status, errors = call(command, path)
            assert status == 2, name
            [line] = errors.splitlines()
            assert f"{path} contains {name}" in line and "; choose a new or an empty folder" in line
        assert contents(folder) == before


def test_what_nobody_misses_makes_no_folder_somebodys(tmp_path):
    (tmp_path / "empty/deep").mkdir(parents=True)
    names = (".gitkeep", ".lock", ".x-1.partial/half", ".DS_Store", "train.log", "slurm-7.out", "wandb/run")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("" if name == ".gitkeep" else "x")
    check_output_folder(tmp_path)
    (tmp_path / "empty/deep/file").write_text("x")
    with pytest.raises(ValueError, match="contains empty; choose a new or an empty folder"):
        check_output_folder(tmp_path)


def test_the_file_to_which_the_shell_sends_the_output_is_not_somebodys(tmp_path, monkeypatch):
    out = tmp_path / "output.txt"
    out.write_text("warning")
    with pytest.raises(ValueError, match=r"contains output\.txt"):
        check_output_folder(tmp_path)
    real = os.fstat
    monkeypatch.setattr(os, "fstat", lambda stream: out.stat() if stream == 1 else real(stream))
    check_output_folder(tmp_path)


def test_a_record_is_known_by_the_options_of_its_command():
    for options_type, kind in (
        (EvalConfig, EVALUATION),
        (CoCoSOptions, COCOS_RUN),
        (BoostOptions, BOOST_RUN),
    ):
        assert run_kind(options_type.__dataclass_fields__) == kind


def test_a_training_that_saved_nothing_is_replaced_and_one_with_a_damaged_record_can_be_continued(tmp_path):
    (tmp_path / "run.json").write_text(record("dev_data"))
    (tmp_path / "log.jsonl").write_text("{}")
    check_training_folder(tmp_path, COCOS_RUN, is_resumed=False)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ValueError, match="contains a model; choose another folder"):
        check_training_folder(tmp_path, COCOS_RUN, is_resumed=False)
    (tmp_path / "checkpoint-2").mkdir()
    with pytest.raises(ValueError, match="contains checkpoints of a training run; continue it with"):
        check_training_folder(tmp_path, COCOS_RUN, is_resumed=False)
    (tmp_path / "run.json").write_text("{")
    check_training_folder(tmp_path, COCOS_RUN, is_resumed=True)
    (tmp_path / "run.json").write_text(record("test_data"))
    with pytest.raises(ValueError, match="contains an evaluation"):
        check_training_folder(tmp_path, COCOS_RUN, is_resumed=True)


def test_several_evaluations_take_their_common_folder_again_but_no_other(tmp_path):
    folders = [tmp_path / "all/mine/a", tmp_path / "all/mine/b"]
    check_folders(tmp_path / "all", folders)
    (folders[0]).mkdir(parents=True)
    (folders[0] / ".lock").touch()
    check_folders(tmp_path / "all", folders)  # killed before it wrote anything
    (folders[0] / "run.json").write_text(record("test_data"))
    (tmp_path / "all/report.md").write_text("accuracy")
    check_folders(tmp_path / "all", folders)
    with pytest.raises(ValueError, match="mine contains a; choose a new or an empty folder"):
        check_folders(tmp_path / "all/mine", [tmp_path / "all/mine"])
    (folders[1]).mkdir()
    (folders[1] / "run.json").write_text(record("dev_data"))
    with pytest.raises(ValueError, match=r"b contains a CoCoS run \(run\.json\)"):
        check_folders(tmp_path / "all", folders)


def test_a_report_is_written_again_to_its_own_folder_but_not_to_that_of_an_evaluation(call, tmp_path):
    folder = tmp_path / "report"
    assert call("report", folder) == (None, "")
    before = contents(folder).keys()
    (folder / "notes.txt").write_text("mine")
    assert call("report", folder) == (None, "") and contents(folder).keys() == {*before, "notes.txt"}
    save_report(Report(load_runs([tmp_path / "played"])), tmp_path / "played")
    status, errors = call("report", tmp_path / "played")
    assert status == 2 and "played contains an evaluation (run.json)" in errors
    assert call("inspect", tmp_path / "logs") == call("inspect", tmp_path / "logs") == (None, "")


def test_a_new_folder_is_complete_or_absent_also_in_an_empty_one_and_in_the_current_one(
    tmp_path, monkeypatch
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "here")
    for folder in (Path("../new/deep"), Path("../link"), Path(".")):
        with pytest.raises(KeyError), new_folder(folder) as partial:
            (partial / "a").write_text("half")
            raise KeyError
        check_output_folder(folder)
        with new_folder(folder) as partial:
            (partial / "a").write_text("whole")
        assert contents(folder) == {"a": b"whole"} and list(folder.iterdir()) == [folder / "a"]
    with pytest.raises(ValueError, match="contains theirs"), new_folder(Path("late")) as partial:
        (partial / "a").write_text("ours")
        Path("late").mkdir()
        Path("late/theirs").write_text("written meanwhile")
    assert contents(Path("late")) == {"theirs": b"written meanwhile"}


def test_a_folder_that_cannot_be_written_to_is_named_with_its_option_before_the_run(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere/x")
    (tmp_path / "file").write_text("")
    for folder, reason in (
        ("/proc/x", "cannot be written to (No such file or directory)"),
        (tmp_path / ("x" * 300), "cannot be written to (File name too long)"),
        (tmp_path / "link", "a link to nowhere; make its target"),
        (tmp_path / "file/out", "file is a file"),
    ):
        with pytest.raises(ValueError) as caught:
            check_output_folder(Path(folder))
        assert str(caught.value).startswith(f"--output_dir {folder}: ") and reason in str(caught.value)
        assert str(caught.value).endswith("choose another folder")
    with pytest.raises(ValueError, match="has characters that cannot be printed; choose another"):
        check_output_folder(tmp_path / "a\udcffb")
    check_output_folder(tmp_path / "new/folder")
    assert not (tmp_path / "new").exists()

"""Problem files by reference: public sets from the hub and from raw files, converted once, recorded by their digest."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cocos.dataprep.named_sets import parse_reference, problems_file
from cocos.dataprep.sources import PUBLIC_SOURCES
from cocos.files.run_record import sha256
from cocos.problems import DataError, load_problems
from tests.dataprep.test_raw_files import HUMANEVAL_ROW, MBPP_ROW
from tests.support.commands import ENVIRONMENT, complaint, succeed
from tests.support.data import lines
from tests.support.paths import ROOT


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """An empty cache folder, also for the commands that a test starts."""
    problems_file.cache_clear()
    monkeypatch.setenv("COCOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(ENVIRONMENT, "COCOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def raw_humaneval(tmp_path):
    path = tmp_path / "HumanEval.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(HUMANEVAL_ROW).encode()))
    return path


def converted(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.jsonl"))


def refusal(reference: str) -> str:
    with pytest.raises(DataError) as caught:
        problems_file(reference)
    message = str(caught.value)
    assert message.startswith(f"{reference}: ") and "\n" not in message
    return message.removeprefix(f"{reference}: ")


def test_a_path_is_no_reference(tmp_path, monkeypatch):
    assert problems_file("problems.jsonl") == Path("problems.jsonl")
    folder = tmp_path / "lr=0.1"
    folder.mkdir()
    (folder / "p.jsonl").write_text("")
    assert problems_file(str(folder / "p.jsonl")) == folder / "p.jsonl"
    assert problems_file(str(folder / "absent.jsonl")) == folder / "absent.jsonl"
    monkeypatch.chdir(tmp_path)
    Path("mbpp").mkdir()
    Path("mbpp/test").write_text("")
    assert parse_reference("mbpp/test") is None  # an existing file comes first


def test_a_raw_file_is_converted_once_and_again_when_it_changes(cache_folder, raw_humaneval, capsys):
    path = problems_file(f"humaneval={raw_humaneval}")
    [problem] = load_problems(path)
    assert problem.test_list == ("assert add(1, 2) == 3",)
    out = capsys.readouterr().out
    assert out.splitlines() == [
        f"humaneval={raw_humaneval}: 1 problems of HumanEval, test (https://github.com/openai/human-eval, MIT), "
        f"sha256 {sha256(path)}: {path}"
    ]
    assert converted(cache_folder) == [path]
    time = path.stat().st_mtime_ns
    problems_file.cache_clear()
    assert problems_file(f"humaneval={raw_humaneval}") == path and path.stat().st_mtime_ns == time
    assert capsys.readouterr().out == out  # every run says what it reads
    raw_humaneval.write_bytes(gzip.compress(json.dumps(HUMANEVAL_ROW | {"task_id": "HumanEval/9"}).encode()))
    problems_file.cache_clear()
    [problem] = load_problems(problems_file(f"humaneval={raw_humaneval}"))
    assert problem.task_id == "HumanEval/9" and len(converted(cache_folder)) == 2


def test_a_set_of_the_hub_is_downloaded_once(cache_folder, tmp_path, monkeypatch):
    hub = tmp_path / "owner/name"
    hub.mkdir(parents=True)
    rows = [MBPP_ROW, MBPP_ROW | {"task_id": 601}]
    (hub / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)  # `datasets` reads a folder of that name as the data set of that name
    source = PUBLIC_SOURCES["mbpp"]
    monkeypatch.setitem(PUBLIC_SOURCES, "mbpp", type(source)(**vars(source) | {"hub": ("owner/name", None)}))
    [problem] = load_problems(problems_file("hub:mbpp/test"))
    assert problem.task_id == "11" and (cache_folder / "raw/mbpp.jsonl").exists()
    (hub / "test.jsonl").unlink()
    [problem] = load_problems(problems_file("hub:mbpp/train"))
    assert problem.task_id == "601"
    assert refusal("hub:mbpp/validation").endswith("mbpp.jsonl contains no problem of the split validation")


def test_unknown_sets_splits_and_files_are_refused_with_what_to_give(raw_humaneval):
    splits = "hub:mbpp/train, hub:mbpp/validation, hub:mbpp/test, hub:mbpp/prompt"
    assert refusal("hub:mbpp") == f"mbpp has more than one split; give one of {splits}"
    assert refusal("hub:mbpp/dev") == f"mbpp has no split 'dev'; give one of {splits}"
    assert "unknown public set 'mbbp'; did you mean mbpp?" in refusal("hub:mbbp/test")
    assert "unknown public set 'humanevl'; did you mean humaneval?" in refusal(f"humanevl={raw_humaneval}")
    assert refusal("mbpp/test") == "no such file; for the public set give hub:mbpp/test"
    assert refusal("humaneval=absent.gz") == "absent.gz: no such file; give the raw file of humaneval"
    assert "kodcode has no standard splits; prepare it first: cocos prepare" in refusal("hub:kodcode/train")
    assert f"give one of mbpp/train={raw_humaneval}, " in refusal(f"mbpp={raw_humaneval}")


def test_a_raw_file_of_another_set_leaves_nothing_in_the_cache(cache_folder, tmp_path):
    raw = tmp_path / "mbpp.jsonl"
    raw.write_text(json.dumps(MBPP_ROW))
    with pytest.raises(DataError, match=r"mbpp.jsonl:1: field 'prompt' is missing"):
        problems_file(f"humaneval={raw}")
    assert converted(cache_folder) == []


def test_a_cache_folder_that_cannot_be_written_is_named_with_its_variable(cache_folder, raw_humaneval):
    cache_folder.write_text("a file")
    with pytest.raises(DataError, match=r"cache: not writable .*; set COCOS_CACHE to a folder"):
        problems_file(f"humaneval={raw_humaneval}")


@pytest.mark.processes
def test_only_the_first_rank_prints_and_ranks_that_start_together_convert_once(cache_folder, raw_humaneval):
    program = (
        f"from cocos.dataprep.named_sets import problems_file; problems_file('humaneval={raw_humaneval}')"
    )
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {"RANK": str(rank)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0, 0]
    assert len(outputs[0].splitlines()) == 1 and outputs[1:] == ["", ""]
    assert len(converted(cache_folder)) == 1


@pytest.mark.processes
def test_a_raw_file_is_evaluated_by_one_command_and_its_digest_recorded(
    raw_humaneval, cache_folder, tmp_path
):
    reference, out = f"humaneval={raw_humaneval}", tmp_path / "out"
    words = ("--answers", "references", "--num_turns", 1, "--output_dir", out)
    done = succeed(sys.executable, "test.py", "--test_data", reference, *words)
    assert done.stdout.splitlines()[0].startswith(f"{reference}: 1 problems of HumanEval, test (")
    record = json.loads((out / "run.json").read_text())
    [path] = converted(cache_folder)
    assert record["data_sha256"] == {reference: sha256(path)}
    assert len(lines(out / "samples.jsonl")) == 1


@pytest.mark.processes
def test_without_a_network_the_commands_that_prepare_a_set_are_named(tmp_path):
    words = ("--answers", "references", "--num_turns", 1, "--output_dir", tmp_path / "out")
    line = complaint(sys.executable, "test.py", "--test_data", "hub:mbpp/test", *words)
    assert "hub:mbpp/test: google-research-datasets/mbpp: cannot be read from the hub" in line
    command = "cocos prepare mbpp --output_dir data/mbpp"
    assert f"{command}; with the raw file: {command} --input mbpp.jsonl" in line
    assert not (tmp_path / "out").exists()

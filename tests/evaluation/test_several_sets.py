"""test.py on several sets of problems or several models: one command, a folder for each, one report over all."""

import json
import sys
from functools import partial

import pytest

from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalSuiteConfig
from cocos.problems import Problem, save_problems
from tests.support.commands import WITHOUT_CHARTS, complaint, succeed
from tests.support.evaluation import rows
from tests.support.paths import TOY

evaluate = partial(succeed, **WITHOUT_CHARTS)


@pytest.mark.processes
def test_each_set_has_a_folder_and_one_report_has_a_row_for_each_and_a_resumed_command_plays_what_is_missing(
    tmp_path,
):
    right = Problem("1", "Add 1.", ("assert f(1) == 2",), "def f(x):\n    return x + 1")
    wrong = Problem("1", "Add 2.", ("assert f(1) == 3",), "def f(x):\n    return x")
    save_problems([right], tmp_path / "right.jsonl")
    save_problems([wrong], tmp_path / "wrong.jsonl")
    out, sets = tmp_path / "out", (tmp_path / "right.jsonl", tmp_path / "wrong.jsonl")
    words = ("--answers", "references", "--num_turns", 1, "--output_dir", out, "--executor_workers", 1)
    absent = tmp_path / "absent.jsonl"
    assert "absent.jsonl: no such file" in complaint(
        sys.executable, "test.py", "--test_data", *sets, absent, *words
    )
    assert not list(out.rglob("samples.jsonl"))  # nothing was played
    evaluate(sys.executable, "test.py", "--test_data", *sets, *words)
    folders = sorted(path for path in out.iterdir() if (path / "metrics.json").exists())
    assert [path.name.rpartition("-")[2] for path in folders] == ["right", "wrong"]
    scores = [
        json.loads((path / "metrics.json").read_text())["metrics"]["acc_t1"]["value"] for path in folders
    ]
    assert scores == [1.0, 0.0]
    report = (out / "report.md").read_text()
    assert all(f"| {path.name} |" in report for path in folders)
    # One of the two problems is right: Wilson's interval of 1 of 2.
    assert "## Correction with given answers over all 2 sets, % [95 % interval]" in report
    assert "| all sets | 2 | 1 | 50.0 [9.5, 90.5] |" in report
    (folders[1] / "samples.jsonl").unlink()
    before = (folders[0] / "samples.jsonl").read_bytes()
    resumed = evaluate(sys.executable, "test.py", "--test_data", *sets, *words, "--resume")
    assert "resumed: 1 of 1 trajectories are saved" in resumed.stdout
    assert (folders[0] / "samples.jsonl").read_bytes() == before and len(rows(folders[1])) == 1


def test_sets_have_folders_of_different_names():
    def folders(*sets):
        suite = EvalSuiteConfig(model_name_or_path=["m"], test_data=[*sets], output_dir="out")
        return [run.output_dir for run in suite.runs()]

    assert folders("hub:mbpp/test", "humaneval=raw/HumanEval.jsonl.gz") == ["out/mbpp-test", "out/humaneval"]
    assert folders("hub:mbpp/test") == ["out"]
    with pytest.raises(ValueError, match="two have one name; give each once"):
        folders("hub:mbpp/test", "mbpp/test=mbpp.jsonl")


def test_a_config_file_may_name_one_set_as_it_is(tmp_path):
    path = tmp_path / "eval.yaml"
    path.write_text("model_name_or_path: m\ntest_data: data/t.jsonl\noutput_dir: out\n")
    [run] = parse_options(EvalSuiteConfig, "description", ["--config", str(path)]).runs()
    assert (run.test_data, run.output_dir) == ("data/t.jsonl", "out")


def test_models_have_folders_of_different_names_in_that_of_each_set():
    def folders(models, *sets):
        return [run.output_dir for run in suite(models, *sets).runs()]

    def suite(models, *sets, **options):
        return EvalSuiteConfig(model_name_or_path=models, test_data=[*sets], output_dir="out", **options)

    models = ["Qwen/Qwen2.5-1.5B", "runs/rloo6/checkpoint-14"]
    assert folders(models, "hub:mbpp/test") == ["out/Qwen-Qwen2.5-1.5B", "out/rloo6-checkpoint-14"]
    assert folders(models, "hub:mbpp/test", "mine.jsonl") == [
        *("out/mbpp-test/Qwen-Qwen2.5-1.5B", "out/mine/Qwen-Qwen2.5-1.5B"),  # a model is loaded once
        *("out/mbpp-test/rloo6-checkpoint-14", "out/mine/rloo6-checkpoint-14"),
    ]
    with pytest.raises(ValueError, match="two have one name; give each once"):
        folders(["a/b/c", "b/c"], "mine.jsonl")
    with pytest.raises(ValueError, match="--generator vllm keeps the GPU's memory"):
        suite(models, "mine.jsonl", generator="vllm").runs()


@pytest.mark.processes
def test_several_models_are_compared_in_one_report_and_a_resumed_command_plays_what_is_missing(tmp_path):
    out = tmp_path / "out"
    words = ("--test_data", TOY / "test.jsonl", "--limit", 4, "--num_turns", 1, "--max_completion_length", 24)
    words = ("test.py", *words, "--output_dir", out, "--executor_workers", 1, "--model_name_or_path", "toy")
    assert "did you mean smollm2-135m?" in complaint(sys.executable, *words, "smolm2-135m")
    assert not out.exists()  # nothing was played
    done = evaluate(sys.executable, *words, "toy-feedback")
    folders = [out / "toy-base", out / "feedback-base"]
    assert all(len(rows(folder)) == 4 and (folder / "report.html").exists() for folder in folders)
    comparison = (out / "report.md").read_text()
    assert "| feedback-base | toy-base | 4 | 1 " in comparison.partition("## Against the baseline")[2]
    assert f"open {out}/report.html" in done.stdout
    (folders[1] / "samples.jsonl").unlink()
    before = (folders[0] / "samples.jsonl").read_bytes()
    resumed = evaluate(sys.executable, *words, "toy-feedback", "--resume")
    assert "resumed: 4 of 4 trajectories are saved" in resumed.stdout
    assert (folders[0] / "samples.jsonl").read_bytes() == before and len(rows(folders[1])) == 4

"""The files of examples/, run as docs/python.md says."""

import ast
import importlib
import json
import re
import sys

import pytest

from cocos.files.run_record import sha256
from tests.support import endpoint_server
from tests.support.commands import command, succeed
from tests.support.paths import ROOT, TOY

EXAMPLES = ROOT / "examples"


def test_the_page_lists_every_example():
    page = (ROOT / "docs/python.md").read_text()
    assert set(re.findall(r"^\| \[(\w+\.py)\]", page, re.MULTILINE)) == {
        p.name for p in EXAMPLES.glob("*.py")
    }


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_what_an_example_imports_from_the_project_exists(path):
    # Some need a package of an environment of their own, where they run at night only.
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cocos"):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.processes
def test_the_executor_is_a_reward():
    # the second program fails the first of two tests: double(0) is 0 either way
    assert succeed(sys.executable, EXAMPLES / "reward.py").stdout == "[1.0, 0.5, 0.0]\n"


@pytest.mark.processes
def test_a_rollout_over_an_endpoint_has_its_metrics(tmp_path):
    row = {"task_id": 1, "text": "Double a number.", "code": "", "test_list": ["assert f(2) == 4"]}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    with endpoint_server.serve() as endpoint:
        wrong, right = (f"```python\ndef f(x):\n    return {value}\n```" for value in ("x", "2 * x"))
        endpoint.behaviours += [endpoint_server.text(wrong), endpoint_server.text(right)]
        words = (endpoint.base_url, "m", tmp_path / "p.jsonl")
        lines = succeed(sys.executable, EXAMPLES / "endpoint.py", *words).stdout.splitlines()
    assert {"acc_t1 0.0", "acc_t2 1.0", "i2c_t1_t2 1.0"} <= set(lines)


def test_a_metric_of_ones_own_reads_the_samples(tmp_path):
    turns = [{"is_right": False, "code": "a"}, {"is_right": True, "code": "a\nb\nc"}]
    (tmp_path / "samples.jsonl").write_text(json.dumps({"turns": turns}) + "\n")
    done = succeed(sys.executable, EXAMPLES / "metric.py", tmp_path / "samples.jsonl")
    assert done.stdout == "1 repairs, +2.0 lines each\n"


@pytest.mark.processes
def test_a_model_is_trained_on_problems_of_ones_own(problems_file, tmp_path):
    done = succeed(sys.executable, EXAMPLES / "train.py", TOY / "base", problems_file, tmp_path / "out")
    assert "acc_t1" in done.stdout or "reward" in done.stdout
    assert {"model.safetensors", "tokenizer.json"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.processes
def test_a_model_is_trained_with_a_reward_of_ones_own(problems_file, tmp_path):
    done = command(
        *(sys.executable, "-m", "cocos", "train", "--reward", "own_reward:passed_and_short"),
        *(
            "--model_name_or_path",
            TOY / "base",
            "--train_data",
            problems_file,
            "--limit",
            2,
            "--max_steps",
            1,
        ),
        *("--global_batch_size", 8, "--max_completion_length", 40, "--beta", 0, "--report_to", "none"),
        *("--logging_steps", 1, "--output_dir", tmp_path / "out"),
        cwd=EXAMPLES,
    )
    assert done.returncode == 0, done.stderr
    assert "2 problems are fewer than the 4 of a batch" in done.stderr
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert record["data_sha256"]["own_reward:passed_and_short"] == sha256(EXAMPLES / "own_reward.py")


@pytest.mark.processes
@pytest.mark.nightly
def test_the_notebook_goes_from_a_csv_file_to_a_report(tmp_path):
    done = command(sys.executable, EXAMPLES / "notebook.py", cwd=tmp_path, timeout_s=900)
    assert done.returncode == 0, done.stderr[-4000:]
    folder = tmp_path / "outputs/notebook"
    assert (folder / "model/model.safetensors").exists()
    assert "base" in (folder / "report/report.html").read_text()
    assert set(json.loads((folder / "trained/metrics.json").read_text())["metrics"]) >= {"acc_t1", "acc_t2"}

"""Logs of evaluations in the format of inspect."""

import json
import os
import subprocess
import sys

import pytest

from cocos.report.finished_runs import load_runs
from cocos.report.inspect_log import inspect_log
from tests.support.commands import succeed
from tests.support.report import FAILED, INFRA_FAILURE, PASSED, TYPE_ERROR, evaluated, trajectory

PYTHON = os.environ.get("COCOS_VERIFIERS_PYTHON")
PLAYED = [
    trajectory("1", FAILED, PASSED),
    trajectory("2", PASSED, TYPE_ERROR),
    trajectory("3", FAILED, INFRA_FAILURE),
]


def test_a_trajectory_is_a_sample_with_a_score_per_turn(tmp_path):
    [run] = load_runs([evaluated(tmp_path / "mine", PLAYED)])
    log = inspect_log(run)
    repaired, spoiled, failed = log["samples"]
    assert [message["content"] for message in repaired["messages"]] == [
        "",
        "x = 1\n[DONE]",
        "",
        "x = 2\n[DONE]",
    ]
    assert [score["value"] for score in repaired["scores"].values()] == ["I", "C"]
    assert spoiled["scores"]["turn_2"] == {
        "value": "I",
        "answer": "x = 2",
        "explanation": "✗ assert True\n    TypeError",
    }
    assert failed["error"]["message"] == "the worker died" and "scores" not in failed
    [score] = log["results"]["scores"]
    values = {name: metric["value"] for name, metric in score["metrics"].items()}
    assert (values["acc_t1"], values["i2c_t1_t2"], values["c2i_t1_t2"]) == (0.5, 0.5, 0.5)
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (3, 2)


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.skipif(
    not PYTHON, reason="COCOS_VERIFIERS_PYTHON names no interpreter with verifiers and inspect"
)
def test_inspect_lists_and_reads_what_the_report_writes(tmp_path):
    folders = [evaluated(tmp_path / name, PLAYED) for name in ("a", "b")]
    succeed(sys.executable, "-m", "cocos", "report", *folders, "--inspect_dir", tmp_path / "logs")
    code = (
        "import json, sys; from inspect_ai.log import list_eval_logs, read_eval_log\n"
        "logs = [read_eval_log(log) for log in list_eval_logs(sys.argv[1])]\n"
        "print(json.dumps({log.eval.task: [sample.scores and sample.scores['turn_2'].value for sample in log.samples]"
        " for log in logs}))"
    )
    done = subprocess.run([PYTHON, "-c", code, tmp_path / "logs"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"a": ["C", "I", None], "b": ["C", "I", None]}

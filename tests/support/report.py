"""Output folders of test.py, written from results that a test chooses."""

import json
from collections.abc import Sequence
from pathlib import Path

from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.files.durable import save_json
from cocos.generation import Completion
from cocos.metrics import run_metrics
from cocos.problems import Problem
from cocos.report.comparisons import RunComparison
from cocos.report.contents import Report
from cocos.report.finished_runs import FinishedRun
from cocos.report.html_report import page_parts
from cocos.trajectories import Trajectory, Turn

OPTIONS = {"model_name_or_path": "base", "test_data": "test.jsonl", "protocol": "cocos", "num_turns": 2}
PASSED = ExecutionResult((Verdict(Status.PASSED),))
MARKED = ExecutionResult((Verdict(Status.PASSED, in_child_reason="the test awaits"),))
FAILED = ExecutionResult((Verdict(Status.FAILED, "AssertionError"),))
TYPE_ERROR = ExecutionResult((Verdict(Status.ERROR, "TypeError"),))
INFRA_FAILURE = ExecutionResult((), infra_error="the worker died")


def turn(result: ExecutionResult, code: str = "x = 1", is_truncated: bool = False) -> Turn:
    """Return a turn whose completion is the program and [DONE]."""
    completion = Completion((1, 2, 3), f"{code}\n[DONE]", is_truncated, duration_s=0.25)
    return Turn((1,), completion, code, result)


def trajectory(task_id: str, *results: ExecutionResult, sample: int = 0, text: str = "t") -> Trajectory:
    """Return a trajectory with these results; every turn has another program."""
    turns = tuple(turn(result, f"x = {number}") for number, result in enumerate(results, start=1))
    return Trajectory(Problem(task_id, text, ("assert True",)), sample, turns)


def evaluated(
    folder: Path,
    trajectories: Sequence[Trajectory],
    feedback: str = "none",
    speed: dict[str, float] | None = None,
    options: dict[str, object] | None = None,
    **conditions: object,
) -> Path:
    """Write samples.jsonl, metrics.json and run.json of an evaluation, and return the folder.

    `options` are added to those in run.json, `speed` to that in metrics.json.
    """
    conditions = {"agent": "none", "feedback": feedback, "early_stop": False, "answers": []} | conditions
    folder.mkdir(parents=True)
    lines = [json.dumps(trajectory_to_row(trajectory, **conditions)) + "\n" for trajectory in trajectories]
    (folder / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    stored = [
        trajectory_from_row(json.loads(line), t.problem) for line, t in zip(lines, trajectories, strict=True)
    ]
    metrics = run_metrics(stored, conditions)
    save_json(metrics | {"speed": metrics["speed"] | (speed or {})}, folder / "metrics.json")
    options = OPTIONS | (options or {})
    save_json({"options": options, "versions": {"python": "3"}} | conditions, folder / "run.json")
    return folder


def page_of(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> str:
    """Return report.html without charts, which take most of the time, and without the script and its rows."""
    return "".join(page_parts(Report(runs, comparisons), None)).split('id="samples"')[0]


def sampled(*right_of_16: int) -> list[Trajectory]:
    """Return 16 samples of one turn of problems 0, 1, ..., of which the first ones are right."""
    return [
        trajectory(str(number), PASSED if sample < right else FAILED, sample=sample)
        for number, right in enumerate(right_of_16)
        for sample in range(16)
    ]


def numbered(*rows: tuple[ExecutionResult, ...]) -> list[Trajectory]:
    """Return trajectories of problems 0, 1, ... with these results per turn."""
    return [trajectory(str(number), *row) for number, row in enumerate(rows)]

"""A finished evaluation as a log of inspect (inspect.aisi.org.uk), for `inspect view` and other readers.

A trajectory is a sample. Its messages are the turns; its score `turn_t` has turn t's program and verdicts.
The format is inspect's JSON of version 2, which is written without inspect.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cocos.evaluation.sample_rows import SampleRow, problem_of_row, trajectory_from_row
from cocos.evaluation.trajectory_text import marked_tests
from cocos.report.finished_runs import FinishedRun


def has_inspect_logs(folder: Path) -> bool:
    """Return whether a folder holds logs of inspect or of `save_inspect_log`."""
    return any(path.name.endswith((".eval", "_cocos.json")) for path in folder.iterdir())


def save_inspect_log(run: FinishedRun, folder: Path) -> None:
    """Write the log of a run into a folder, under a name of the form that inspect lists: TIME_TASK_ID."""
    log = inspect_log(run)
    time, task = log["eval"]["created"].replace(":", "-"), re.sub(r"\W+", "-", run.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{time}_{task}_cocos.json").write_text(json.dumps(log), encoding="utf-8")


def inspect_log(run: FinishedRun) -> dict[str, Any]:
    """Return the log of a run as a JSON value."""
    options, num_scored = run.record["options"], run.metrics["num_scored"]
    model = options["model_name_or_path"]
    samples = [_sample(row, model) for row in run.rows]
    metrics = {
        name: {"name": name, "value": estimate["value"], "metadata": estimate}
        for name, estimate in run.metrics["metrics"].items()
    }
    ended = datetime.fromtimestamp(run.folder.stat().st_mtime, UTC)
    started = ended - timedelta(seconds=run.metrics["speed"].get("wall_s", 0))
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": ended.isoformat(timespec="seconds"),
            "task": run.name,
            "task_args": options,
            "dataset": {"name": options["test_data"], "samples": run.metrics["num_problems"]},
            "model": model,
            "config": {"epochs": 1 + max(row["sample"] for row in run.rows)},
            "packages": run.record["versions"],
        },
        "stats": {"started_at": started.isoformat(), "completed_at": ended.isoformat()},
        "results": {
            "total_samples": len(samples),
            "completed_samples": num_scored,
            "scores": [
                {"name": "turns", "scorer": "cocos", "scored_samples": num_scored, "metrics": metrics}
            ],
        },
        "samples": samples,
    }


def _sample(row: SampleRow, model: str) -> dict[str, Any]:
    problem = problem_of_row(row)
    turns = trajectory_from_row(row, problem).turns
    messages = [
        message
        for turn in turns
        if not turn.is_carried
        for message in (
            {"role": "user", "content": turn.request},
            {"role": "assistant", "content": turn.completion.thought + turn.completion.text},
        )
    ]
    num_input, num_output = (
        sum(turn[name] for turn in row["turns"]) for name in ("num_prompt_tokens", "num_completion_tokens")
    )
    usage = {"input_tokens": num_input, "output_tokens": num_output, "total_tokens": num_input + num_output}
    sample: dict[str, Any] = {
        "id": problem.task_id,
        "epoch": row["sample"] + 1,
        "input": problem.text,
        "target": list(problem.scored_tests),
        "messages": messages,
        "output": {"model": model, "choices": [{"message": messages[-1]}]},
        "model_usage": {model: usage},
        "total_time": sum(turn["generation_s"] + turn["execution_s"] for turn in row["turns"]),
    }
    if failure := next((turn.result.infra_error for turn in turns if turn.result.is_infra_failure), None):
        return sample | {"error": {"message": failure, "traceback": failure, "traceback_ansi": failure}}
    scores = {
        f"turn_{number}": {
            "value": "C" if turn.result.is_right else "I",
            "answer": turn.code,
            "explanation": marked_tests(problem.scored_tests, len(problem.test_list), turn.result),
        }
        for number, turn in enumerate(turns, start=1)
    }
    return sample | {"scores": scores}

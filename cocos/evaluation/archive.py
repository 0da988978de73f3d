"""Runs that were played outside of test.py, as a ZIP archive of folders that test.py and the report read."""

import io
import json
import zipfile
from collections.abc import Sequence

from cocos.config.eval_config import EvalConfig
from cocos.evaluation.resumption import evaluation_record
from cocos.evaluation.run import run_metrics
from cocos.evaluation.sample_files import row_to_line
from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import Executor
from cocos.trajectories import Trajectory


def run_archive(played: Sequence[tuple[EvalConfig, Trajectory]], executor: Executor) -> bytes:
    """Return a ZIP archive with a folder per configuration: samples.jsonl, metrics.json and run.json.

    Args:
        played: Trajectories with all their turns, each with the options that it was played with.
        executor: Executor that ran the programs.

    """
    configs: list[EvalConfig] = []
    for args, _ in played:
        if args not in configs:
            configs.append(args)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for number, args in enumerate(configs, start=1):
            trajectories = [trajectory for other, trajectory in played if other == args]
            rows = [trajectory_to_row(trajectory, **args.conditions) for trajectory in trajectories]
            # As after a run of test.py: the metrics are those of the rows.
            stored = [trajectory_from_row(row, t.problem) for row, t in zip(rows, trajectories, strict=True)]
            record = evaluation_record(args, executor, data_sha256={})
            files.writestr(f"run{number}/samples.jsonl", b"".join(map(row_to_line, rows)))
            files.writestr(f"run{number}/metrics.json", json.dumps(run_metrics(args, stored), indent=2))
            files.writestr(f"run{number}/run.json", json.dumps(record, indent=2, default=str))
    return archive.getvalue()

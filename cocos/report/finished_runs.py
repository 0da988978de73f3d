"""Finished evaluations, read from the output folders of test.py.

samples.jsonl is streamed; only the values that charts and comparisons need are kept in memory.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cocos.evaluation.sample_rows import SampleRow, has_infra_failure, validate_row
from cocos.files.json_lines import read_rows
from cocos.statistics import Estimate


@dataclass
class SampleStatistics:
    """Statistics of samples.jsonl, collected in one pass.

    A suffix _T marks a list with one entry per turn.

    Attributes:
        first_turn_outcomes: By task_id, whether the program of turn 1 is right in each scored sample.
        last_turn_outcomes: The same at the last turn.
        tokens_T: Tokens of each completion. Here and below, a turn that early stop carried over has no entry.
        generation_s_T: Seconds of generation of each completion.
        execution_s_T: Seconds of execution of each program.
        problem_hashes: By task_id, the hash of the problem's text and tests. Runs with other hashes were
            made from other data.

    """

    first_turn_outcomes: dict[str, list[bool]] = field(default_factory=dict)
    last_turn_outcomes: dict[str, list[bool]] = field(default_factory=dict)
    tokens_T: list[list[float]] = field(default_factory=list)
    generation_s_T: list[list[float]] = field(default_factory=list)
    execution_s_T: list[list[float]] = field(default_factory=list)
    problem_hashes: dict[str, int] = field(default_factory=dict)

    def add(self, row: SampleRow) -> None:
        """Add one row of samples.jsonl."""
        turns = row["turns"]
        for t, turn in enumerate(turns):
            if t == len(self.tokens_T):
                for values_T in (self.tokens_T, self.generation_s_T, self.execution_s_T):
                    values_T.append([])
            if turn["is_carried"]:
                continue
            self.tokens_T[t].append(turn["num_completion_tokens"])
            self.generation_s_T[t].append(turn["generation_s"])
            self.execution_s_T[t].append(turn["execution_s"])
        # The comparison excludes trajectories with an infrastructure failure, as the accuracy does.
        if not has_infra_failure(row):
            task_id = row["task_id"]
            self.problem_hashes[task_id] = hash((row["text"], *row["tests"]))
            self.first_turn_outcomes.setdefault(task_id, []).append(turns[0]["is_right"])
            self.last_turn_outcomes.setdefault(task_id, []).append(turns[-1]["is_right"])


@dataclass(frozen=True)
class FinishedRun:
    """One evaluation that has finished.

    Attributes:
        name: Name in tables and charts.
        folder: Output folder of test.py.
        metrics: Contents of metrics.json.
        record: Contents of run.json.

    """

    name: str
    folder: Path
    metrics: Mapping[str, Any]
    record: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The name, followed by the conditions if there are any."""
        return f"{self.name} ({self.conditions})" if self.conditions else self.name

    @property
    def num_turns(self) -> int:
        return sum(name.startswith("acc_t") for name in self.metrics["metrics"])

    @property
    def turn_pairs(self) -> list[str]:
        """Pairs of consecutive turns as in the names of metrics: t1_t2, t2_t3, ..."""
        return [f"t{turn}_t{turn + 1}" for turn in range(1, self.num_turns)]

    @property
    def conditions(self) -> str:
        """Feedback, early stop and given answers of the run, as a phrase; "" for plain self-correction."""
        feedback, answers = self.metrics["feedback"], self.metrics["answers"]
        conditions = [f"{feedback} feedback"] if feedback != "none" else []
        conditions += ["early stop on the visible tests"] * self.metrics["early_stop"]
        conditions += [f"given answers ({', '.join(answers)})"] if answers else []
        return " and ".join(conditions)

    def estimate(self, metric: str) -> Estimate:
        """Return a metric of metrics.json with its interval, for example that of `acc_t1`."""
        return Estimate(**self.metrics["metrics"][metric])

    def rows(self) -> Iterator[SampleRow]:
        """Yield the rows of samples.jsonl one at a time."""
        for place, row in read_rows(self.folder / "samples.jsonl"):
            yield validate_row(row, place)

    @cached_property
    def statistics(self) -> SampleStatistics:
        """Statistics of samples.jsonl, which is read on first access."""
        statistics = SampleStatistics()
        for row in self.rows():
            statistics.add(row)
        return statistics


def load_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Load the evaluations in these folders.

    A run has the name of its folder, or the whole path if two folders have the same name.

    Raises:
        ValueError: A folder has no readable metrics.json or run.json.

    """
    num_folders = Counter(folder.resolve().name for folder in folders)
    runs = []
    for folder in folders:
        name = folder.resolve().name
        metrics, record = _load_json(folder / "metrics.json"), _load_json(folder / "run.json")
        runs.append(FinishedRun(name if num_folders[name] == 1 else str(folder), folder, metrics, record))
    return runs


def group_by_conditions(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Group runs by their conditions, plain self-correction first.

    Runs under different conditions never share a table: feedback, early stop and given answers use an oracle
    that plain self-correction does not have.
    """
    all_conditions = sorted({run.conditions for run in runs})  # "" sorts first
    return {
        conditions: [run for run in runs if run.conditions == conditions] for conditions in all_conditions
    }


def _load_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path.parent}: no readable {path.name} ({error}); run test.py --output_dir {path.parent}"
        ) from None

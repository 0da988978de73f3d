"""Rows of results, as read from finished runs and kept in CSV files: evaluations, and training curves."""

import csv
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from cocos.evaluation.sample_rows import SampleRow
from cocos.metrics import NEAR_REPEAT, edit_ratio
from cocos.report.finished_runs import load_runs


class Evaluation(NamedTuple):
    """Evaluation over one or more turns.

    `right` and `visible` have a word per turn, `edits` has one per later turn. A word has a character per
    problem, in the order of the file.
    """

    folder: str  # its folder below that of all results, such as toy/seed0/boost
    isolation: str  # isolation level of the programs
    samples: int  # per problem, at most 9
    right: str  # digits: how many samples are right
    visible: str  # digits: how many samples pass the visible tests
    edits: str  # of a single sample: `=` repeats a program, `~` edits 5 % or less, `x` more; `-`: no turn
    repeated: float  # share of second programs that equal the first, in [0, 1]; nan without a second turn
    truncated: int  # completions that reached the length limit
    tokens: float  # mean tokens of all completions of a trajectory
    first_tokens: float = nan  # mean tokens of the first; nan in rows of a version that did not count them
    minutes: float = nan  # of generation and execution; nan as above

    @property
    def right_T(self) -> list[str]:
        """A word per turn."""
        return self.right.split()


def read_evaluation(folder: Path, name: str) -> Evaluation:
    """Read a finished evaluation.

    Raises:
        ValueError: A problem has no verdict, or samples.jsonl is incomplete.

    """
    run = load_runs([folder])[0]
    if run.metrics["num_scored"] < run.metrics["num_trajectories"]:
        raise ValueError(f"{folder}: problems without a verdict; run cocos eval again with --resume")
    rows: dict[str, list[SampleRow]] = {}
    for row in run.rows:
        rows.setdefault(row["task_id"], []).append(row)
    turns, problems = range(run.num_turns), list(rows.values())
    samples = len(problems[0])
    right = ["".join(str(sum(row["turns"][t]["is_right"] for row in own)) for own in problems) for t in turns]
    visible = ["".join(str(sum(passes_visible(row, t) for row in own)) for own in problems) for t in turns]
    edits = ["".join(edit(own[0], t) for own in problems) for t in turns[1:] if samples == 1]
    written = [turn for own in problems for row in own for turn in row["turns"] if not turn["is_carried"]]
    firsts = [row["turns"][0]["num_completion_tokens"] for own in problems for row in own]
    return Evaluation(
        folder=name,
        isolation=run.record["isolation"],
        samples=samples,
        right=" ".join(right),
        visible=" ".join(visible),
        edits=" ".join(edits),
        repeated=run.estimate("repeated_t1_t2").value if run.has_estimate("repeated_t1_t2") else nan,
        truncated=run.metrics["num_truncated"],
        tokens=sum(turn["num_completion_tokens"] for turn in written) / len(firsts),
        first_tokens=sum(firsts) / len(firsts),
        minutes=sum(turn["generation_s"] + turn["execution_s"] for turn in written) / 60,
    )


def passes_visible(row: SampleRow, turn: int) -> bool:
    """Return whether the program of a turn, counted from 0, passes the visible tests."""
    verdicts = row["turns"][turn]["verdicts"][: row["num_visible_tests"]]
    return all(verdict["status"] == "passed" for verdict in verdicts)


def edit(row: SampleRow, turn: int) -> str:
    """Return the character of `Evaluation.edits` for a turn, counted from 0."""
    before, after = row["turns"][turn - 1], row["turns"][turn]
    if after["is_carried"]:
        return "-"
    ratio = edit_ratio(before["code"], after["code"])
    return "=" if ratio == 0.0 else "~" if ratio <= NEAR_REPEAT else "x"


def save_csv(rows: Sequence[NamedTuple], path: Path) -> None:
    """Write rows under their field names, with four digits after the point."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        for row in rows:
            writer.writerow([f"{value:.4f}" if isinstance(value, float) else value for value in row])


def merge_csv(new: Sequence[Evaluation], path: Path) -> int:
    """Add evaluations to a CSV file, in place of those of the same folders; return how many it has now."""
    rows = {row.folder: row for row in load_csv(path, Evaluation)} if path.exists() else {}
    rows |= {row.folder: row for row in new}
    save_csv(list(rows.values()), path)
    return len(rows)


def load_csv(path: Path, kind: type) -> list[Any]:
    """Read the rows that `save_csv` wrote, as `kind`."""
    with path.open(newline="", encoding="utf-8") as file:
        types = kind.__annotations__
        return [
            kind(**{key: types[key](value) for key, value in row.items()}) for row in csv.DictReader(file)
        ]

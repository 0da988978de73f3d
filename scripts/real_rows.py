"""Rows of docs/real/*.csv: evaluations, training curves and times of real models, read from outputs/real."""

import csv
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import NamedTuple, TypeVar

from result_files import load_csv, save_csv

from cocos.evaluation.sample_rows import SampleRow
from cocos.files.markdown import markdown_table
from cocos.metrics import NEAR_REPEAT, edit_ratio
from cocos.report.finished_runs import load_runs
from cocos.training.run_log import LOG_FILE, read_log


class Evaluation(NamedTuple):
    """Evaluation over one or more turns.

    `right` and `visible` have a word per turn, `edits` has one per later turn. A word has a character per
    problem, in the order of the file.
    """

    folder: str  # its folder in outputs/real, such as toy/seed0/boost
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


class Point(NamedTuple):
    """Greedy accuracy on the dev problems during training."""

    folder: str  # folder of the model in outputs/real, such as toy/seed0/models/cocos
    update: int  # updates so far
    tokens: int  # sampled tokens so far
    acc_1: float  # accuracy of turn 1, in [0, 1]
    acc_2: float  # accuracy of turn 2; nan if one turn is trained


class StepTime(NamedTuple):
    """Seconds of one step of a track, with its interrupted attempts."""

    folder: str
    step: str
    seconds: int


class Update(NamedTuple):
    """One update of training."""

    folder: str  # folder of the model in outputs/real
    update: int  # number of the update, from 1
    acc_1: float  # accuracy of the batch's first turns, in [0, 1]
    acc_last: float  # the same for the last turn
    repeated_wrong: float  # share of the last turn's programs that repeat a wrong one; nan for one turn
    entropy: float  # nats per token of the last turn
    length: float  # mean tokens of the last turn
    minutes: float = nan  # sampling, execution and gradient; nan in rows of a version that did not count them


class Rows(NamedTuple):
    """All rows, one field per CSV file."""

    evaluations: Sequence[Evaluation] = ()
    curves: Sequence[Point] = ()
    times: Sequence[StepTime] = ()
    updates: Sequence[Update] = ()


KINDS: dict[str, type] = {"evaluations": Evaluation, "curves": Point, "times": StepTime, "updates": Update}
Row = TypeVar("Row", Evaluation, Point, StepTime, Update)


def read_evaluation(folder: Path, name: str) -> Evaluation:
    """Read a finished evaluation.

    Raises:
        ValueError: A problem has no verdict, or samples.jsonl is incomplete.

    """
    run = load_runs([folder])[0]
    if run.metrics["num_scored"] < run.metrics["num_trajectories"]:
        raise ValueError(f"{folder}: problems without a verdict; run test.py again with --resume")
    rows: dict[str, list[SampleRow]] = {}
    for row in run.rows:
        rows.setdefault(row["task_id"], []).append(row)
    turns, problems = range(run.num_turns), rows.values()
    right = [
        "".join(str(sum(row["turns"][t]["is_right"] for row in rows)) for rows in problems) for t in turns
    ]
    visible = ["".join(str(sum(passes_visible(row, t) for row in rows)) for rows in problems) for t in turns]
    samples = len(next(iter(problems)))
    edits = ["".join(edit(rows[0], t) for rows in problems) for t in turns[1:] if samples == 1]
    repeated = run.estimate("repeated_t1_t2").value if run.has_estimate("repeated_t1_t2") else nan
    written = [turn for rows in problems for row in rows for turn in row["turns"] if not turn["is_carried"]]
    tokens = sum(turn["num_completion_tokens"] for turn in written) / (samples * len(problems))
    firsts = [row["turns"][0]["num_completion_tokens"] for rows in problems for row in rows]
    seconds = sum(turn["generation_s"] + turn["execution_s"] for turn in written)
    cells = (samples, " ".join(right), " ".join(visible), " ".join(edits), repeated)
    lengths = (run.metrics["num_truncated"], tokens, sum(firsts) / len(firsts))
    return Evaluation(name, run.record["isolation"], *cells, *lengths, seconds / 60)


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


def read_curve(folder: Path, name: str) -> list[Point]:
    """Read the dev evaluations from the log of a training run."""
    points, tokens = [], 0
    for entry in read_log(folder):
        metrics = entry.get("metrics", {})
        tokens = int(metrics.get("sampled_tokens_total", tokens))
        if "eval_acc_t1" in metrics:
            accuracies = (metrics["eval_acc_t1"], metrics.get("eval_acc_t2", nan))
            points.append(Point(name, entry["step"], tokens, *accuracies))
    return points


def read_updates(folder: Path, name: str) -> list[Update]:
    """Read the curves of an RL run from its log."""
    updates = []
    for entry in read_log(folder):
        metrics = entry.get("metrics", {})
        last = max((t for t in range(1, 10) if f"acc_t{t}" in metrics), default=0)
        if last and "reward_t1" in metrics:
            keys = ("acc_t1", f"acc_t{last}", f"repeated_wrong_t{last - 1}_t{last}")
            keys += (f"entropy_t{last}", f"completion_length_t{last}")
            values = [float(metrics.get(key, nan)) for key in keys]
            updates.append(Update(name, entry["step"], *values, metrics.get("step_time", nan) / 60))
    return updates


def read_times(path: Path, name: str) -> list[StepTime]:
    """Read times.csv of a track; the attempts of an interrupted step are added up."""
    seconds: dict[str, int] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for step, attempt in csv.reader(file):
            seconds[step] = seconds.get(step, 0) + int(attempt)
    return [StepTime(name, step, total) for step, total in seconds.items()]


def collect(outputs: Path) -> Rows:
    """Read every finished evaluation, training log and times.csv in a folder of results."""
    evaluations: list[Evaluation] = []
    for metrics in sorted(outputs.rglob("metrics.json")):
        if not metrics.parent.name.startswith("train-"):  # sampled, to select problems
            name = str(metrics.parent.relative_to(outputs))
            evaluations.append(read_evaluation(metrics.parent, name))
    curves: list[Point] = []
    updates: list[Update] = []
    for log in sorted(outputs.rglob(LOG_FILE)):
        name = str(log.parent.relative_to(outputs))
        curves += read_curve(log.parent, name)
        updates += read_updates(log.parent, name)
    times: list[StepTime] = []
    for path in sorted([*outputs.glob("*/times.csv"), *outputs.glob("*/seed*/times.csv")]):
        times += read_times(path, str(path.parent.relative_to(outputs)))
    return Rows(evaluations, curves, times, updates)


def update_csv(path: Path, kind: type[Row], new: Sequence[Row]) -> list[Row]:
    """Replace the rows of the folders that were read, keep the others; return all as they are in the file."""
    read = {row.folder for row in new}
    old = load_csv(path, kind) if path.exists() else []
    rows = sorted([*new, *(row for row in old if row.folder not in read)], key=lambda row: row.folder)
    if not rows:
        return []
    save_csv(rows, path)
    return load_csv(path, kind)  # numbers are rounded in the file


def outcomes(right: str) -> dict[str, list[bool]]:
    """Return the outcome of each problem as the paired test reads them."""
    return {str(number): [character == "1"] for number, character in enumerate(right)}


def time_table(times: Sequence[StepTime], track: str) -> str:
    """Return the minutes of each step of a track."""
    own = [time for time in times if time.folder.split("/")[0] == track]
    rows = [[time.folder, time.step, f"{time.seconds / 60:.0f}"] for time in own]
    return table_or_command(["track", "step", "minutes"], rows, track)


def table_or_command(header: Sequence[str], rows: Sequence[Sequence[str]], track: str) -> str:
    """Return a table; without rows, the command that makes them."""
    return markdown_table(header, rows) if rows else f"*Not run yet: `TRACK={track} make real`.*"

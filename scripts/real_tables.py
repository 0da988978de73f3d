"""Results of the real model: CSV files in docs/real/ from finished runs, and the tables of docs/real.md.

    python scripts/real_tables.py

scripts/real.sh runs it after each track. It reads what outputs/real contains, keeps the rows of other tracks
and seeds, and names the command in place of a table that has no rows.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import NamedTuple, TypeVar

from result_files import fill, load_csv, save_csv

from cocos.entry_point import run_command
from cocos.files.markdown import markdown_table
from cocos.intervals import Estimate, change, compare, wilson
from cocos.report.finished_runs import load_runs
from cocos.report.tables import format_estimate, format_p_value
from cocos.training.run_log import LOG_FILE, read_log

DOCS = Path(__file__).resolve().parent.parent / "docs"
OUTPUTS = DOCS.parent / "outputs/real"
RESULTS = DOCS / "real"
PAGE = DOCS / "real.md"
SETS = {"mbpp": "MBPP", "humaneval": "HumanEval", "humanevalfix": "HumanEvalFix"}
PROTOCOLS = ("chat", "repair", "cocos-fewshot")


class Evaluation(NamedTuple):
    """Greedy evaluation over two turns."""

    folder: str  # its folder in outputs/real, such as toy/seed0/boost
    isolation: str  # isolation level of the programs
    right_1: str  # a character per problem, in the order of the file: 1 if turn 1 is right, otherwise 0
    right_2: str  # the same for turn 2
    repeated: float  # share of second programs that equal the first, in [0, 1]
    truncated: int  # completions that reached the length limit


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


Row = TypeVar("Row", Evaluation, Point, StepTime)


def read_evaluation(folder: Path, name: str) -> Evaluation:
    """Read a finished evaluation.

    Raises:
        ValueError: A problem has no verdict, or samples.jsonl is incomplete.

    """
    run = load_runs([folder])[0]
    if run.metrics["num_scored"] < run.metrics["num_trajectories"]:
        raise ValueError(f"{folder}: problems without a verdict; run test.py again with --resume")
    first, second = (
        "".join(str(int(right)) for [right] in run.statistics.outcomes(turn).values()) for turn in (0, 1)
    )
    repeated = run.estimate("repeated_t1_t2").value
    return Evaluation(name, run.record["isolation"], first, second, repeated, run.metrics["num_truncated"])


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


def read_times(path: Path, name: str) -> list[StepTime]:
    """Read times.csv of a track; the attempts of an interrupted step are added up."""
    seconds: dict[str, int] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for step, attempt in csv.reader(file):
            seconds[step] = seconds.get(step, 0) + int(attempt)
    return [StepTime(name, step, total) for step, total in seconds.items()]


def collect(outputs: Path) -> dict[type, list]:
    """Read every finished evaluation, training log and times.csv in a folder of results."""
    rows: dict[type, list] = {Evaluation: [], Point: [], StepTime: []}
    for metrics in sorted(outputs.rglob("metrics.json")):
        name = str(metrics.parent.relative_to(outputs))
        if not metrics.parent.name.startswith("train-"):  # sampled, to select problems
            rows[Evaluation].append(read_evaluation(metrics.parent, name))
    for log in sorted(outputs.rglob(LOG_FILE)):
        rows[Point] += read_curve(log.parent, str(log.parent.relative_to(outputs)))
    for times in sorted(outputs.rglob("times.csv")):
        rows[StepTime] += read_times(times, str(times.parent.relative_to(outputs)))
    return rows


def update_csv(path: Path, kind: type[Row], new: Sequence[Row]) -> list[Row]:
    """Replace the rows of the folders that were read, keep the others, and return all."""
    read = {row.folder for row in new}
    old = load_csv(path, kind) if path.exists() else []
    rows = sorted([*new, *(row for row in old if row.folder not in read)], key=lambda row: row.folder)
    if rows:
        save_csv(rows, path)
    return rows


def outcomes(right: str) -> dict[str, list[bool]]:
    """Return the outcome of each problem as the paired test reads them."""
    return {str(number): [character == "1"] for number, character in enumerate(right)}


def accuracy_cells(evaluation: Evaluation) -> list[str]:
    """Return n, acc@1, acc@2, delta, i→c and c→i with their 95 % intervals."""
    first, second, n = evaluation.right_1, evaluation.right_2, len(evaluation.right_1)
    pairs = list(zip(first, second, strict=True))
    estimates: list[Estimate] = [wilson(first.count("1"), n), wilson(second.count("1"), n)]
    estimates.append(change([[int(after) - int(before)] for before, after in pairs]))
    estimates += [wilson(pairs.count(kind), n) for kind in (("0", "1"), ("1", "0"))]
    return [str(n), *map(format_estimate, estimates)]


def base_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the untrained model's results: a row per set and protocol."""
    rows = []
    for data, title in SETS.items():
        for protocol in PROTOCOLS:
            if e := evaluations.get(f"base/{data}-{protocol}"):
                edits = [f"{100 * e.repeated:.1f}", f"{100 * e.truncated / (2 * len(e.right_1)):.1f}"]
                rows.append([title, protocol, *accuracy_cells(e), *edits, e.isolation])
    header = [
        "set",
        "protocol",
        "n",
        "acc@1",
        "acc@2",
        "delta",
        "i→c",
        "c→i",
        "repeated",
        "cut off",
        "isolation",
    ]
    return table_or_command(header, rows, "base")


def trained_table(
    evaluations: Mapping[str, Evaluation], models: Iterable[tuple[str, str]], track: str, suffix: str = ""
) -> str:
    """Return a row per model and seed, with the paired test of acc@2 against the seed's Boost model.

    Args:
        evaluations: All evaluations by folder.
        models: Name of a row, and the evaluation's folder with `{seed}` for the folder of the seed.
        track: The track's name.
        suffix: Beginning of the evaluation's name on the same problems, such as `mbpp-`.

    """
    seeds = sorted({name.split("/")[1] for name in evaluations if name.startswith(f"{track}/")})
    rows = []
    for model, folder in models:
        for seed in seeds:
            evaluation = evaluations.get(folder.format(seed=seed))
            boost = evaluations.get(f"{track}/{seed}/{suffix}boost")
            if evaluation:
                tests = ["", ""]
                if boost and boost is not evaluation:
                    paired = compare(outcomes(boost.right_2), outcomes(evaluation.right_2))
                    tests = [format_estimate(paired.difference), format_p_value(paired.p_value)]
                rows.append([model, seed.removeprefix("seed"), *accuracy_cells(evaluation), *tests])
    header = ["model", "seed", "n", "acc@1", "acc@2", "delta", "i→c", "c→i", "acc@2 - Boost's", "McNemar p"]
    return table_or_command(header, rows, track)


def curve_table(points: Sequence[Point], track: str) -> str:
    """Return dev accuracies by update and sampled tokens, a row per evaluation during training."""
    rows = []
    for point in (point for point in points if point.folder.startswith(f"{track}/")):
        _, seed, _, model = point.folder.split("/")
        second = "" if point.acc_2 != point.acc_2 else f"{100 * point.acc_2:.1f}"  # nan
        cells = [str(point.update), f"{point.tokens / 1000:.0f}", f"{100 * point.acc_1:.1f}", second]
        rows.append([model, seed.removeprefix("seed"), *cells])
    header = ["model", "seed", "updates", "sampled tokens, thousands", "dev acc@1", "dev acc@2"]
    return table_or_command(header, rows, track)


def time_table(times: Sequence[StepTime], track: str) -> str:
    """Return the minutes of each step of a track."""
    own = [time for time in times if time.folder.split("/")[0] == track]
    rows = [[time.folder, time.step, f"{time.seconds / 60:.0f}"] for time in own]
    return table_or_command(["track", "step", "minutes"], rows, track)


def table_or_command(header: Sequence[str], rows: Sequence[Sequence[str]], track: str) -> str:
    """Return a table; without rows, the command that makes them."""
    return markdown_table(header, rows) if rows else f"*Not run yet: `TRACK={track} make real`.*"


def tables(
    evaluated: Sequence[Evaluation], points: Sequence[Point], times: Sequence[StepTime]
) -> dict[str, str]:
    """Return every table of the page by the name in its marker lines."""
    evaluations = {evaluation.folder: evaluation for evaluation in evaluated}
    toy = [("base, three examples", "toy/{seed}/base"), ("Boost", "toy/{seed}/boost")]
    toy += [("CoCoS", "toy/{seed}/cocos"), ("CoCoS, 30 updates", "toy/{seed}/cocos-30")]
    toy += [("single-turn RLOO", "toy/{seed}/single-turn")]
    made = {"base": base_table(evaluations), "toy": trained_table(evaluations, toy, "toy")}
    for data in ("mbpp", "humaneval"):
        models = [("base, three examples", f"base/{data}-cocos-fewshot")]
        models += [
            (title, f"mbpp/{{seed}}/{data}-{name}")
            for title, name in (("Boost", "boost"), ("CoCoS", "cocos"))
        ]
        made[f"mbpp {data}"] = trained_table(evaluations, models, "mbpp", f"{data}-")
    for track in ("toy", "mbpp"):
        made[f"{track} curve"] = curve_table(points, track)
    for track in ("base", "toy", "mbpp"):
        made[f"{track} times"] = time_table(times, track)
    return made


def main() -> None:
    """Update the CSV files from outputs/real, and the page from the CSV files."""
    rows = collect(OUTPUTS)
    evaluations = update_csv(RESULTS / "evaluations.csv", Evaluation, rows[Evaluation])
    points = update_csv(RESULTS / "curves.csv", Point, rows[Point])
    times = update_csv(RESULTS / "times.csv", StepTime, rows[StepTime])
    PAGE.write_text(
        fill(PAGE.read_text(encoding="utf-8"), tables(evaluations, points, times)), encoding="utf-8"
    )
    print(f"written: {PAGE}, {RESULTS}")


if __name__ == "__main__":
    run_command(main)

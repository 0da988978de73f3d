"""The study on the laboratory: every objective, several seeds, one page of numbers and figures.

    python scripts/study.py                 run what is missing, then write the tables and figures
    python scripts/study.py --figures       only write the tables and figures, from the committed CSV files

Each arm and seed is Boost (shared by the arms of a seed), training by train.py and evaluation by test.py, as
configs/toy/study.yaml says. A finished part leaves its metrics.json and is not run again. Results go to
docs/study/results.csv and docs/study/curves.csv, figures beside them, and the table into docs/study.md.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
STUDY = ROOT / "docs" / "study"
PAGE = ROOT / "docs" / "study.md"
BEGIN, END = "<!-- tables: written by scripts/study.py -->", "<!-- end of tables -->"
SPEED = "On the way, on the 100 dev problems, after so many updates:"
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantiles of Student's t by number of seeds
MEASURES = ("acc_1", "acc_2", "delta", "i2c", "c2i")
QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONWARNINGS": "ignore",
    "OMP_WAIT_POLICY": "PASSIVE",
}


class Result(NamedTuple):
    """One arm, one seed, on the held-out problems; shares in [0, 1], NaN where an arm has no second turn.

    `best_of_2` is the share of problems with a right program among two samples, or NaN.
    """

    arm: str
    seed: int
    acc_1: float
    acc_2: float
    delta: float
    i2c: float
    c2i: float
    best_of_2: float


class Point(NamedTuple):
    """Greedy accuracy on the dev problems while an arm trains; updates count over its stages."""

    arm: str
    seed: int
    update: int
    acc_1: float
    acc_2: float


# -- running --


def command(script: str, config: str, **options: Any) -> None:
    """One step of the pipeline as a person would start it; its output goes to a log beside its results."""
    folder = Path(options.get("output_dir") or Path(options["output"]).parent)
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, script, "--config", config]
    for name, value in options.items():
        words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        done = subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **QUIET})
    if done.returncode:
        sys.exit(f"error: {' '.join(words)}\nended with {done.returncode}; see {folder / 'log.txt'}")


def train_boost(seed: int, folder: Path) -> Path:
    """The Boost model of a seed, made once."""
    model = folder / "model"
    if not (model / "config.json").exists():
        rows = folder / "rows.jsonl"
        if not rows.exists():
            command("scripts/make_boost_data.py", "configs/toy/boost_data.yaml", output=rows, seed=seed)
        command(
            "boost/boost_train.py", "configs/toy/boost.yaml", train_data=rows, output_dir=model, seed=seed
        )
    return model


def train_stages(arm: Mapping[str, Any], seed: int, start: Path, folder: Path) -> Path:
    """The model after an arm's stages, each from the one before; a finished stage is not run again."""
    model = start
    for number, options in enumerate(arm.get("stages", []), start=1):
        stage = folder / f"stage{number}"
        if not (stage / "config.json").exists():
            command(
                "train.py",
                "configs/toy/cocos.yaml",
                model_name_or_path=model,
                output_dir=stage,
                seed=seed,
                **options,
            )
        model = stage
    return model


def run_arm(study: Mapping[str, Any], name: str, seed: int, outputs: Path) -> None:
    """Train and evaluate one arm with one seed, unless it is done."""
    arm = study["arms"][name]
    folder = outputs / f"seed{seed}" / slug(name)
    if (folder / "test" / "metrics.json").exists():
        return
    began = time.monotonic()
    boost = train_boost(seed, outputs / f"seed{seed}" / "boost")
    trained = arm.get("model", name)
    model = train_stages(study["arms"][trained], seed, boost, outputs / f"seed{seed}" / slug(trained))
    samples = folder / "test" / "samples.jsonl"
    samples.unlink(missing_ok=True)  # of an evaluation that was cut off
    test = {**study["test"], **arm.get("test", {})}
    command(
        "test.py",
        "configs/toy/eval.yaml",
        model_name_or_path=model,
        output_dir=folder / "test",
        seed=seed,
        **test,
    )
    print(f"seed {seed}  {name}: {time.monotonic() - began:.0f} s", flush=True)


def slug(name: str) -> str:
    """An arm's name as a folder's."""
    return "".join(c if c.isalnum() or c == "." else "-" for c in name.lower()).replace("--", "-")


# -- reading --


def read_result(name: str, seed: int, folder: Path) -> Result:
    """What test.py measured."""
    contents = json.loads((folder / "test" / "metrics.json").read_text(encoding="utf-8"))
    values = {key: estimate["value"] for key, estimate in contents["metrics"].items()}
    nothing = float("nan")
    return Result(
        name,
        seed,
        values["acc_t1"],
        values.get("acc_t2", nothing),
        values.get("delta_t1_t2", nothing),
        values.get("i2c_t1_t2", nothing),
        values.get("c2i_t1_t2", nothing),
        contents["pass_at_k"].get("pass@2_t1", nothing),
    )


def read_curve(name: str, seed: int, folder: Path) -> list[Point]:
    """The dev evaluations of an arm's stages, one after the other."""
    points, before = [], 0
    for stage in sorted(folder.glob("stage*")):
        states = stage.glob("checkpoint-*/trainer_state.json")
        latest = max(states, key=lambda path: int(path.parent.name.rpartition("-")[2]))
        state = json.loads(latest.read_text(encoding="utf-8"))
        for log in state["log_history"]:
            if "eval_acc_t1" in log:
                second = log.get("eval_acc_t2", float("nan"))
                points.append(Point(name, seed, before + log["step"], log["eval_acc_t1"], second))
        before += state["global_step"]
    return points


def save_csv(rows: Sequence[NamedTuple], path: Path) -> None:
    """Named columns, four digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        for row in rows:
            writer.writerow([f"{value:.4f}" if isinstance(value, float) else value for value in row])


def load_csv(path: Path, kind: type) -> list[Any]:
    """The rows that `save_csv` wrote, as `kind`."""
    with path.open(newline="", encoding="utf-8") as file:
        types = kind.__annotations__
        return [
            kind(**{key: types[key](value) for key, value in row.items()}) for row in csv.DictReader(file)
        ]


# -- showing --


class Spread(NamedTuple):
    """Mean over the seeds, and half the width of its 95 % interval (Student's t)."""

    mean: float
    half: float


def spread(values: Sequence[float]) -> Spread:
    """Example: (0.9, 0.8, 0.7) -> 0.8 -+ 4.303 * 0.1 / sqrt(3) = 0.248."""
    half = T_95[len(values)] * stdev(values) / sqrt(len(values)) if len(values) > 1 else float("nan")
    return Spread(mean(values), half)


def by_arm(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Rows under their arm, in the order of the file."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(row.arm, []).append(row)
    return groups


def table(results: Sequence[Result]) -> str:
    """Markdown: one arm a row, percent with half intervals over seeds."""
    lines = ["| arm | acc@1 | acc@2 | delta | i→c | c→i | best of 2 |", "| --- |" + " --- |" * 6]
    for arm, rows in by_arm(results).items():
        cells = [cell([getattr(row, name) for row in rows]) for name in (*MEASURES, "best_of_2")]
        lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_speed(points: Sequence[Point]) -> str:
    """Markdown: dev acc@1 and acc@2 of each trained arm on the way, in percent with half intervals."""
    updates = (5, 10, 15, 30)
    heads = [f"{name} after {update}" for name in ("acc@1", "acc@2") for update in updates]
    lines = ["| arm | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for arm, rows in by_arm(points).items():
        cells = [
            cell([getattr(row, name) for row in rows if row.update == update])
            for name in ("acc_1", "acc_2")
            for update in updates
        ]
        lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(shares: Sequence[float]) -> str:
    """Mean and half interval in percent; nothing where an arm has no such number."""
    if any(map(isnan, shares)):
        return ""
    middle, half = spread(shares)
    return f"{100 * middle:.1f} ± {100 * half:.1f}"


def plot_bars(results: Sequence[Result], path: Path) -> None:
    """acc@1 and acc@2 of every arm, with intervals and each seed as a dot."""
    from matplotlib import pyplot

    groups = by_arm(results)
    figure, axes = pyplot.subplots(figsize=(9, 0.45 * len(groups) + 1.2), layout="constrained")
    for row, (_, results_of_arm) in enumerate(groups.items()):
        last = "acc_2" if isnan(results_of_arm[0].best_of_2) else "best_of_2"
        for offset, name, color in ((-0.19, "acc_1", "tab:blue"), (0.19, last, "tab:orange")):
            values = [100 * getattr(result, name) for result in results_of_arm]
            middle, half = spread(values)
            color = "tab:gray" if name == "best_of_2" else color
            axes.barh(row + offset, middle, 0.36, color=color, alpha=0.75)
            axes.errorbar(middle, row + offset, xerr=half, color="black", capsize=2, linewidth=0.8)
            axes.plot(values, [row + offset] * len(values), ".", color="black", markersize=3)
    axes.set(
        yticks=range(len(groups)), yticklabels=groups, xlim=(0, 105), xlabel="held-out problems solved, %"
    )
    axes.invert_yaxis()
    handles = [
        pyplot.Rectangle((0, 0), 1, 1, color=c, alpha=0.75) for c in ("tab:blue", "tab:orange", "tab:gray")
    ]
    figure.legend(handles, ["turn 1", "turn 2", "either of 2 samples"], loc="outside upper center", ncols=3)
    axes.grid(axis="x", alpha=0.3)
    save(figure, path)


def plot_curves(points: Sequence[Point], path: Path) -> None:
    """Greedy dev accuracy at turn 1 (dashed) and turn 2 (solid), mean over seeds, the seeds' range shaded."""
    from matplotlib import pyplot

    groups = by_arm(points)
    columns = 3
    rows = -(-len(groups) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(11, 2.5 * rows), sharex=True, sharey=True, layout="constrained"
    )
    for axes, (arm, points_of_arm) in zip(grid.flat, groups.items(), strict=False):
        updates = sorted({point.update for point in points_of_arm})
        for name, style, color in (("acc_1", "--", "tab:blue"), ("acc_2", "-", "tab:orange")):
            values = [[100 * getattr(p, name) for p in points_of_arm if p.update == u] for u in updates]
            axes.plot(updates, [mean(v) for v in values], style, color=color, label=name.replace("_", "@"))
            axes.fill_between(
                updates, list(map(min, values)), list(map(max, values)), color=color, alpha=0.15
            )
        axes.set_title(arm, fontsize=10)
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(groups) :]:
        axes.set_visible(False)
    grid.flat[0].legend()
    figure.supxlabel("updates")
    figure.supylabel("dev problems solved, %")
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """As PNG and SVG; the same numbers give the same bytes."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "study"
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    pyplot.close(figure)


def write_page(results: Sequence[Result], points: Sequence[Point], page: Path) -> None:
    """Replace the page's tables by those of these numbers."""
    text = page.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{page}: needs the lines '{BEGIN}' and '{END}', between which the table goes")
    page.write_text(
        f"{before}{BEGIN}\n{table(results)}\n\n{SPEED}\n\n{table_of_speed(points)}\n{END}{after}",
        encoding="utf-8",
    )


def main() -> None:
    """Run what is missing, then show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", type=Path, default=ROOT / "configs/toy/study.yaml", help="arms and seeds")
    parser.add_argument(
        "--output_dir", type=Path, default=ROOT / "outputs/study", help="models, logs, evaluations"
    )
    parser.add_argument("--figures", action="store_true", help="run nothing; show the committed CSV files")
    options = parser.parse_args()
    if not options.figures:
        study = yaml.safe_load(options.config.read_text(encoding="utf-8"))
        results, curves = [], []
        for seed in study["seeds"]:
            for name in study["arms"]:
                run_arm(study, name, seed, options.output_dir)
        for name in study["arms"]:
            for seed in study["seeds"]:
                folder = options.output_dir / f"seed{seed}" / slug(name)
                results.append(read_result(name, seed, folder))
                curves += read_curve(name, seed, folder)
        save_csv(results, STUDY / "results.csv")
        save_csv(curves, STUDY / "curves.csv")
    import matplotlib

    matplotlib.use("Agg")
    results, curves = load_csv(STUDY / "results.csv", Result), load_csv(STUDY / "curves.csv", Point)
    plot_bars(results, STUDY / "bars")
    plot_curves(curves, STUDY / "curves")
    write_page(results, curves, PAGE)
    print(table(results))


if __name__ == "__main__":
    main()

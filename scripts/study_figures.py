"""Tables and figures of the study, made from its CSV files: docs/study.md, docs/study/*.png and *.svg.

study.py runs the arms and calls show(). The figures depend on the committed CSV files only.
"""

from collections.abc import Iterable, Sequence
from math import isnan, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from result_files import load_csv

from cocos.files.markdown import markdown_table

DOCS = Path(__file__).resolve().parent.parent / "docs"
STUDY = DOCS / "study"
PAGE = DOCS / "study.md"
BEGIN, END = "<!-- tables: written by scripts/study.py -->", "<!-- end of tables -->"
SPEED = "Dev problems solved during training, in percent, after so many updates:"
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantiles of Student's t by number of seeds
MEASURES = ("acc_1", "acc_2", "delta", "i2c", "c2i", "best_of_2")
UPDATES = (5, 10, 15, 30)  # columns of the table of dev accuracy


class Result(NamedTuple):
    """Measurements of one arm with one seed on the held-out problems.

    Shares in [0, 1]; NaN where an arm has no second turn. `best_of_2` is the share of problems that at least
    one of two samples solves, or NaN.
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
    """Greedy accuracy on the dev problems during training; updates are counted across stages."""

    arm: str
    seed: int
    update: int
    acc_1: float
    acc_2: float


class Spread(NamedTuple):
    """Mean over the seeds, and half the width of its 95 % confidence interval (Student's t)."""

    mean: float
    half: float


def spread(values: Sequence[float]) -> Spread:
    """Return mean and half-width, for example (0.9, 0.8, 0.7) -> 0.8 and 4.303 * 0.1 / sqrt(3) = 0.248."""
    half = T_95[len(values)] * stdev(values) / sqrt(len(values)) if len(values) > 1 else float("nan")
    return Spread(mean(values), half)


def by_arm(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Group rows by arm, in the order of the file."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(row.arm, []).append(row)
    return groups


def table(results: Sequence[Result]) -> str:
    """Return a Markdown table of the results: one row per arm, in percent with half-widths over the seeds."""
    rows = [
        [arm, *(cell([getattr(row, name) for row in rows]) for name in MEASURES)]
        for arm, rows in by_arm(results).items()
    ]
    return markdown_table(["arm", "acc@1", "acc@2", "delta", "i→c", "c→i", "best of 2"], rows)


def table_of_speed(points: Sequence[Point]) -> str:
    """Return a Markdown table of dev accuracy during training: one row per trained arm, as in `table`."""
    header = ["arm", *(f"{name} after {update}" for name in ("acc@1", "acc@2") for update in UPDATES)]
    rows = []
    for arm, points_of_arm in by_arm(points).items():
        cells = [
            cell([getattr(point, name) for point in points_of_arm if point.update == update])
            for name in ("acc_1", "acc_2")
            for update in UPDATES
        ]
        rows.append([arm, *cells])
    return markdown_table(header, rows)


def cell(shares: Sequence[float]) -> str:
    """Return mean and half-width in percent, or "" if a number is missing."""
    if any(map(isnan, shares)):
        return ""
    middle, half = spread(shares)
    return f"{100 * middle:.1f} ± {100 * half:.1f}"


def plot_bars(results: Sequence[Result], path: Path) -> None:
    """Draw acc@1 and acc@2 of every arm, with intervals and a dot per seed."""
    from matplotlib import pyplot

    groups = by_arm(results)
    figure, axes = pyplot.subplots(figsize=(9, 0.45 * len(groups) + 1.2), layout="constrained")
    for row, results_of_arm in enumerate(groups.values()):
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
    """Draw dev accuracy of turn 1 (dashed) and turn 2 (solid): the mean over seeds, their range shaded."""
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
    """Write a figure as PNG and SVG; the same numbers give the same bytes."""
    import matplotlib
    from matplotlib import pyplot

    # The fixed salt makes SVG ids reproducible. The metadata options leave out date and software version.
    matplotlib.rcParams["svg.hashsalt"] = "study"
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    pyplot.close(figure)


def write_page(results: Sequence[Result], points: Sequence[Point], page: Path) -> None:
    """Replace the tables between the two marker lines of the page.

    Raises:
        ValueError: The page lacks a marker line. It is left unchanged.

    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page}: needs the lines '{BEGIN}' and '{END}', between which the table goes")
    page.write_text(
        f"{before}{BEGIN}\n{table(results)}\n\n{SPEED}\n\n{table_of_speed(points)}\n{END}{after}",
        encoding="utf-8",
    )


def show() -> str:
    """Draw the figures and write the page's tables from the CSV files; return the table of results."""
    import matplotlib

    matplotlib.use("Agg")
    results, curves = load_csv(STUDY / "results.csv", Result), load_csv(STUDY / "curves.csv", Point)
    plot_bars(results, STUDY / "bars")
    plot_curves(curves, STUDY / "curves")
    write_page(results, curves, PAGE)
    return table(results)

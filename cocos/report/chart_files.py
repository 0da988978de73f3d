"""The charts of a report as PNG and SVG files. `charts` draws them."""

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cocos.report import charts
from cocos.report.chart_texts import GRID, INK
from cocos.report.equal_tokens import equal_token_comparisons
from cocos.report.finished_runs import FinishedRun, group_by_conditions
from cocos.report.tables import has_pass_at_k

SIZE = (4.4, 2.7)  # inches without the legend; the text of a larger chart would be unreadable on a phone
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text, not outlines: smaller files, and a browser can search the text
    "text.parse_math": False,  # names and exceptions can contain dollar signs, which would start a formula
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def draw_charts(runs: Sequence[FinishedRun], folder: Path | None = None) -> dict[tuple[str, str], str]:
    """Draw every chart for which the runs have numbers.

    Args:
        folder: Where they are saved, too; None: nowhere, which takes half of the time.

    Returns:
        (chart, name of the run) -> SVG element; for "accuracy", (chart, conditions) -> SVG element.

    """
    svgs: dict[tuple[str, str], str] = {}

    def save(chart: str, name: str, draw: Callable[..., None], *what: object) -> None:
        file_name = _file_name((chart, name), runs)
        svgs[chart, name] = draw_chart(lambda axes: draw(axes, *what), file_name, folder)

    for conditions, group in group_by_conditions(runs).items():
        save("accuracy", conditions, charts.draw_accuracy, group)
    # All runs share one list of error types, so that a colour means the same in every chart.
    error_types = charts.most_frequent_errors(runs)
    for run in runs:
        statistics = run.statistics
        if run.num_turns > 1:
            save("flow", run.name, charts.draw_flow, run)
            save("problems", run.name, charts.draw_problems, run)
        save("errors", run.name, charts.draw_errors, run, error_types)
        if any(name in rates for rates in run.metrics["fix_rates"].values() for name in error_types):
            save("fix_rates", run.name, charts.draw_fix_rates, run, error_types)
        if has_pass_at_k(run):
            save("pass_at_k", run.name, charts.draw_pass_at_k, run)
        save("costs", run.name, charts.draw_costs, run)
        for name, values_T, quantity, item in (
            ("tokens", statistics.tokens_T, "tokens", "completion"),
            ("generation", statistics.generation_s_T, "seconds of generation", "completion"),
            ("execution", statistics.execution_s_T, "seconds of execution", "program"),
        ):
            what = (values_T, f"{quantity} per {item}", f"{item}s", name != "tokens")
            save(name, run.name, charts.draw_histogram, *what)
    for comparison in equal_token_comparisons(runs):
        save("equal_tokens", comparison.run.name, charts.draw_equal_tokens, comparison)
    return svgs


def save_overview(runs: Sequence[FinishedRun], path: Path) -> None:
    """Save one image with the accuracy per turn and, if there are several, the changes between turns."""

    def draw(left: Axes, right: Axes | None = None) -> None:
        charts.draw_accuracy(left, runs)
        if right is not None:
            charts.draw_changes(right, runs)

    num_axes = 2 if max(run.num_turns for run in runs) > 1 else 1
    draw_chart(draw, path.name, path.parent, size=(5 * num_axes, 4), num_axes=num_axes)


def draw_chart(
    draw: Callable[..., None],
    name: str,
    folder: Path | None,
    size: tuple[float, float] = SIZE,
    num_axes: int = 1,
) -> str:
    """Draw a chart and return it as an SVG element with a transparent background.

    Args:
        draw: Function that takes the axes, from left to right, and draws into them.
        name: Name of the files, without the suffixes .png and .svg.
        folder: Where the chart is saved as PNG and SVG, too; None: nowhere.
        size: Width and height in inches.

    """
    # The salt makes the ids within each SVG unique, so that one page can contain several.
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(*figure.subplots(1, num_axes, squeeze=False)[0])
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / f"{name}.png", dpi=150)
            figure.set_layout_engine("none")  # the axes stay where they are
        svg = io.StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    if folder:
        (folder / f"{name}.svg").write_text(svg.getvalue(), encoding="utf-8")
    return svg.getvalue()[svg.getvalue().index("<svg") :]


def _file_name(key: tuple[str, str], runs: Sequence[FinishedRun]) -> str:
    """Return `flow` if there is one run, else `flow-NAME` with `-` for characters unfit for a file name."""
    chart, name = key
    return chart if len(runs) == 1 or not name else f"{chart}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"

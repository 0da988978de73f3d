"""The charts of a report as PNG and SVG files. `charts` draws them."""

import io
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cocos.report import charts
from cocos.report.chart_style import GRID, INK
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


def save_charts(runs: Sequence[FinishedRun], folder: Path) -> dict[tuple[str, str], str]:
    """Draw and save every chart for which the runs have numbers.

    Returns:
        (chart, name of the run) -> SVG element; for "accuracy", (chart, conditions) -> SVG element.

    """
    draw_functions: dict[tuple[str, str], Callable[..., None]] = {}
    for conditions, group in group_by_conditions(runs).items():
        draw_functions["accuracy", conditions] = partial(charts.draw_accuracy, runs=group)
    # All runs share one list of error types, so that a colour means the same in every chart.
    error_types = charts.most_frequent_errors(runs)
    for run in runs:
        statistics = run.statistics
        if run.num_turns > 1:
            draw_functions["flow", run.name] = partial(charts.draw_flow, run=run)
            draw_functions["problems", run.name] = partial(charts.draw_problems, run=run)
        draw_functions["errors", run.name] = partial(charts.draw_errors, run=run, error_types=error_types)
        if any(name in rates for rates in run.metrics["fix_rates"].values() for name in error_types):
            draw_functions["fix_rates", run.name] = partial(
                charts.draw_fix_rates, run=run, error_types=error_types
            )
        if has_pass_at_k(run):
            draw_functions["pass_at_k", run.name] = partial(charts.draw_pass_at_k, run=run)
        for name, values_T, quantity, item in (
            ("tokens", statistics.tokens_T, "tokens", "completion"),
            ("generation", statistics.generation_s_T, "seconds of generation", "completion"),
            ("execution", statistics.execution_s_T, "seconds of execution", "program"),
        ):
            draw_functions[name, run.name] = partial(
                charts.draw_histogram,
                values_T=values_T,
                title=f"{quantity} per {item}",
                ylabel=f"{item}s",
                is_log=name != "tokens",
            )
    for comparison in equal_token_comparisons(runs):
        draw_functions["equal_tokens", comparison.run.name] = partial(
            charts.draw_equal_tokens, comparison=comparison
        )
    return {key: save_chart(draw, folder / _file_name(key, runs)) for key, draw in draw_functions.items()}


def save_overview(runs: Sequence[FinishedRun], path: Path) -> None:
    """Save one image with the accuracy per turn and, if there are several, the changes between turns."""

    def draw(left: Axes, right: Axes | None = None) -> None:
        charts.draw_accuracy(left, runs)
        if right is not None:
            charts.draw_changes(right, runs)

    num_axes = 2 if max(run.num_turns for run in runs) > 1 else 1
    save_chart(draw, path, size=(5 * num_axes, 4), num_axes=num_axes)


def save_chart(
    draw: Callable[..., None], path: Path, size: tuple[float, float] = SIZE, num_axes: int = 1
) -> str:
    """Draw a chart and save it as PNG and as SVG with a transparent background.

    Args:
        draw: Function that takes the axes, from left to right, and draws into them.
        path: Path of the files without the suffixes .png and .svg.
        size: Width and height in inches.
        num_axes: Number of axes.

    Returns:
        The SVG element.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The salt makes the ids within each SVG unique, so that one page can contain several.
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": path.name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(*figure.subplots(1, num_axes, squeeze=False)[0])
        figure.savefig(path.with_name(path.name + ".png"), dpi=150)
        figure.set_layout_engine("none")  # the axes stay where they are
        svg = io.StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    path.with_name(path.name + ".svg").write_text(svg.getvalue(), encoding="utf-8")
    return svg.getvalue()[svg.getvalue().index("<svg") :]


def _file_name(key: tuple[str, str], runs: Sequence[FinishedRun]) -> str:
    """Return `flow` if there is one run, else `flow-NAME` with `-` for characters unfit for a file name."""
    chart, name = key
    return chart if len(runs) == 1 or not name else f"{chart}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"

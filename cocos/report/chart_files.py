"""The charts of a report: which there are, and how they are saved as PNG and SVG."""

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
from cocos.report.charts import GRID, INK
from cocos.report.finished_runs import Run, by_aids

SIZE = (4.4, 2.9)  # inches: small enough to be read on a phone without being scaled down
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
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


def save_charts(runs: Sequence[Run], folder: Path) -> dict[tuple[str, str], str]:
    """Draw and save every chart that the runs have numbers for.

    Returns:
        (chart, name of the run or what helped) -> SVG element.

    """
    wanted: dict[tuple[str, str], Callable[..., None]] = {}
    for aids, group in by_aids(runs).items():
        wanted["accuracy", aids] = partial(charts.accuracy, runs=group)
    for run in runs:
        observed = run.observed
        if run.num_turns > 1:
            wanted["flow", run.name] = partial(charts.flow, run=run)
        wanted["errors", run.name] = partial(charts.errors, run=run, kinds=charts.commonest_errors(runs))
        if len(run.metrics["pass_at_k"]) > run.num_turns:
            wanted["pass_at_k", run.name] = partial(charts.pass_at_k, run=run)
        for name, values_T, unit in (
            ("tokens", observed.tokens_T, "answers by tokens"),
            ("generation", observed.generation_s_T, "answers by seconds of generation"),
            ("execution", observed.execution_s_T, "programs by seconds of execution"),
        ):
            wanted[name, run.name] = partial(
                charts.histogram, values_T=values_T, label=unit, is_log=name != "tokens"
            )
    return {key: save(draw, folder / _file_name(key, runs)) for key, draw in wanted.items()}


def save_overview(runs: Sequence[Run], path: Path) -> None:
    """Accuracy per turn, and beside it what changed between turns: the picture for a README."""

    def draw(left: Axes, right: Axes) -> None:
        charts.accuracy(left, runs)
        charts.changes(right, runs)

    save(draw, path, size=(10, 4), num_axes=2)


def save(draw: Callable[..., None], path: Path, size: tuple[float, float] = SIZE, num_axes: int = 1) -> str:
    """Draw into axes beside each other, save as `path` with .png and .svg, and return the SVG element, whose
    background is transparent.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The salt makes the names inside an SVG its own, so that several can stand in one page.
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": path.name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(*figure.subplots(1, num_axes, squeeze=False)[0])
        figure.savefig(path.with_name(path.name + ".png"), dpi=150)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    path.with_name(path.name + ".svg").write_text(svg.getvalue(), encoding="utf-8")
    return svg.getvalue()[svg.getvalue().index("<svg") :]


def _file_name(key: tuple[str, str], runs: Sequence[Run]) -> str:
    """`flow` where there is one run, else `flow-NAME` with what a file's name can hold."""
    chart, name = key
    return chart if len(runs) == 1 or not name else f"{chart}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"

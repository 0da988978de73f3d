"""Style of every chart: colours, legends, axes, and figures as SVG elements and as files."""

import io
from collections.abc import Callable
from math import ceil, nan
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import ScaledTranslation

from cocos.intervals import Estimate

INK, GRID = "#2b2f36", "#c9ced6"
RIGHT, WRONG = "#1a936f", "#c8553d"
RUN_COLOURS = (
    *("#3066be", "#e08e1b", "#8e5bb5", "#1a936f", "#c8553d"),
    *("#5c6b7a", "#d6679a", "#3fa7c4", "#8a6d3b", "#9aa836"),
)
LINE_STYLES = ("-", "--", ":")  # for runs of one colour
TURN_COLOURS = ("#2b63c1", "#9cc3ee", "#f0b35a", "#a8541b")  # first to last turn, with shades between them
ERROR_COLOURS = ("#c8553d", "#e08e1b", "#8e5bb5", "#3066be", "#d6679a", "#7d8794")
SIZE = (4.4, 2.7)  # inches without the legend; the text of a larger chart would be unreadable on a phone
LEGEND_LINE, LEGEND_GAP = 0.17, 0.48  # inches; the gap is that of the axis' numbers and its label
CHARACTERS_PER_INCH = 14  # of a legend; each entry has 5 for its key and the gap
MAX_LABEL = 44  # characters of a legend's line; the narrowest chart has room for one such entry
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
    "legend.loc": "upper center",
    "legend.borderaxespad": 0,
    "legend.handlelength": 1.2,
    "legend.columnspacing": 1.2,
    "lines.markersize": 4,
}


def svg_element(draw: Callable[[Axes], str], name: str) -> Markup:
    """Return a chart as an SVG element in the page's colours, which follow its light or dark scheme.

    Args:
        draw: Draws into the axes, and returns the text for readers who do not see the chart.
        name: Unique name on the page.

    """
    svg = io.StringIO()
    # The salt makes the ids within each SVG unique, so that one page can contain several.
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=SIZE, layout="constrained")
        label = escape(draw(figure.subplots()))
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    element = svg.getvalue()[svg.getvalue().index("<svg") :]
    coloured = element.replace(INK, "var(--ink)").replace(GRID, "var(--line)")
    return Markup(coloured.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))


def save_figure(draw: Callable[[Figure], object], path: Path, size: tuple[float, float] = SIZE) -> None:
    """Save a figure, in the format of the path's suffix; `size` is in inches, without the legends."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(path, dpi=150)


def add_legend_below(axes: Axes) -> None:
    """Add the legend below the axes, where it covers nothing, and make the figure higher by its height."""
    handles, labels = axes.get_legend_handles_labels()
    labels = [fill(label, MAX_LABEL) for label in labels]
    figure = axes.get_figure(root=True)
    spec = axes.get_subplotspec()
    assert figure is not None and spec is not None
    width = figure.get_figwidth() * len(spec.colspan) / spec.get_gridspec().ncols
    longest = max(min(len(label), MAX_LABEL) for label in labels)
    num_columns = max(1, min(len(labels), int(CHARACTERS_PER_INCH * width / (longest + 5))))
    num_lines = [label.count("\n") + 1 for label in labels]
    num_rows = ceil(len(labels) / num_columns)  # a column is filled before the next one
    height = max(sum(num_lines[i : i + num_rows]) for i in range(0, len(labels), num_rows))
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * height)
    below = axes.transAxes + ScaledTranslation(0, -LEGEND_GAP, figure.dpi_scale_trans)
    axes.legend(handles, labels, ncols=num_columns, bbox_to_anchor=(0.5, 0), bbox_transform=below)


def run_colour(number: int) -> str:
    """Return the colour of a run, counted from 0."""
    return RUN_COLOURS[number % len(RUN_COLOURS)]


def line_style(number: int) -> str:
    """Return the style of a run's line; it tells runs of one colour apart."""
    return LINE_STYLES[number // len(RUN_COLOURS) % len(LINE_STYLES)]


def turn_colours(num_turns: int) -> list[str]:
    """Return one colour per turn, in the order of TURN_COLOURS; every colour is another one."""
    shades = LinearSegmentedColormap.from_list("turns", TURN_COLOURS)
    return [to_hex(shades(t / max(1, num_turns - 1))) for t in range(num_turns)]


def error_bar(estimate: Estimate) -> tuple[float, float]:
    """Return the lengths of an error bar below and above the value; matplotlib draws none for NaN."""
    value, low, high = estimate
    return (nan, nan) if low is None or high is None else (value - low, high - value)


def format_share_axis(
    axes: Axes, title: str, xlabel: str, ylim: tuple[float, float] = (0.0, 1.0), **properties: object
) -> None:
    """Give the y axis the range of a share, or a part of it, in percent; set the other properties."""
    axes.set(ylim=(ylim[0] - 0.02, ylim[1] + 0.02), title=title, xlabel=xlabel, **properties)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(axis="y", linewidth=0.6)

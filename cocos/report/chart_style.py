"""Colours, legends and axes that the charts of a report share."""

from math import ceil, nan
from textwrap import fill
from typing import cast

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import Locator, LogLocator, MaxNLocator, PercentFormatter

from cocos.intervals import Estimate

RIGHT, WRONG = "#1a936f", "#c8553d"
RUN_COLOURS = (
    *("#3066be", "#e08e1b", "#8e5bb5", "#1a936f", "#c8553d"),
    *("#5c6b7a", "#d6679a", "#3fa7c4", "#8a6d3b", "#9aa836"),
)
LINE_STYLES = ("-", "--", ":")
TURN_COLOURS = ("#2b63c1", "#9cc3ee", "#f0b35a", "#a8541b")  # first to last turn, with shades between them
ERROR_COLOURS = ("#c8553d", "#e08e1b", "#8e5bb5", "#3066be", "#d6679a", "#7d8794")
LEGEND_LINE = 0.17  # inches
CHARACTERS_PER_INCH = 14  # of a legend; each entry has 5 for its key and the gap
MAX_LABEL = 44  # characters of a legend's line; the narrowest chart has room for one such entry


def log_ticks(ratio: float) -> Locator:
    """Return the ticks of a logarithmic axis whose ends have this ratio, so that every axis has several."""
    if ratio < 3:
        return MaxNLocator(4)
    return LogLocator(subs=(1.0, 2.0, 3.0, 5.0) if ratio < 30 else (1.0, 3.0), numticks=8)


def add_legend_below(axes: Axes) -> None:
    """Add the legend below the axes, where it covers nothing, and make the figure higher by its height."""
    handles, labels = axes.get_legend_handles_labels()
    labels = [fill(label, MAX_LABEL) for label in labels]
    figure = cast(Figure, axes.figure)
    longest = max(min(len(label), MAX_LABEL) for label in labels)
    num_columns = max(1, min(len(labels), int(CHARACTERS_PER_INCH * figure.get_figwidth() / (longest + 5))))
    num_lines = [label.count("\n") + 1 for label in labels]
    num_rows = ceil(len(labels) / num_columns)  # a column is filled before the next one
    height = max(sum(num_lines[i : i + num_rows]) for i in range(0, len(labels), num_rows))
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * height)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=num_columns, handlelength=1.2, columnspacing=1.2
    )


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


def format_share_axis(axes: Axes, **labels: object) -> None:
    """Give the y axis the range of a share, in percent, and set the axes' title and labels."""
    axes.set(ylim=(-0.02, 1.02), **labels)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(axis="y", linewidth=0.6)

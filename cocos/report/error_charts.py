"""Charts of the errors of finished runs, each drawn into matplotlib axes."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from cocos.report.cells import printable_error_type
from cocos.report.chart_style import ERROR_COLOURS, RIGHT, add_legend_below, error_bar, turn_colours
from cocos.report.finished_runs import FinishedRun
from cocos.statistics import wilson


def most_frequent_errors(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the error types that have their own colour in the charts of these runs."""
    totals: dict[str, int] = {}
    for run in runs:
        for counts in run.metrics["errors"]:
            for error_type, count in counts.items():
                totals[error_type] = totals.get(error_type, 0) + count
    return sorted(totals, key=lambda error_type: -totals[error_type])[: len(ERROR_COLOURS) - 1]


def draw_errors(axes: Axes, run: FinishedRun, error_types: Sequence[str]) -> None:
    """Draw one bar per turn: the shares of right programs, of each error type, and of all other errors."""
    counts_T, n = run.metrics["errors"], run.metrics["num_scored"]
    rows = [("right", RIGHT, [n - sum(counts.values()) for counts in counts_T])]
    for error_type, colour in zip(error_types, ERROR_COLOURS, strict=False):
        label = printable_error_type(error_type)
        rows.append((label, colour, [counts.get(error_type, 0) for counts in counts_T]))
    others = [sum(counts.values()) - sum(counts.get(name, 0) for name in error_types) for counts in counts_T]
    rows.append(("other", ERROR_COLOURS[-1], others))
    turns, left = range(1, run.num_turns + 1), [0.0] * run.num_turns
    for label, colour, counts in rows:
        if any(counts):
            shares = [count / n for count in counts]
            axes.barh(turns, shares, left=left, color=colour, label=label, height=0.7)
            left = [a + b for a, b in zip(left, shares, strict=True)]
    axes.set(title="results of each turn", ylabel="turn", yticks=turns, xlim=(0, 1))
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    add_legend_below(axes)


def draw_fix_rates(axes: Axes, run: FinishedRun, error_types: Sequence[str]) -> None:
    """Draw, per error type, the share of its programs that the next turn repaired, with 95 % intervals.

    There is one point per pair of consecutive turns in which the error occurs.
    """
    rates = run.metrics["fix_rates"]
    shown = [name for name in error_types if any(name in rates.get(str(pair), {}) for pair in run.turn_pairs)]
    colours = turn_colours(len(run.turn_pairs))
    for number, (pair, colour) in enumerate(zip(run.turn_pairs, colours, strict=True)):
        rows = {name: rate for name, rate in rates.get(str(pair), {}).items() if name in shown}
        if rows:
            estimates = [wilson(rate["fixed"], rate["failed"]) for rate in rows.values()]
            shift = 0.6 * ((number + 0.5) / len(run.turn_pairs) - 0.5)
            axes.errorbar(
                [estimate.value for estimate in estimates],
                [shown.index(name) + shift for name in rows],
                xerr=list(zip(*map(error_bar, estimates), strict=True)),
                fmt="o",
                markersize=4,
                capsize=2.5,
                color=colour,
                label=f"turn {pair.before} to {pair.after}",
            )
    num_failed = [
        sum(rates.get(str(pair), {}).get(name, {"failed": 0})["failed"] for pair in run.turn_pairs)
        for name in shown
    ]
    labels = [f"{printable_error_type(name)}\nn = {n}" for name, n in zip(shown, num_failed, strict=True)]
    axes.set(title="repaired by the next turn", xlim=(-0.02, 1.02))
    axes.set_yticks(range(len(shown)), labels)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(axis="x", linewidth=0.6)
    add_legend_below(axes)

"""Charts of finished runs, each drawn into matplotlib axes.

`chart_files.STYLE` keeps matplotlib from parsing names and exceptions as mathematics.
"""

from collections.abc import Sequence
from itertools import groupby
from math import ceil
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from cocos.report.chart_style import (
    ERROR_COLOURS,
    RIGHT,
    WRONG,
    add_legend_below,
    error_bar,
    format_share_axis,
    line_style,
    log_ticks,
    run_colour,
    turn_colours,
)
from cocos.report.chart_texts import INK
from cocos.report.equal_tokens import EqualTokens
from cocos.report.finished_runs import FinishedRun
from cocos.report.tables import printable_error_type

NUM_BINS = 24


def draw_accuracy(axes: Axes, runs: Sequence[FinishedRun]) -> None:
    """Draw acc@t with 95 % intervals, one line per run."""
    for number, run in enumerate(runs):
        estimates = [run.estimate(f"acc_t{turn}") for turn in range(1, run.num_turns + 1)]
        # Beside each other, because error bars on top of each other cannot be told apart.
        shift = 0.3 * ((number + 0.5) / len(runs) - 0.5)
        axes.errorbar(
            [turn + shift for turn in range(1, run.num_turns + 1)],
            [estimate.value for estimate in estimates],
            yerr=list(zip(*map(error_bar, estimates), strict=True)),
            marker="o",
            markersize=4,
            capsize=2.5,
            color=run_colour(number),
            linestyle=line_style(number),
            label=run.label,
        )
    num_turns = max(run.num_turns for run in runs)
    format_share_axis(axes, title="accuracy after each turn", xlabel="turn", xticks=range(1, num_turns + 1))
    axes.set_xlim(0.7, num_turns + 0.3)
    if len(runs) > 1:
        add_legend_below(axes)


def draw_changes(axes: Axes, runs: Sequence[FinishedRun]) -> None:
    """Draw i->c upwards and c->i downwards: per pair of consecutive turns, one bar per run.

    The colours are those of `draw_accuracy`, whose legend names them.
    """
    num_turns = max(run.num_turns for run in runs)
    width, has_changes = 0.8 / len(runs), False
    for number, run in enumerate(runs):
        positions = [pair.before + width * (number + 0.5 - len(runs) / 2) for pair in run.turn_pairs]
        i2c, c2i = (
            [run.estimate(f"{name}_{pair}").value for pair in run.turn_pairs] for name in ("i2c", "c2i")
        )
        has_changes |= any(i2c) or any(c2i)
        axes.bar(positions, i2c, width, color=run_colour(number))
        axes.bar(positions, [-share for share in c2i], width, color=run_colour(number), alpha=0.5)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(
        title="repaired (i→c, up) and spoilt (c→i, down)",
        xlabel="turns",
        ylabel="share of trajectories",
        xlim=(0.4, num_turns - 0.4),
    )
    axes.set_xticks(range(1, num_turns), [f"{turn} to {turn + 1}" for turn in range(1, num_turns)])
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * abs(share):.3g}%")
    if not has_changes:
        axes.text(0.5, 0.75, "no program was repaired or spoilt", ha="center", transform=axes.transAxes)


def draw_pass_at_k(axes: Axes, run: FinishedRun) -> None:
    """Draw pass@k over k, one line per turn."""
    values, ks = run.metrics["pass_at_k"], run.pass_at_k_sizes
    for turn, colour in enumerate(turn_colours(run.num_turns), start=1):
        shares = [values[f"pass@{k}_t{turn}"] for k in ks]
        axes.plot(ks, shares, marker="o", markersize=4, color=colour, label=f"turn {turn}")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    format_share_axis(axes, title="pass@k", xlabel="samples per problem (k)", xticks=ks)
    axes.minorticks_off()
    add_legend_below(axes)


def draw_flow(axes: Axes, run: FinishedRun) -> None:
    """Draw how problems move between right (above) and wrong (below) from turn to turn.

    Heights are shares of problems. Strong bands show changes, pale bands programs that stay right or wrong.
    """
    width, gap = 0.12, 0.08  # of a turn's bar, and between its right and its wrong part
    right_T = [run.estimate(f"acc_t{turn}").value for turn in range(1, run.num_turns + 1)]
    for t, right in enumerate(right_T):
        for bottom, share, colour in ((1 - right + gap, right, RIGHT), (0.0, 1 - right, WRONG)):
            axes.add_patch(Rectangle((t - width / 2, bottom), width, share, color=colour, linewidth=0))
        axes.text(t, 1 + gap + 0.02, f"{right:.0%}", ha="center", va="bottom", color=RIGHT)
        axes.text(t, -0.02, f"{1 - right:.0%}", ha="center", va="top", color=WRONG)
    for t, pair in enumerate(run.turn_pairs):
        i2c, c2i = run.estimate(f"i2c_{pair}").value, run.estimate(f"c2i_{pair}").value
        # Lower edges of the upper parts (right programs). Changes are drawn next to the other part.
        before, after = 1 - right_T[t] + gap, 1 - right_T[t + 1] + gap
        still_right, still_wrong = right_T[t] - c2i, 1 - right_T[t] - i2c
        ends = (t + width / 2, t + 1 - width / 2)
        _draw_band(axes, ends, (before + c2i, after + i2c), still_right, RIGHT, 0.25)
        _draw_band(axes, ends, (0.0, 0.0), still_wrong, WRONG, 0.18)
        _draw_band(axes, ends, (before, still_wrong), c2i, WRONG, 0.65)
        _draw_band(axes, ends, (still_wrong, after), i2c, RIGHT, 0.65)
    axes.set(xlim=(-0.25, run.num_turns - 0.75), ylim=(-0.12, 1.12 + gap), yticks=[])
    axes.set_xticks(range(run.num_turns), [str(t + 1) for t in range(run.num_turns)])
    axes.set_xlabel("turn")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("right and wrong programs from turn to turn")


def draw_problems(axes: Axes, run: FinishedRun) -> None:
    """Draw which problems are solved after each turn: one column per problem, one row per turn.

    With several samples, the strength of the colour is the share of right ones.
    """
    problems = list(run.statistics.right_K_T.values())
    axes.set(
        title="solved problems after each turn", xlabel="problem, in the order of the rows", ylabel="turn"
    )
    # One path for each colour, whatever the number of problems: the report's page stays small.
    parts: dict[float, list[Outline]] = {}
    for t in range(run.num_turns):
        shares = [mean(right_T[t] for right_T in right_K_T) for right_K_T in problems]
        axes.barh(t + 1, len(problems), height=0.8, color=WRONG, alpha=0.18)
        left = 0
        for share, equal in groupby(shares):
            right = left + len(list(equal))
            corners = [(left, t + 0.6), (right, t + 0.6), (right, t + 1.4), (left, t + 1.4)]
            if share:
                parts.setdefault(share, []).append(Outline([*corners, corners[0]], closed=True))
            left = right
    for share, rectangles in parts.items():
        outline = Outline.make_compound_path(*rectangles)
        axes.add_patch(PathPatch(outline, color=RIGHT, alpha=share, linewidth=0))
    axes.set(xlim=(0, max(1, len(problems))), yticks=range(1, run.num_turns + 1))
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_costs(axes: Axes, run: FinishedRun) -> None:
    """Draw the tokens (left axis) and the seconds (points, right axis) of all samples of each problem."""
    costs = list(run.statistics.costs_K.values())
    edges = [number - 0.5 for number in range(1, len(costs) + 2)]
    axes.stairs([tokens for tokens, _ in costs], edges, fill=True, color=run_colour(0), alpha=0.6)
    axes.set(title="tokens and seconds of each problem", xlabel="problem, in the order of the rows")
    axes.set_ylabel("tokens generated", color=run_colour(0))
    seconds = axes.twinx()
    seconds.plot(range(1, len(costs) + 1), [s for _, s in costs], ".", markersize=3, color=run_colour(1))
    seconds.set_ylabel("seconds", color=run_colour(1))
    seconds.set_ylim(bottom=0)
    seconds.spines["right"].set_visible(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_equal_tokens(axes: Axes, comparison: EqualTokens) -> None:
    """Draw accuracy over tokens: the turns of a run, and independent first attempts of the same model."""
    turns, attempts = comparison.turns, comparison.attempts
    tokens = [point.tokens for point in turns]
    turn_colour, attempt_colour = run_colour(0), run_colour(1)
    rows = (
        (tokens, [point.right_any for point in turns], turn_colour, "-", "t turns, any right"),
        (tokens, [point.right_last for point in turns], turn_colour, "--", "t turns, last right (acc@t)"),
        (
            [point.tokens for point in attempts],
            [point.pass_k for point in attempts],
            *(attempt_colour, "-", "k first attempts, any right (pass@k)"),
        ),
    )
    for xs, ys, colour, style, label in rows:
        axes.plot(xs, ys, marker="o", markersize=4, color=colour, linestyle=style, label=label)
    axes.axhline(attempts[0].pass_k, color=attempt_colour, linestyle="--", label="one first attempt (pass@1)")
    format_share_axis(axes, title="turns and first attempts at equal tokens", xlabel="tokens per problem")
    add_legend_below(axes)


def draw_histogram(
    axes: Axes, values_T: Sequence[Sequence[float]], title: str, ylabel: str, is_log: bool
) -> None:
    """Draw a histogram of the values of all turns, stacked by turn.

    Args:
        values_T: For each turn, one value per completion or program; whole numbers unless `is_log`.
        is_log: Use a logarithmic axis. Times need one: a few are much longer than the others.

    """
    values = [value for values in values_T for value in values if value > 0 or not is_log] or [1.0]
    low, high = min(values), max(values)
    if is_log:
        # Bins of equal width on the logarithmic axis. `max` keeps rounding from excluding the maximum.
        factor = max(high / low, 1.1) ** (1 / NUM_BINS)
        edges = [low * factor**i for i in range(NUM_BINS)] + [max(high, low * factor**NUM_BINS)]
        # A time too short to measure is 0, which has no logarithm. It counts as the shortest other time.
        values_T = [[max(value, low) for value in values] for values in values_T]
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(log_ticks(high / low))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        # Edges lie between whole numbers, so that every bin covers equally many.
        step = max(1, ceil((high - low + 1) / NUM_BINS))
        edges = [low - 0.5 + step * i for i in range(ceil((high - low + 1) / step) + 1)]
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    labels = [f"turn {turn}" for turn in range(1, len(values_T) + 1)]
    axes.hist(values_T, bins=edges, stacked=True, color=turn_colours(len(values_T)), label=labels)
    axes.set(title=title, ylabel=ylabel)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    add_legend_below(axes)


def _draw_band(
    axes: Axes,
    ends: tuple[float, float],
    bottoms: tuple[float, float],
    height: float,
    colour: str,
    alpha: float,
) -> None:
    """Draw a band of constant height, a share of problems, between two turns, curved like an S."""
    if height <= 0:
        return
    # Control points halfway between the turns make the Bezier curves horizontal at both ends.
    (x0, x1), (y0, y1), middle = ends, bottoms, sum(ends) / 2
    corners = [(x0, y0), (middle, y0), (middle, y1), (x1, y1), (x1, y1 + height)]
    corners += [(middle, y1 + height), (middle, y0 + height), (x0, y0 + height), (x0, y0)]
    codes = [Outline.MOVETO, *[Outline.CURVE4] * 3, Outline.LINETO, *[Outline.CURVE4] * 3, Outline.CLOSEPOLY]
    axes.add_patch(PathPatch(Outline(corners, codes), facecolor=colour, alpha=alpha, linewidth=0))


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
            found = {name: run.statistics.repaired(name, pair.before) for name in rows}
            estimates = [estimate for estimate in found.values() if estimate]
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

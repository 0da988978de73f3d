"""Charts of finished runs, each drawn into matplotlib axes: those of report.html, and report.png.

A function that draws one returns the main numbers in words, for readers who do not see the chart.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import mean, median
from textwrap import fill
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator, PercentFormatter

from cocos.report import chart_style as style
from cocos.report.chart_style import ERROR_COLOURS, INK, RIGHT, WRONG
from cocos.report.contents import Report
from cocos.report.finished_runs import FinishedRun
from cocos.report.tables import has_pass_at_k, printable_error_type
from cocos.report.token_curves import Curve

MAX_NAME = 24  # characters of a line of a name beside a bar
Span = tuple[float, float]


def draw_accuracy(axes: Axes, runs: Sequence[FinishedRun]) -> str:
    """Draw acc@t with 95 % intervals, one line per run."""
    parts = []
    for number, run in enumerate(runs):
        turns = range(1, run.num_turns + 1)
        estimates = [run.estimate(f"acc_t{turn}") for turn in turns]
        parts.append(f"{run.name} {', '.join(f'{100 * estimate.value:.1f}' for estimate in estimates)} %")
        # Beside each other, because error bars on top of each other cannot be told apart.
        shift = 0.3 * ((number + 0.5) / len(runs) - 0.5)
        axes.errorbar(
            [turn + shift for turn in turns],
            [estimate.value for estimate in estimates],
            yerr=list(zip(*map(style.error_bar, estimates), strict=True)),
            marker="o",
            capsize=2.5,
            color=style.run_colour(number),
            linestyle=style.line_style(number),
            label=run.label,
        )
    num_turns = max(run.num_turns for run in runs)
    style.format_share_axis(
        axes, title="accuracy after each turn", xlabel="turn", xticks=range(1, num_turns + 1)
    )
    axes.set_xlim(0.7, num_turns + 0.3)
    if len(runs) > 1:
        style.add_legend_below(axes)
    return f"Accuracy after each turn: {'; '.join(parts)}."


def draw_changes(axes: Axes, runs: Sequence[FinishedRun]) -> None:
    """Draw i->c upwards and c->i downwards: per pair of consecutive turns, one bar per run.

    The colours are those of `draw_accuracy`, whose legend names them.
    """
    num_turns = max(run.num_turns for run in runs)
    width, has_changes = 0.8 / len(runs), False
    for number, run in enumerate(runs):
        positions = [pair.before + width * (number + 0.5 - len(runs) / 2) for pair in run.turn_pairs]
        for name, sign, alpha in (("i2c", 1, 1.0), ("c2i", -1, 0.5)):
            shares = [sign * run.estimate(f"{name}_{pair}").value for pair in run.turn_pairs]
            has_changes |= any(shares)
            axes.bar(positions, shares, width, color=style.run_colour(number), alpha=alpha)
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


def draw_pass_at_k(axes: Axes, run: FinishedRun) -> str:
    """Draw pass@k over k, one line per turn."""
    values, ks = run.metrics["pass_at_k"], run.pass_at_k_sizes
    for turn, colour in enumerate(style.turn_colours(run.num_turns), start=1):
        shares = [values[f"pass@{k}_t{turn}"] for k in ks]
        axes.plot(ks, shares, marker="o", color=colour, label=f"turn {turn}")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    style.format_share_axis(axes, "pass@k", "samples per problem (k)", xticks=ks)
    axes.minorticks_off()
    style.add_legend_below(axes)
    parts = [f"{100 * values[f'pass@{k}_t1']:.1f} % for k = {k}" for k in ks]
    return f"{run.name}: pass@k of turn 1: {', '.join(parts)}."


def draw_flow(axes: Axes, run: FinishedRun) -> str:
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
    parts = []
    for t, pair in enumerate(run.turn_pairs):
        i2c, c2i = run.estimate(f"i2c_{pair}").value, run.estimate(f"c2i_{pair}").value
        shares = f"{100 * i2c:.1f} % repaired, {100 * c2i:.1f} % spoilt"
        parts.append(f"turn {pair.before} to {pair.after}: {shares}")
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
    return f"{run.name}: Right and wrong programs from turn to turn: {'; '.join(parts)}."


def draw_problems(axes: Axes, run: FinishedRun) -> str:
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
    return f"{run.name}: Each problem after each turn, right or wrong, as in the list of trajectories."


def draw_costs(axes: Axes, runs: Sequence[FinishedRun]) -> str:
    """Draw the tokens (left axis) and the seconds (points, right axis) of all samples of each problem.

    With several runs, the colours are those of `draw_accuracy`.
    """
    right, parts, is_one = axes.twinx(), [], len(runs) == 1
    for number, run in enumerate(runs):
        tokens, seconds = zip(*run.statistics.costs_K.values(), strict=True)
        edges, places = [n - 0.5 for n in range(1, len(tokens) + 2)], range(1, len(seconds) + 1)
        axes.stairs(tokens, edges, fill=is_one, color=style.run_colour(number), alpha=0.6)
        right.plot(places, seconds, ".", markersize=3, color=style.run_colour(1 if is_one else number))
        parts.append(
            f"{run.name}: Tokens and seconds of each problem, median: {median(tokens):.3g} tokens, "
            f"{median(seconds):.3g} s; largest: {max(tokens)} tokens, {max(seconds):.3g} s."
        )
    axes.set(title="tokens and seconds of each problem", xlabel="problem, in the order of the rows")
    axes.set_ylabel("sampled tokens", color=style.run_colour(0) if is_one else INK)
    right.set_ylabel("seconds (points)", color=style.run_colour(1) if is_one else INK)
    right.set_ylim(bottom=0)
    right.spines["right"].set_visible(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return " ".join(parts)


def draw_token_curves(axes: Axes, curves: Sequence[Curve]) -> str:
    """Draw accuracy over sampled tokens, one line per curve; each further program is a point."""
    parts = []
    for number, curve in enumerate(curves):
        tokens = [point.tokens.sampled for point in curve.points]
        shares = [point.accuracy for point in curve.points]
        axes.plot(
            tokens,
            shares,
            marker="o",
            color=style.run_colour(number),
            linestyle=style.line_style(number),
            label=curve.label,
        )
        points = [f"{100 * shares[i]:.1f} % for {tokens[i]:.3g} tokens" for i in (0, -1)]
        parts.append(f"{curve.label} {', '.join(points)}")
    # The tens around the curves: their slopes matter, and lie within a few of them.
    shown = [point.accuracy for curve in curves for point in curve.points] or [0, 1]
    style.format_share_axis(
        axes,
        title="accuracy against tokens, the visible tests choose",
        xlabel="sampled tokens per problem",
        ylim=(math.floor(10 * min(shown)) / 10, math.ceil(10 * max(shown)) / 10),
    )
    style.add_legend_below(axes)
    return f"Accuracy against sampled tokens: {'; '.join(parts)}."


def _draw_band(axes: Axes, ends: Span, bottoms: Span, height: float, colour: str, alpha: float) -> None:
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
    totals: Counter[str] = Counter()
    for run in runs:
        for counts in run.metrics["errors"]:
            totals.update(counts)
    return [error_type for error_type, _ in totals.most_common(len(ERROR_COLOURS) - 1)]


def draw_errors(axes: Axes, runs: Sequence[FinishedRun], error_types: Sequence[str]) -> str:
    """Draw the shares of right programs, of each error type, and of all other errors.

    There is one bar per turn of a single run; of several runs, one per run for its last turn.
    """
    if len(runs) == 1:
        bars = [(f"turn {t}", runs[0], counts) for t, counts in enumerate(runs[0].metrics["errors"], start=1)]
    else:
        bars = [(fill(run.name, MAX_NAME), run, run.metrics["errors"][-1]) for run in runs]
    totals = [run.metrics["num_scored"] for _, run, _ in bars]
    wrong = [sum(counts.values()) for _, _, counts in bars]
    parts = [("right", RIGHT, [n - number for n, number in zip(totals, wrong, strict=True)])]
    for error_type, colour in zip(error_types, ERROR_COLOURS, strict=False):
        numbers = [counts.get(error_type, 0) for _, _, counts in bars]
        parts.append((printable_error_type(error_type), colour, numbers))
        wrong = [left - number for left, number in zip(wrong, numbers, strict=True)]
    left = [0.0] * len(bars)
    for label, colour, numbers in [*parts, ("other", ERROR_COLOURS[-1], wrong)]:
        if any(numbers):
            shares = [number / n for number, n in zip(numbers, totals, strict=True)]
            axes.barh(range(len(bars)), shares, left=left, color=colour, label=label, height=0.7)
            left = [a + b for a, b in zip(left, shares, strict=True)]
    axes.set(title="results of each turn" if len(runs) == 1 else "results of the last turn", xlim=(0, 1))
    axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    style.add_legend_below(axes)
    return f"{runs[0].name}: Wrong programs by error and turn; the table of errors has the numbers."


class Charts(NamedTuple):
    """SVG elements of a page."""

    accuracy: Markup  # after each turn, of all runs
    tokens: Markup | None  # accuracy against tokens, of all runs; None: no run has several programs
    runs: Mapping[str, Sequence[Markup]]  # name of a run -> its charts


def draw_charts(report: Report) -> Charts:
    """Draw every chart for which the runs have numbers."""
    # All runs share one list of error types, so that a colour means the same in every chart.
    runs, curves = report.runs, report.curves
    error_types = most_frequent_errors(runs)
    of_runs: dict[str, list[Markup]] = {}
    for run in runs:
        draws = [partial(draw_flow, run=run), partial(draw_problems, run=run)]
        draws = draws if run.num_turns > 1 else []
        draws.append(partial(draw_errors, runs=[run], error_types=error_types))
        draws.append(partial(draw_costs, runs=[run]))
        if has_pass_at_k(run):
            draws.append(partial(draw_pass_at_k, run=run))
        of_runs[run.name] = [style.svg_element(draw, f"{run.name} {n}") for n, draw in enumerate(draws)]
    accuracy = style.svg_element(partial(draw_accuracy, runs=runs), "accuracy")
    tokens = style.svg_element(partial(draw_token_curves, curves=curves), "tokens") if curves else None
    return Charts(accuracy, tokens, of_runs)


def save_overview(report: Report, path: Path) -> None:
    """Save one image: accuracy by turns and by tokens, changes, costs of each problem, and errors."""
    runs, curves = report.runs, report.curves

    def draw(figure: Figure) -> None:
        error_types = most_frequent_errors(runs)
        is_one_turn = max(run.num_turns for run in runs) == 1
        rows = ["AE", "CC"] if is_one_turn else ["AD", "CE"]
        places = figure.subplot_mosaic("\n".join(["TT", *rows] if curves else rows))
        if not is_one_turn:
            draw_changes(places["D"], runs)
        if curves:
            draw_token_curves(places["T"], curves)
        draw_accuracy(places["A"], runs)
        draw_costs(places["C"], runs)
        draw_errors(places["E"], runs, error_types)

    style.save_figure(draw, path, size=(10, 12 if curves else 8))

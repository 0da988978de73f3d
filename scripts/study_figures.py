"""Figures of the study, made from its CSV files: docs/results/study/*.png and *.svg."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from result_rows import Evaluation, Point, load_csv
from results import DOCS, accuracy, spread

STUDY = DOCS / "results/study"
FEEDBACK = ("none", "verdict", "error")
MARKERS = ".osv^DXP"


def by_arm(
    evaluations: Iterable[Evaluation], lab: str, feedback: str | None = None
) -> dict[str, list[Evaluation]]:
    """Group a laboratory's evaluations by arm, in the order of the file."""
    groups: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        of_lab, arm, _, of_feedback = evaluation.folder.split("/")
        if of_lab == lab and feedback in (None, of_feedback):
            groups.setdefault(arm, []).append(evaluation)
    return groups


def shares(evaluations: Sequence[Evaluation], turn: int) -> list[float]:
    """Return the accuracy after a turn, one number per evaluation."""
    return [accuracy(evaluation, str(turn)).value for evaluation in evaluations]


def plot_bars(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draw acc@1 and acc@2 of every arm of the first laboratory, with intervals and a dot per seed."""
    from matplotlib import pyplot

    groups = by_arm(evaluations, "first")
    figure, axes = pyplot.subplots(figsize=(9, 0.45 * len(groups) + 1.2), layout="constrained")
    for row, own in enumerate(groups.values()):
        for offset, turn, color in ((-0.19, 1, "tab:blue"), (0.19, 2, "tab:orange")):
            values = [100 * share for share in shares(own, turn)]
            middle, half = spread(values)
            axes.barh(row + offset, middle, 0.36, color=color, alpha=0.75, label=f"turn {turn}" * (row == 0))
            axes.errorbar(middle, row + offset, xerr=half, color="black", capsize=2, linewidth=0.8)
            axes.plot(values, [row + offset] * len(values), ".", color="black", markersize=3)
    axes.set(
        yticks=range(len(groups)), yticklabels=groups, xlim=(0, 105), xlabel="held-out problems solved, %"
    )
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2)
    axes.grid(axis="x", alpha=0.3)
    save(figure, path)


def plot_curves(points: Sequence[Point], path: Path) -> None:
    """Draw dev accuracy of the first (dashed) and last turn over sampled tokens, a line per seed."""
    from matplotlib import pyplot

    groups: dict[str, list[Point]] = {}
    for point in points:
        if point.lab == "first":
            groups.setdefault(point.arm, []).append(point)
    columns = 3
    rows = -(-len(groups) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(11, 2.5 * rows), sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    for axes, (arm, own) in zip(grid.flat, groups.items(), strict=False):
        for seed in sorted({point.seed for point in own}):
            tokens = [point.tokens / 1000 for point in own if point.seed == seed]
            for name, style, color in (("acc_1", "--", "tab:blue"), ("acc_last", "-", "tab:orange")):
                values = [100 * getattr(point, name) for point in own if point.seed == seed]
                axes.plot(tokens, values, style, color=color, linewidth=1)
        axes.set_title(arm, fontsize=10)
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(groups) :]:
        axes.set_visible(False)
    figure.supxlabel("sampled tokens, thousands")
    figure.supylabel("dev problems solved in turn 1 (dashed) and the last turn, %")
    save(figure, path)


def plot_turns(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draw the accuracy of the second laboratory's arms over the turns: a panel per kind of feedback."""
    from matplotlib import pyplot

    arms = by_arm(evaluations, "feedback")
    styles = line_styles(list(arms))
    num_turns = max((len(evaluation.right_T) for own in arms.values() for evaluation in own), default=0)
    turns = range(1, num_turns + 1)
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 4.2), sharey=True, layout="constrained")
    for axes, feedback in zip(panels, FEEDBACK, strict=True):
        for arm, own in by_arm(evaluations, "feedback", feedback).items():
            values = [100 * mean(shares(own, turn)) for turn in turns]
            axes.plot(turns, values, label=arm, linewidth=1.2, markersize=5, **styles[arm])
        axes.set(title=f"feedback at test time: {feedback}", xlabel="turn", xticks=turns, ylim=(0, 103))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("held-out problems solved, %")
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=4, fontsize=8)
    save(figure, path)


def line_styles(arms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return matplotlib's options of each arm's line: a colour per feedback in training, a marker per arm."""
    colors = {"verdict": "tab:orange", "error": "tab:green"}
    feedback = [next((kind for kind in colors if kind in arm), "none") for arm in arms]
    return {
        arm: {"color": colors.get(kind, "tab:gray"), "marker": MARKERS[feedback[:number].count(kind)]}
        for number, (arm, kind) in enumerate(zip(arms, feedback, strict=True))
    }


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG and SVG; the same numbers give the same bytes."""
    import matplotlib
    from matplotlib import pyplot

    # The fixed salt makes SVG ids reproducible. The metadata options leave out date and software version.
    matplotlib.rcParams["svg.hashsalt"] = "study"
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    pyplot.close(figure)


def draw_figures() -> None:
    """Draw all figures from the CSV files."""
    import matplotlib

    matplotlib.use("Agg")
    evaluations = load_csv(STUDY / "evaluations.csv", Evaluation)
    plot_bars(evaluations, STUDY / "bars")
    plot_curves(load_csv(STUDY / "curves.csv", Point), STUDY / "curves")
    plot_turns(evaluations, STUDY / "turns")

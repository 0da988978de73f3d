"""The figure of the study, made from its CSV file: docs/results/study/turns.png."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

from result_rows import Evaluation
from results import DOCS, accuracy

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


def plot_turns(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draw the accuracy of the second laboratory's arms over the turns: a panel per kind of feedback."""
    import matplotlib

    matplotlib.use("Agg")
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
    figure.savefig(path, dpi=110, metadata={"Software": None})  # the same numbers give the same bytes
    pyplot.close(figure)


def line_styles(arms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return matplotlib's options of each arm's line: a colour per feedback in training, a marker per arm."""
    colors = {"verdict": "tab:orange", "error": "tab:green"}
    feedback = [next((kind for kind in colors if kind in arm), "none") for arm in arms]
    return {
        arm: {"color": colors.get(kind, "tab:gray"), "marker": MARKERS[feedback[:number].count(kind)]}
        for number, (arm, kind) in enumerate(zip(arms, feedback, strict=True))
    }

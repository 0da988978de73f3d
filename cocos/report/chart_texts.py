"""Texts of the charts (main numbers in words, for readers who do not see them), and their ink.

Imports no matplotlib, which the page can do without.
"""

from collections.abc import Sequence
from statistics import median

from cocos.report.finished_runs import FinishedRun

INK, GRID = "#2b2f36", "#c9ced6"  # report.html replaces them with colours of its light or dark scheme
HISTOGRAMS = {
    "tokens": ("Tokens per completion", "tokens_T"),
    "generation": ("Seconds of generation per completion", "generation_s_T"),
    "execution": ("Seconds of execution per program", "execution_s_T"),
}
OTHERS = {
    "problems": "Each problem after each turn, right or wrong; the list of trajectories has the same.",
    "errors": "Wrong programs by error and turn; the table of errors has the numbers.",
    "fix_rates": "Share of wrong programs that the next turn repaired, by error; the table of errors has the "
    "numbers.",
    "equal_tokens": "Accuracy of turns and of first attempts at equal tokens; the table of that name has the "
    "numbers.",
}


def accuracy_text(runs: Sequence[FinishedRun]) -> str:
    """Return the text of the chart of accuracies."""
    parts = []
    for run in runs:
        values = [100 * run.estimate(f"acc_t{turn}").value for turn in range(1, run.num_turns + 1)]
        parts.append(f"{run.name} {', '.join(f'{value:.1f}' for value in values)} %")
    return f"Accuracy after each turn: {'; '.join(parts)}."


def chart_text(chart: str, run: FinishedRun) -> str:
    """Return the text of another chart of a run."""
    if chart == "flow":
        parts = [
            f"turn {pair.before} to {pair.after}: {_percent(run, f'i2c_{pair}')} repaired, "
            f"{_percent(run, f'c2i_{pair}')} spoilt"
            for pair in run.turn_pairs
        ]
        text = f"Right and wrong programs from turn to turn: {'; '.join(parts)}."
    elif chart == "pass_at_k":
        parts = [
            f"{100 * run.metrics['pass_at_k'][f'pass@{k}_t1']:.1f} % for k = {k}" for k in run.pass_at_k_sizes
        ]
        text = f"pass@k of turn 1: {', '.join(parts)}."
    elif chart == "costs":
        tokens, seconds = zip(*run.statistics.costs_K.values(), strict=True)
        text = (
            f"Tokens and seconds of each problem, median: {median(tokens):.3g} tokens, "
            f"{median(seconds):.3g} s; largest: {max(tokens)} tokens, {max(seconds):.3g} s."
        )
    elif chart in HISTOGRAMS:
        title, name = HISTOGRAMS[chart]
        values_T = getattr(run.statistics, name)
        parts = [f"turn {turn} {median(values):.3g}" for turn, values in enumerate(values_T, 1) if values]
        text = f"{title}, median: {', '.join(parts)}."
    else:
        text = OTHERS[chart]
    return f"{run.name}: {text}"


def _percent(run: FinishedRun, metric: str) -> str:
    return f"{100 * run.estimate(metric).value:.1f} %"

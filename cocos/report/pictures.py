"""The charts of report.html, and report.png."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from cocos.report import charts
from cocos.report.chart_style import save_figure, svg_element
from cocos.report.finished_runs import FinishedRun, group_by_conditions
from cocos.report.tables import has_pass_at_k
from cocos.report.token_curves import token_curves


class Charts(NamedTuple):
    """SVG elements of a page."""

    first: Sequence[Markup]  # of all runs together
    groups: Mapping[str, Sequence[Markup]]  # conditions of runs -> charts of these runs together
    runs: Mapping[str, Sequence[Markup]]  # name of a run -> its charts


def draw_charts(runs: Sequence[FinishedRun]) -> Charts:
    """Draw every chart for which the runs have numbers."""
    groups = {
        conditions: [svg_element(partial(charts.draw_accuracy, runs=group), f"accuracy {conditions}")]
        for conditions, group in group_by_conditions(runs).items()
    }
    # All runs share one list of error types, so that a colour means the same in every chart.
    error_types = charts.most_frequent_errors(runs)
    curves = token_curves(runs)
    of_runs: dict[str, list[Markup]] = {}
    for run in runs:
        draws = [partial(charts.draw_flow, run=run), partial(charts.draw_problems, run=run)]
        draws = draws if run.num_turns > 1 else []
        draws.append(partial(charts.draw_errors, runs=[run], error_types=error_types))
        draws.append(partial(charts.draw_costs, runs=[run]))
        if has_pass_at_k(run):
            draws.append(partial(charts.draw_pass_at_k, run=run))
        of_runs[run.name] = [svg_element(draw, f"{run.name} {n}") for n, draw in enumerate(draws)]
    draw_curves = partial(charts.draw_token_curves, curves=curves)
    return Charts([svg_element(draw_curves, "tokens")] if curves else [], groups, of_runs)


def save_overview(runs: Sequence[FinishedRun], path: Path) -> None:
    """Save one image: accuracy by turns and by tokens, changes, costs of each problem, and errors."""
    curves = token_curves(runs)

    def draw(figure: Figure) -> None:
        error_types = charts.most_frequent_errors(runs)
        is_one_turn = max(run.num_turns for run in runs) == 1
        rows = ["AE", "CC"] if is_one_turn else ["AD", "CE"]
        places = figure.subplot_mosaic("\n".join(["TT", *rows] if curves else rows))
        if not is_one_turn:
            charts.draw_changes(places["D"], runs)
        if curves:
            charts.draw_token_curves(places["T"], curves)
        charts.draw_accuracy(places["A"], runs)
        charts.draw_costs(places["C"], runs)
        charts.draw_errors(places["E"], runs, error_types)

    save_figure(draw, path, size=(10, 12 if curves else 8))

"""The numbers of finished runs as tables, for the terminal and in Markdown."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cocos.files.markdown import markdown_table
from cocos.report.comparison import RunComparison
from cocos.report.finished_runs import FinishedRun, group_by_conditions
from cocos.statistics import Estimate

INTERVALS = "% [95 % interval]"
MIN_WIDTH = 135  # a wrapped interval is unreadable; a line that is too wide can be scrolled


def accuracy_heading(conditions: str) -> str:
    """Return the heading of the accuracies of runs with these `FinishedRun.conditions`."""
    return f"Correction with {conditions}" if conditions else "Self-correction"


def print_tables(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> None:
    """Print one table of accuracies per conditions, and one table of all comparisons."""
    console = Console()
    console.width = max(console.width, MIN_WIDTH)
    for conditions, group in group_by_conditions(runs).items():
        _print_table(console, f"{accuracy_heading(conditions)}, {INTERVALS}", accuracy_cells(group))
    if comparisons:
        _print_table(console, f"Against the baseline, {INTERVALS}", comparison_cells(comparisons))
        for sentence in excluded_problems(comparisons):
            console.print(escape(sentence))


def markdown_report(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> str:
    """Return the tables in Markdown, with the problems gained and lost, and the errors of each turn."""
    parts = []
    for conditions, group in group_by_conditions(runs).items():
        header, *rows = accuracy_cells(group)
        parts += [
            f"# {accuracy_heading(conditions)}",
            "Shares in % with 95 % intervals.",
            markdown_table(header, rows),
        ]
    if comparisons:
        header, *rows = comparison_cells(comparisons)
        parts += ["## Against the baseline", *excluded_problems(comparisons), markdown_table(header, rows)]
        parts.append("\n".join(_gained_and_lost(comparisons)))
    parts += ["## Errors", "\n".join(_error_counts(runs))]
    return "\n\n".join(parts) + "\n"


def accuracy_cells(runs: Sequence[FinishedRun]) -> Iterator[list[str]]:
    """Yield the header, then a row per run and pair of consecutive turns; a run of one turn has one row."""
    before, after = ("acc@1", "acc@2") if max(run.num_turns for run in runs) <= 2 else ("acc@t", "acc@t+1")
    yield ["model", "n", "turns", before, after, "delta", "i→c", "c→i"]
    for run in runs:
        n = str(run.metrics["num_scored"])
        if run.num_turns == 1:
            yield [run.name, n, "1", format_estimate(run.estimate("acc_t1")), "", "", "", ""]
        for turn, pair in enumerate(run.turn_pairs, start=1):
            metrics = [f"acc_t{turn}", f"acc_t{turn + 1}", f"delta_{pair}", f"i2c_{pair}", f"c2i_{pair}"]
            estimates = [format_estimate(run.estimate(metric)) for metric in metrics]
            yield [run.name, n, f"{turn} to {turn + 1}", *estimates]


def comparison_cells(comparisons: Sequence[RunComparison]) -> Iterator[list[str]]:
    """Yield the header, then two rows per comparison: turn 1 and the last turn."""
    yield ["model", "against", "problems", "turn", "accuracy", "difference", "McNemar p", "gained", "lost"]
    for comparison in comparisons:
        for turn, result in (("1", comparison.first_turn), ("last", comparison.last_turn)):
            yield [
                comparison.other.name,
                comparison.baseline.name,
                str(result.num_problems),
                turn,
                f"{100 * result.baseline:.1f} → {100 * result.other:.1f}",
                format_estimate(result.difference),
                format_p_value(result.p_value),
                str(len(result.gained)),
                str(len(result.lost)),
            ]


def excluded_problems(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    """Yield a sentence for each run that has scored problems which its counterpart has not."""
    for comparison in comparisons:
        for run, task_ids in (
            (comparison.baseline, comparison.last_turn.only_baseline),
            (comparison.other, comparison.last_turn.only_other),
        ):
            if task_ids:
                yield (
                    f"{comparison.other.name} against {comparison.baseline.name} excludes the problems that "
                    f"only {run.name} has scored: {', '.join(task_ids)}."
                )


def format_estimate(estimate: Estimate) -> str:
    """Return a share and its interval in percent, as in `50.0 [23.7, 76.3]`."""
    value, low, high = (100 * share for share in estimate)
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def format_p_value(p: float | None) -> str:
    """Return a p-value with two digits; `several samples` for None, as the test needs one per problem."""
    if p is None:
        return "several samples"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def printable_error_type(error_type: str) -> str:
    """Return an exception's name on one line of at most 30 characters.

    The program under test defines the exception, so its name can be any text.
    """
    printable = "".join(character if character.isprintable() else "?" for character in error_type)
    return printable if len(printable) <= 30 else printable[:29] + "…"


def _gained_and_lost(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    for comparison in comparisons:
        last_turn = comparison.last_turn
        for change, task_ids in (("gained", last_turn.gained), ("lost", last_turn.lost)):
            names = ", ".join(task_ids) or "none"
            yield f"- {comparison.other.name} {change} at its last turn ({len(task_ids)}): {names}"


def _error_counts(runs: Sequence[FinishedRun]) -> Iterator[str]:
    for run in runs:
        for turn, counts in enumerate(run.metrics["errors"], start=1):
            errors = [f"{printable_error_type(error_type)} {count}" for error_type, count in counts.items()]
            yield f"- {run.name}, turn {turn}: {', '.join(errors) or 'none'}"


def _print_table(console: Console, heading: str, cells: Iterator[list[str]]) -> None:
    table = Table(title=heading)
    header, *rows = cells
    for number, column in enumerate(header):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)

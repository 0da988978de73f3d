"""report.md: the tables of a report, the problems gained and lost, and the errors of each turn.

The columns are padded, so that the file can be read as plain text too.
"""

from collections.abc import Iterator, Sequence

from cocos.files.markdown import markdown_table
from cocos.report.cells import printable_error_type
from cocos.report.comparison import RunComparison
from cocos.report.finished_runs import FinishedRun
from cocos.report.tables import (
    Table,
    comparison_table,
    excluded_problems,
    run_tables,
)


def markdown_report(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> str:
    """Return the contents of report.md."""
    tables = run_tables(runs)
    parts = [part for table in tables for part in _section(table)]
    if comparisons:
        tables.append(comparison_table(comparisons))
        heading, cells = _section(tables[-1])
        parts += [heading, *excluded_problems(comparisons), cells, "\n".join(_gained_and_lost(comparisons))]
    parts += dict.fromkeys(note for table in tables for note in table.notes)
    parts += ["## Errors", "\n".join(_error_counts(runs))]
    return "\n\n".join(parts) + "\n"


def _section(table: Table) -> tuple[str, str]:
    """Return a heading and a Markdown table with padded cells."""
    lines = [table.header, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.header))]
    header, *rows = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return f"## {table.heading}", markdown_table(header, rows)


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

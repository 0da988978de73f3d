"""The tables of a report in the terminal."""

import re
import shutil
import textwrap
from collections.abc import Sequence

from cocos.report.comparison import RunComparison
from cocos.report.finished_runs import FinishedRun
from cocos.report.tables import Table, comparison_table, excluded_problems, run_tables

WIDTH_OF_FILES = 10_000  # one line per row, for whoever searches in the output
VALUE_AND_INTERVAL = re.compile(r"(.*?)(?: ([\[(].*))?")


def print_tables(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> None:
    """Print the tables of the runs, and one table of all comparisons."""
    width = shutil.get_terminal_size(fallback=(WIDTH_OF_FILES, 24)).columns
    tables = run_tables(runs)
    if comparisons:
        tables.append(comparison_table(comparisons))
    for table in tables:
        print(table.heading, *table_lines(table, width), "", sep="\n")
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    for note in [*excluded_problems(comparisons), *notes]:
        print(textwrap.fill(note, width))


def table_lines(table: Table, width: int) -> list[str]:
    """Return the header, a rule and the rows of a table.

    If a line would be longer than `width`, the names of a row stand above it, and intervals below their
    numbers. The longest line then has about 80 characters.
    """
    header, *rows = _align([table.header, *table.rows], table.num_names)
    if len(header) <= width:
        return [header, "─" * len(header), *rows]
    cells = [table.header[table.num_names :]]
    for row in table.rows:
        cells += zip(*map(_value_and_interval, row[table.num_names :]), strict=True)
    header, *rows = _align(cells, num_left=0)
    lines, names = [header, "─" * len(header)], None
    for number, row in enumerate(table.rows):
        if names != (names := row[: table.num_names]):
            lines += map(": ".join, zip(table.header, names, strict=False))
        lines += [line.rstrip() for line in rows[2 * number : 2 * number + 2] if line.strip()]
    return lines


def _align(lines: Sequence[Sequence[str]], num_left: int) -> list[str]:
    """Align the cells of each column: the first `num_left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column < num_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


def _value_and_interval(cell: str) -> tuple[str, str]:
    """Split `50.0 [23.7, 76.3]` or `50.0 (no interval)` before its bracket."""
    match = VALUE_AND_INTERVAL.fullmatch(cell)
    return (match[1], match[2] or "") if match else (cell, "")

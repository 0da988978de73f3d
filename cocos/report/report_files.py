"""The tables of a report in the terminal and in report.md, and all files of a report in one folder.

The columns of report.md are padded, so that the file can be read as plain text too.
"""

import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from cocos.extras import install_command, missing_modules
from cocos.files.markdown import markdown_table
from cocos.report.caveats import caveats
from cocos.report.finished_runs import FinishedRun, RunComparison
from cocos.report.html_report import save_page
from cocos.report.tables import Table, comparison_table, excluded_problems, printable_error_type, run_tables


def report_page(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> bytes:
    """Return the content of report.html."""
    from cocos.report.chart_files import draw_charts  # the page needs matplotlib, the terminal does not

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        save_page(runs, comparisons, draw_charts(runs), path)
        return path.read_bytes()


def save_report(
    runs: Sequence[FinishedRun], output_dir: Path, comparisons: Sequence[RunComparison] = ()
) -> str:
    """Write report.html, report.md, an overview as report.png and report.svg, and all charts into plots/.

    Without matplotlib there are no charts.

    Returns:
        The names of what was written, and how to install what is missing.

    Raises:
        OSError: A file cannot be written.

    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        (output_dir / "report.md").write_text(markdown_report(runs, comparisons), encoding="utf-8")
        charts = _save_charts(runs, output_dir)
        save_page(runs, comparisons, charts, output_dir / "report.html")
    except OSError as error:  # a full disk names no file
        reason = error.strerror or error
        raise OSError(f"--output_dir {output_dir}: no report can be written there ({reason})") from None
    if not charts:
        return f"report.html report.md (for charts: {install_command('charts')})"
    return "report.html report.md report.png plots"


def _save_charts(runs: Sequence[FinishedRun], output_dir: Path) -> dict[tuple[str, str], str]:
    """Save the overview and all charts, and return the charts of the page; none without matplotlib."""
    if missing_modules("charts"):
        return {}
    from cocos.report.chart_files import draw_charts, save_overview

    save_overview(runs, output_dir / "report")
    return draw_charts(runs, output_dir / "plots")


def markdown_report(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> str:
    """Return the contents of report.md."""
    tables = run_tables(runs)
    parts = [f"**Caution.** {sentence}" for sentence in caveats(runs, comparisons)]
    parts += [part for table in tables for part in _section(table)]
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
    for sentence in caveats(runs, comparisons):
        print(textwrap.fill(f"caution: {sentence}", width))


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

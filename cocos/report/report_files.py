"""The tables of a report in the terminal and in report.md, and all files of a report in one folder."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from cocos.files.extras import install_command, missing_modules
from cocos.files.markdown import markdown_table
from cocos.files.output_folder import recorded_kind
from cocos.report.comparisons import RunComparison
from cocos.report.contents import Report
from cocos.report.finished_runs import FinishedRun
from cocos.report.html_report import GENERATOR, error_rows, page_parts
from cocos.report.tables import Table


def report_page(report: Report) -> Iterator[bytes]:
    """Yield the parts of report.html, with charts if matplotlib is installed."""
    charts = None
    if not missing_modules("charts"):
        from cocos.report.charts import draw_charts

        charts = draw_charts(report)
    # UTF-8 cannot encode a lone surrogate; backslashreplace writes it as JSON's escape \udXXX.
    return (part.encode("utf-8", "backslashreplace") for part in page_parts(report, charts))


def is_report(folder: Path) -> bool:
    """Return whether a folder holds a report, and is not that of an evaluation or another run."""
    page = folder / "report.html"
    if recorded_kind(folder) or not page.is_file():
        return False
    with open(page, "rb") as file:
        return GENERATOR.encode() in file.read(1000)


def save_report(report: Report, output_dir: Path) -> str:
    """Write report.html, report.md and, if matplotlib is installed, report.png.

    Returns:
        The names of what was written, and how to install what is missing.

    Raises:
        OSError: A file cannot be written.

    """
    written = f"report.html report.md (for charts: {install_command('charts')})"
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        with open(output_dir / "report.html", "wb") as file:  # first: it makes the folder a report's
            file.writelines(report_page(report))
        (output_dir / "report.md").write_text(markdown_report(report), encoding="utf-8")
        if not missing_modules("charts"):
            from cocos.report.charts import save_overview

            save_overview(report, output_dir / "report.png")
            written = "report.html report.md report.png"
    except OSError as error:  # a full disk names no file
        reason = error.strerror or error
        raise OSError(f"--output_dir {output_dir}: no report can be written there ({reason})") from None
    return written


def markdown_report(report: Report) -> str:
    """Return the contents of report.md."""
    parts = [report.beginning, _section(report.overview), *report.findings]
    parts += [f"**Caution.** {sentence}" for sentence in report.caveats]
    parts += [_section(table) for table in report.tables]
    parts += [*report.excluded, "\n".join(_gained_and_lost(report.comparisons))]
    parts += [*report.notes, *report.token_notes, "## Errors", _errors(report.runs)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(table: Table) -> str:
    return f"## {table.heading}\n\n{markdown_table(table.header, table.rows)}"


def _gained_and_lost(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    for comparison in comparisons:
        last_turn = comparison.last_turn
        for change, task_ids in (("gained", last_turn.gained), ("lost", last_turn.lost)):
            names = ", ".join(task_ids) or "none"
            yield f"- {comparison.other.name} {change} at its last turn ({len(task_ids)}): {names}"


def _errors(runs: Sequence[FinishedRun]) -> str:
    """Return a table of the programs with each error at each turn, and how many the next turn repaired."""
    num_turns = max(run.num_turns for run in runs)
    rows = []
    for run in runs:
        for row in error_rows(run):
            cells = [
                str(count) if fixed is None else f"{count} ({fixed} repaired)"
                for count, fixed in zip(row.counts_T, row.num_fixed_T, strict=True)
            ]
            rows.append([run.name, row.label, *cells, *["-"] * (num_turns - len(cells))])
    turns = [f"turn {turn}" for turn in range(1, num_turns + 1)]
    return markdown_table(["model", "first failing test", *turns], rows) if rows else "none"


WIDTH_OF_FILES = 10_000  # one line per row, for whoever searches in the output
BEFORE_INTERVAL = re.compile(r" (?=[\[(])")  # of `50.0 [23.7, 76.3]` or `50.0 (no interval)`


def print_tables(report: Report) -> None:
    """Print the summary, the tables of the runs, and one table of all comparisons."""
    width = shutil.get_terminal_size(fallback=(WIDTH_OF_FILES, 24)).columns
    _print_sentences([report.beginning], width)
    _print_table(report.overview, width)
    cautions = [f"caution: {sentence}" for sentence in report.caveats]
    _print_sentences([*report.findings, *cautions], width)
    for table in report.tables:
        _print_table(table, width)
    _print_sentences([*report.excluded, *report.notes, *report.token_notes], width)


def _print_sentences(sentences: Sequence[str], width: int) -> None:
    """Print each sentence from the start of a line, and an empty line after the last."""
    if sentences:
        print(*(textwrap.fill(sentence, width) for sentence in sentences), "", sep="\n")


def _print_table(table: Table, width: int) -> None:
    print(table.heading, *table_lines(table, width), "", sep="\n")


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
        split = [(*BEFORE_INTERVAL.split(cell, maxsplit=1), "")[:2] for cell in row[table.num_names :]]
        cells += zip(*split, strict=True)
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

"""Markdown tables for reports, data cards and documents."""

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table without a final line end.

    A `|` within a cell is escaped and a line break becomes a space, so that no cell can add columns or rows.

    Raises:
        ValueError: A row has more or fewer cells than the header.

    """
    rows = list(rows)
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"table row {list(row)} has {len(row)} cells, expected {len(header)}")
    return "\n".join(_line(cells) for cells in (header, ["---"] * len(header), *rows))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.splitlines()).replace("|", r"\|") for cell in cells) + " |"

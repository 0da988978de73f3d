"""Files in which measurements are kept and shown: CSV files of rows, and Markdown pages with tables."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


def save_csv(rows: Sequence[NamedTuple], path: Path) -> None:
    """Write rows under their field names, with four digits after the point."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        for row in rows:
            writer.writerow([f"{value:.4f}" if isinstance(value, float) else value for value in row])


def load_csv(path: Path, kind: type) -> list[Any]:
    """Read the rows that `save_csv` wrote, as `kind`."""
    with path.open(newline="", encoding="utf-8") as file:
        types = kind.__annotations__
        return [
            kind(**{key: types[key](value) for key, value in row.items()}) for row in csv.DictReader(file)
        ]


def fill(page: str, made: Mapping[str, str]) -> str:
    """Return the page with every table between its marker lines `<!-- NAME -->` and `<!-- end -->`.

    Raises:
        ValueError: The page lacks the marker lines of a table.

    """
    for name, table in made.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (begin and end):
            raise ValueError(f"the page needs the lines '<!-- {name} -->' and '<!-- end -->' around a table")
        page = f"{before}{begin}{table}\n{end}{after}"
    return page

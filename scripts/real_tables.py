"""Results of real models: CSV files in docs/real/ from finished runs, and the tables of two pages.

    python scripts/real_tables.py

The pages are docs/real.md (Qwen2.5-Coder-0.5B) and docs/smollm2.md. scripts/real.sh runs it after each track.
It reads what outputs/real contains, keeps the rows of other tracks and seeds, and names the command in place
of a table that has no rows.
"""

from pathlib import Path

import qwen_tables
import smollm2_tables
from real_rows import KINDS, Rows, collect, update_csv
from result_files import fill

from cocos.entry_point import run_command

DOCS = Path(__file__).resolve().parent.parent / "docs"
OUTPUTS = DOCS.parent / "outputs/real"
RESULTS = DOCS / "real"
PAGES = {DOCS / "smollm2.md": smollm2_tables.tables, DOCS / "real.md": qwen_tables.tables}


def main() -> None:
    """Update the CSV files from outputs/real, and the pages from the CSV files."""
    new = collect(OUTPUTS)
    rows = Rows(*(update_csv(RESULTS / f"{name}.csv", KINDS[name], getattr(new, name)) for name in KINDS))
    for page, tables in PAGES.items():
        page.write_text(fill(page.read_text(encoding="utf-8"), tables(rows)), encoding="utf-8")
    print(f"written: {', '.join(map(str, PAGES))}, {RESULTS}")


if __name__ == "__main__":
    run_command(main)

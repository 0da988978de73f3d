"""Results of real models: CSV files in docs/real/ from finished runs, and the tables of two pages.

    python scripts/real_tables.py

The pages are docs/real.md (Qwen2.5-Coder-0.5B) and docs/smollm2.md. scripts/real.sh runs it after each track.
It reads what outputs/real contains, keeps the rows of other tracks and seeds, and names the command in place
of a table that has no rows.
"""

import argparse
from pathlib import Path

import qwen_tables
import smollm2_tables
from real_rows import KINDS, Rows, collect, update_csv
from result_files import fill

from cocos.entry_point import run_command

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"smollm2.md": smollm2_tables.tables, "real.md": qwen_tables.tables}


def write_results(outputs: Path, docs: Path) -> None:
    """Update the CSV files in `docs`/real from finished runs, and the pages in `docs` from the CSV files."""
    new, results = collect(outputs), docs / "real"
    rows = Rows(*(update_csv(results / f"{name}.csv", KINDS[name], getattr(new, name)) for name in KINDS))
    for page, tables in PAGES.items():
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        (docs / page).write_text(fill(text, tables(rows)), encoding="utf-8")
    print(f"written: {', '.join(str(docs / page) for page in PAGES)}, {results}")


def main() -> None:
    """Read the command line and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outputs", type=Path, default=ROOT / "outputs/real", help="folder of the runs")
    parser.add_argument(
        "--docs", type=Path, default=ROOT / "docs", help="folder of the pages that are written"
    )
    arguments = parser.parse_args()
    write_results(arguments.outputs, arguments.docs)


if __name__ == "__main__":
    run_command(main)

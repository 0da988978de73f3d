"""Evaluations side by side, and each against the first in pairs of the same problems.

    python -m cocos.report outputs/base outputs/boost outputs/cocos --output_dir outputs/report

Reads the folders that test.py left: metrics.json, run.json, samples.jsonl.
"""

import argparse
import sys
from pathlib import Path

from cocos.report import compare_runs, load_runs, save_report, show


def main() -> None:
    """Print the tables; with --output_dir, write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m cocos.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "evaluations", nargs="+", type=Path, help="output folders of test.py; their names head the rows"
    )
    parser.add_argument(
        "--baseline", help="name of the evaluation that the others are compared with; by default the first"
    )
    parser.add_argument(
        "--output_dir",
        type=Path,
        help="where report.html, report.md and the plots go; without it, only print",
    )
    options = parser.parse_args()
    try:
        runs = load_runs(options.evaluations)
        pairs = compare_runs(runs, options.baseline)
        show(runs, pairs)
        if options.output_dir:
            save_report(runs, options.output_dir, pairs)
    except ValueError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

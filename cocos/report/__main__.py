"""Compare evaluations with a baseline, paired by problem.

    python -m cocos.report outputs/base outputs/boost outputs/cocos --output_dir outputs/report

Reads metrics.json, run.json and samples.jsonl in the output folders of test.py. docs/report.md explains the
report.
"""

import argparse
from pathlib import Path

from cocos.entry_point import run_command
from cocos.report import compare_runs, load_runs, print_tables, save_report


def main() -> None:
    """Print the tables, and write the report if --output_dir is given."""
    parser = argparse.ArgumentParser(
        prog="python -m cocos.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "evaluations",
        nargs="+",
        type=Path,
        help="output folders of test.py; the tables show their names",
    )
    parser.add_argument(
        "--baseline",
        help="name of the evaluation with which the others are compared; by default the first",
    )
    parser.add_argument(
        "--output_dir",
        type=Path,
        help="folder for report.html, report.md and the charts; without it, the tables are only printed",
    )
    options = parser.parse_args()
    runs = load_runs(options.evaluations)
    comparisons = compare_runs(runs, options.baseline)
    print_tables(runs, comparisons)
    if options.output_dir:
        save_report(runs, options.output_dir, comparisons)


if __name__ == "__main__":
    run_command(main)

"""Paired comparisons of evaluations, by problem.

    python -m cocos.report outputs/base outputs/boost outputs/cocos --output_dir outputs/report

Reads metrics.json, run.json and samples.jsonl in the output folders of test.py. docs/report.md explains the
report.
"""

import argparse
import difflib
import sys
from pathlib import Path
from typing import NoReturn

from cocos.entry_point import run_command


class _Parser(argparse.ArgumentParser):
    """Parser whose errors are one line and name the option that was probably meant."""

    def parse_known_args(self, args=None, namespace=None):
        """Reject the first unknown option; argparse would name a missing argument instead."""
        known = [flag for action in self._actions for flag in action.option_strings]
        for word in sys.argv[1:] if args is None else args:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in known:
                close = difflib.get_close_matches(flag, known, n=1)
                raise ValueError(
                    f"unknown option: {flag}; " + (f"did you mean {close[0]}?" if close else "see --help")
                )
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise ValueError; argparse would print the usage and exit."""
        raise ValueError(f"{message}; see --help")


def main() -> None:
    """Print the tables, and write the report if --output_dir is given."""
    parser = _Parser(
        prog="python -m cocos.report",
        usage="%(prog)s EVALUATION [EVALUATION ...] [--baseline NAME] [--output_dir FOLDER]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "evaluations",
        metavar="EVALUATION",
        nargs="+",
        type=Path,
        help="output folder of test.py; the tables show its name",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="name of the evaluation with which the others are compared; by default the first",
    )
    parser.add_argument(
        "--output_dir",
        metavar="FOLDER",
        type=Path,
        help="folder for report.html, report.md and the charts; without it, the tables are only printed",
    )
    options = parser.parse_args()

    # Imported here, so that Ctrl-C is one line from the start and errors in options do not wait.
    from cocos.report.comparison import compare_runs
    from cocos.report.finished_runs import load_runs
    from cocos.report.terminal import print_tables

    runs = load_runs(options.evaluations)
    comparisons = compare_runs(runs, options.baseline)
    print_tables(runs, comparisons)
    if options.output_dir:
        from cocos.report.report_files import save_report

        save_report(runs, options.output_dir, comparisons)
        print(f"written to {options.output_dir}: report.html report.md report.png plots")


if __name__ == "__main__":
    run_command(main)

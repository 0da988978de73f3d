"""Paired comparisons of evaluations, by problem.

    cocos report outputs/base outputs/boost outputs/cocos --output_dir outputs/report

Reads metrics.json, run.json and samples.jsonl in the output folders of test.py. docs/evaluation.md explains
the report.
"""

from pathlib import Path

from cocos.config.command_line import PlainParser


def report_parser() -> PlainParser:
    """Return the parser of the options."""
    parser = PlainParser(
        usage="%(prog)s EVALUATION [EVALUATION ...] [--baseline NAME] [--output_dir FOLDER] "
        "[--inspect_dir FOLDER]",
        description=__doc__,
    )
    parser.add_argument(
        "evaluations",
        metavar="EVALUATION",
        nargs="+",
        type=Path,
        help="output folder of cocos eval, or a samples.jsonl alone; the tables show its name",
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
        help="folder for report.html, report.md and report.png; without it, the tables are only printed",
    )
    parser.add_argument(
        "--inspect_dir",
        metavar="FOLDER",
        type=Path,
        help="folder for a log of each evaluation in the format of inspect, for `inspect view`",
    )
    return parser


def main() -> None:
    """Write the report if --output_dir is given, and print the tables."""
    options = report_parser().parse_args()

    # Imported here, so that errors in options do not wait.
    from cocos.files.output_folder import check_output_folder
    from cocos.report.comparisons import compare_runs
    from cocos.report.contents import Report
    from cocos.report.finished_runs import load_runs
    from cocos.report.inspect_log import has_inspect_logs, save_inspect_log
    from cocos.report.report_files import is_report, print_tables, save_report

    if options.output_dir:
        check_output_folder(options.output_dir, is_report)
    if options.inspect_dir:
        check_output_folder(options.inspect_dir, has_inspect_logs, "--inspect_dir")
    runs = load_runs(options.evaluations)
    report = Report(runs, compare_runs(runs, options.baseline))
    if options.output_dir:  # before the tables, whose reader may close the pipe
        written = save_report(report, options.output_dir)
    for run in runs if options.inspect_dir else ():
        save_inspect_log(run, options.inspect_dir)
    print_tables(report)
    if options.output_dir:
        print(f"written to {options.output_dir}: {written}")
    elif not options.inspect_dir:
        print("give --output_dir FOLDER for report.html")

"""Convert a public data set or your own file to checked problems in MBPP format.

SOURCE is a public set: mbpp, mbpp-sanitized, humaneval, humanevalfix,
humanevalfix-docs, kodcode, opc-educational, leetcode, acecode, livecodebench,
bigcodebench, debugbench, codeio; or the format of your own file: jsonl, csv,
parquet; or OWNER/NAME, a data set on the Hugging Face hub; or repository, a
folder of Python code whose doctests and test files become problems.

Writes train.jsonl, validation.jsonl, test.jsonl, README.md, report.html and
manifest.json; also findings.jsonl if the checks find something, and
dropped.jsonl if rows are dropped. If it fails, it leaves no folder behind.

`cocos prepare check` checks prepared files, and `cocos prepare public`
prepares every public set. Each has its own --help.
"""

import argparse
import difflib
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from cocos.assembly import open_executor
from cocos.config.arguments import add_options
from cocos.config.command_line import PlainParser
from cocos.config.executor_options import ExecutorOptions
from cocos.dataprep.checks.findings import FINDING_KINDS
from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.code_base import DROPPED, REPOSITORY, code_base_source, describe_reasons, yields
from cocos.dataprep.data_set import journal_path, prepare_data_set
from cocos.dataprep.formats.conversion import MBPP_FIELDS, TEST_FORMS
from cocos.dataprep.hub import require_access, upload
from cocos.dataprep.preparation import CHECKS, PreparationOptions, PreparationReport, run_check
from cocos.dataprep.prepared_files import read_benchmarks, read_prepared
from cocos.dataprep.raw_files import fetch_raw_file
from cocos.dataprep.readers import input_files
from cocos.dataprep.sources import NOT_STATED, PUBLIC_SOURCES, Source, custom_source
from cocos.files.markdown import markdown_table
from cocos.problems import Problem

FILE_SOURCES = ("jsonl", "csv", "parquet", "repository")
USAGE = "%(prog)s SOURCE --output_dir FOLDER [--input FILE] [options]"
EXAMPLES = """examples:
  cocos prepare jsonl --input mine.jsonl --splits 0 0 1 \\
      --output_dir data/mine
  cocos prepare csv --input mine.csv --tests lines \\
      --columns text=question test_list=asserts --output_dir data/mine
  cocos prepare repository --input my_project \\
      --output_dir data/my_project
  cocos prepare mbpp --output_dir data/mbpp
  cocos prepare check data/mine \\
      --against humaneval=HumanEval.jsonl.gz
  cocos prepare public --output_dir data/public
"""


class _Parser(PlainParser):
    """Parser whose errors start with the option's name."""

    def error(self, message: str) -> NoReturn:
        super().error(message.removeprefix("argument "))


def preparation_options(args: argparse.Namespace) -> PreparationOptions:
    """Return the options of a preparation; raise ValueError for values out of range and missing files."""
    names = PreparationOptions.__dataclass_fields__
    values = {name: value for name, value in vars(args).items() if name in names and value is not None}
    return PreparationOptions(**values)


def convert_parser() -> _Parser:
    """Return the parser of the options for one data set."""
    result = _Parser(usage=USAGE, description=__doc__, epilog=EXAMPLES)
    result.add_argument("source", metavar="SOURCE", type=_source_name, help="see above")
    result.add_argument(
        "--output_dir", type=Path, required=True, metavar="FOLDER", help="new or empty folder for the files"
    )
    result.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="file, or folder of train, validation and test files (default: download from the hub)",
    )
    result.add_argument("--revision", metavar="ID", help="commit or tag on the hub (default: the newest)")
    _add_own_set_options(result)
    _add_output_options(result)
    _add_check_options(result)
    return result


def check_parser() -> _Parser:
    """Return the parser of the options of `check`."""
    result = _Parser(
        usage="%(prog)s check FILE [FILE ...] [options]",
        description="Run the checks on prepared files or folders. Exit with status 1 if they find anything.",
    )
    result.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE", help="MBPP-format files, or folders of splits"
    )
    _add_check_options(result)
    return result


def public_parser() -> _Parser:
    """Return the parser of the options of `public`."""
    names = [
        source.name
        for source in PUBLIC_SOURCES.values()
        if not (source.is_large or source.executes_references)
    ]
    result = _Parser(
        usage="%(prog)s public --output_dir FOLDER [--input FOLDER]",
        description=f"Prepare {', '.join(names)},\n"
        "each in a folder of its name, and keep the raw files in raw/. No program is\n"
        "executed; `check` does that. Sets that exist are skipped, so that the same\n"
        "command continues after a failure. Exit with status 1 if a set failed.",
    )
    result.add_argument(
        "--output_dir", type=Path, required=True, metavar="FOLDER", help="folder of the prepared sets"
    )
    result.add_argument(
        "--input", type=Path, metavar="FOLDER", help="folder of the raw files (default: download them)"
    )
    result.set_defaults(checks=[])
    return result


def _add_own_set_options(parser: _Parser) -> None:
    group = parser.add_argument_group("your own set")
    group.add_argument(
        "--columns",
        nargs="+",
        default=[],
        metavar="FIELD=COLUMN",
        type=_column_pair,
        help="columns whose names differ from the MBPP fields, such as text=question",
    )
    group.add_argument(
        "--tests",
        choices=TEST_FORMS,
        default="list",
        help="format of test_list: a list, lines of asserts, HumanEval's check() or a pytest file",
    )
    group.add_argument("--licence", metavar="NAME", help="licence, for the card (default: not stated)")


def _add_output_options(parser: _Parser) -> None:
    # test_left_out is a finding about a test, not about the row.
    droppable = [kind for kind in FINDING_KINDS if kind != "test_left_out"]
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--splits",
        type=float,
        nargs=3,
        metavar="SHARE",
        help="shares of train, validation and test, for a set without splits (default: 0.8 0.1 0.1)",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=PreparationOptions.seed,
        metavar="N",
        help="seed of the splits and of the choice of hidden tests (default: 0)",
    )
    group.add_argument(
        "--hide_tests",
        type=float,
        default=PreparationOptions.hide_tests,
        metavar="N",
        help="tests per problem to score but never show to the model: a number, or a share if below 1; at "
        "least one test stays visible (default: 0)",
    )
    group.add_argument(
        "--profile",
        metavar="FILE",
        help="solve rates of a model, which become the field solve_rate: the profile.csv that "
        "scripts/select_problems.py writes",
    )
    group.add_argument(
        "--solved",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="keep the problems whose solve_rate, of --profile or of the rows, lies in this range",
    )
    group.add_argument(
        "--split_by_solved",
        action="store_true",
        help="write the problems below and above --solved to harder.jsonl and easier.jsonl",
    )
    group.add_argument(
        "--max_lines",
        type=int,
        default=PreparationOptions.max_lines,
        metavar="N",
        help="keep the problems whose reference has at most this many lines (default: 0, all)",
    )
    group.add_argument(
        "--dates",
        nargs=2,
        metavar="DAY",
        help="keep the problems of livecodebench that were published from the first day to the second",
    )
    group.add_argument(
        "--push_to_hub",
        metavar="NAME",
        help="upload the folder as the data set OWNER/NAME, private if it is new",
    )
    group.add_argument(
        "--drop",
        nargs="+",
        choices=droppable,
        default=[],
        metavar="KIND",
        help=f"drop rows with these findings: {', '.join(droppable)} (default for repository: "
        f"{', '.join(DROPPED)}; otherwise none)",
    )


def _add_check_options(parser: _Parser) -> None:
    group = parser.add_argument_group("checks")
    group.add_argument(
        "--checks",
        nargs="*",
        choices=CHECKS,
        default=list(CHECKS),
        metavar="CHECK",
        help=f"checks to run: {', '.join(CHECKS)}; without a value: none",
    )
    group.add_argument(
        "--against",
        nargs="+",
        default=[],
        metavar="NAME",
        help="benchmarks to compare with: public sets such as mbpp, their raw files such as "
        "humaneval=HumanEval.jsonl.gz, or MBPP-format files",
    )
    add_options(parser.add_argument_group(ExecutorOptions.group), ExecutorOptions)


def _source_name(text: str) -> str:
    known = (*PUBLIC_SOURCES, *FILE_SOURCES)
    if text in known or "/" in text:
        return text
    close = difflib.get_close_matches(text, (*known, "check", "public"), n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise argparse.ArgumentTypeError(
        f"unknown source {text!r}; {hint}choose one of {', '.join(known)}, or OWNER/NAME on the hub"
    )


def _column_pair(text: str) -> tuple[str, str]:
    field, _, column = text.partition("=")
    if field not in MBPP_FIELDS or not column:
        raise argparse.ArgumentTypeError(f"{text}: give FIELD=COLUMN with one of {', '.join(MBPP_FIELDS)}")
    return field, column


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    commands = {"check": (check_parser, check), "public": (public_parser, prepare_public)}
    if argv[:1] and argv[0] in commands:
        make_parser, command = commands[argv[0]]
        args = make_parser().parse_args(argv[1:])
    else:
        command = convert
        args = convert_parser().parse_args(argv)
    return command(args, preparation_options(args))


def convert(args: argparse.Namespace, options: PreparationOptions) -> int:
    """Prepare one data set: write its splits, card and manifest."""
    source = _source(args)
    inputs: list[tuple[Path, str | None]] = []
    if source.name == REPOSITORY:
        options = replace(options, drop=options.drop or DROPPED)
    if args.input:
        is_folder = source.name in (REPOSITORY, "debugbench")
        inputs = [(args.input, None)] if is_folder else input_files(args.input)
    if not inputs and not source.hub:
        raise ValueError(f"--input is missing; give the {source.name} file to read")
    if args.revision and inputs:
        raise ValueError("--revision selects a commit on the hub; leave it out with --input")
    if args.splits and (source.splits or any(split for _, split in inputs)):
        raise ValueError(f"--splits: {args.input or source.name} has its own splits; leave the option out")
    if args.push_to_hub:
        require_access(args.push_to_hub)
    report = prepare_data_set(source, inputs, options, args.output_dir, args.revision, open_executor)
    print(
        f"{report.rows_in} rows read, {report.dropped.total()} dropped, {_describe(report.counts)}; "
        f"written to {args.output_dir}"
    )
    if source.name == REPOSITORY:
        _print_yields(args.output_dir)
    for kind, count in sorted(report.findings.items()):
        print(f"{count} {kind}: {FINDING_KINDS[kind]} (findings.jsonl)")
    if args.push_to_hub:
        print(f"uploaded to {upload(args.output_dir, args.push_to_hub, source)}")
    return 0


LONGEST_TABLE = 20


def _print_yields(folder: Path) -> None:
    """Print the problems and the reasons of the files of a code base, those with most of both first."""
    rows = sorted(yields(folder), key=lambda row: -row[1] - row[2].total())
    total: Counter[str] = sum((reasons for _, _, reasons in rows), Counter())
    shown, others = rows[:LONGEST_TABLE], rows[LONGEST_TABLE:]
    cells = [(path, str(count), describe_reasons(reasons, 3)) for path, count, reasons in shown]
    if others:
        cells.append((f"{len(others)} other files", str(sum(row[1] for row in others)), "see yields.csv"))
    cells.append(("all", str(sum(row[1] for row in rows)), describe_reasons(total, 8)))
    print(markdown_table(("file", "problems", "not, and why"), cells))


def check(args: argparse.Namespace, options: PreparationOptions) -> int:
    """Run the checks on prepared data sets; return 1 if there are findings."""
    # The first pass validates every row, so that a malformed one is reported before the slow checks start.
    counts = Counter(split for split, _ in read_prepared(args.paths))
    benchmarks = list(read_benchmarks(options.against))
    print(_describe(counts))
    report = PreparationReport(Path(), counts=counts)
    path = journal_path(args.paths[0])
    is_kept = "references" in options.checks and os.access(path.parent, os.W_OK)
    with Journal(path if is_kept else None) as journal:
        _print_findings(args.paths, benchmarks, options, report, journal)
    summary = ", ".join(f"{count} {kind}" for kind, count in sorted(report.findings.items()))
    print(summary or "nothing found")
    return int(bool(report.findings))


def _print_findings(
    paths: Sequence[Path],
    benchmarks: Sequence[tuple[str, Problem]],
    options: PreparationOptions,
    report: PreparationReport,
    journal: Journal,
) -> None:
    """Run the checks on prepared data sets; print and count the findings."""
    for name in options.checks:
        problems = read_prepared(paths)
        for finding in run_check(name, problems, benchmarks, options, report, journal, open_executor):
            report.findings[finding.kind] += 1
            other = finding.other and f" as {finding.other}"
            print(f"{finding.kind}: {finding.split}/{finding.task_id}: {finding.detail}{other}")


def prepare_public(args: argparse.Namespace, options: PreparationOptions) -> int:
    """Prepare every public set that is missing; return 1 if one of them failed."""
    if args.input and not args.input.is_dir():
        raise ValueError(f"--input {args.input}: no such folder; give the folder of the raw files")
    failed = 0
    for source in PUBLIC_SOURCES.values():
        if source.is_large or source.executes_references:
            continue
        folder = args.output_dir / source.name
        try:
            raw = fetch_raw_file(source, args.output_dir / "raw", args.input)
            if folder.exists():
                print(f"{source.name}: skipped; {folder} exists")
                continue
            report = prepare_data_set(source, [(raw, None)], options, folder)
            print(f"{source.name}: {_describe(report.counts)}; written to {folder}")
        except (ValueError, OSError) as error:
            failed += 1
            print(f"{source.name}: failed: {' '.join(str(error).split())}", file=sys.stderr)
    return int(failed > 0)


def _describe(counts: Counter[str]) -> str:
    return ", ".join(f"{split} {count}" for split, count in counts.items())


def _source(args: argparse.Namespace) -> Source:
    if args.source == REPOSITORY:
        return code_base_source(args.input, args.licence)
    fields = Counter(field for field, _ in args.columns)
    if twice := [field for field, count in fields.items() if count > 1]:
        raise ValueError(f"--columns names {twice[0]} {fields[twice[0]]} times; give it one column")
    if args.source not in PUBLIC_SOURCES:
        return custom_source(args.source, dict(args.columns), args.tests, args.licence or NOT_STATED)
    if args.columns or args.tests != "list" or args.licence:
        raise ValueError(
            f"--columns, --tests and --licence describe your own set; leave them out for {args.source}"
        )
    return PUBLIC_SOURCES[args.source]

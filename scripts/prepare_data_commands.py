"""The commands of prepare_data.py: convert a data set, check prepared files, prepare the public sets."""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from prepare_data_options import check_parser, convert_parser, preparation_options, public_parser

from cocos.dataprep.checks.duplicates import FINDING_KINDS
from cocos.dataprep.code_base import DROPPED, REPOSITORY, code_base_source, describe_reasons, yields
from cocos.dataprep.data_set import prepare_data_set
from cocos.dataprep.preparation import PreparationOptions, PreparationReport, run_check
from cocos.dataprep.prepared_files import read_prepared
from cocos.dataprep.readers import fetch_raw_file, input_files
from cocos.dataprep.sources import PUBLIC_SOURCES, Source, custom_source
from cocos.files.markdown import markdown_table


def run(argv: list[str], description: str | None) -> int:
    """Run the command that the arguments name; return the exit status."""
    commands = {"check": (check_parser, check), "public": (public_parser, prepare_public)}
    if argv[:1] and argv[0] in commands:
        make_parser, command = commands[argv[0]]
        args = make_parser().parse_args(argv[1:])
    else:
        command = convert
        args = convert_parser(description).parse_args(argv)
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
    report = prepare_data_set(source, inputs, options, args.output_dir, args.revision)
    print(
        f"{report.rows_in} rows read, {report.dropped.total()} dropped, {_describe(report.counts)}; "
        f"written to {args.output_dir}"
    )
    if source.name == REPOSITORY:
        _print_yields(args.output_dir)
    for kind, count in sorted(report.findings.items()):
        print(f"{count} {kind}: {FINDING_KINDS[kind]} (findings.jsonl)")
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
    print(_describe(counts))
    report = PreparationReport(Path(), counts=counts)
    for name in options.checks:
        for finding in run_check(name, read_prepared(args.paths), options, report):
            report.findings[finding.kind] += 1
            other = finding.other and f" as {finding.other}"
            print(f"{finding.kind}: {finding.split}/{finding.task_id}: {finding.detail}{other}")
    summary = ", ".join(f"{count} {kind}" for kind, count in sorted(report.findings.items()))
    print(summary or "nothing found")
    return int(bool(report.findings))


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
        return code_base_source(args.licence or "not stated")
    if args.source not in PUBLIC_SOURCES:
        return custom_source(args.source, dict(args.columns), args.tests, args.licence or "not stated")
    if args.columns or args.tests != "list" or args.licence:
        raise ValueError(
            f"--columns, --tests and --licence describe your own set; leave them out for {args.source}"
        )
    return PUBLIC_SOURCES[args.source]

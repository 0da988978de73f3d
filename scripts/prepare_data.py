"""Convert a public data set or your own file to problems in MBPP format, and check them.

    python scripts/prepare_data.py mbpp --input mbpp.jsonl --output_dir data/mbpp
    python scripts/prepare_data.py csv --input mine.csv --columns text=question --output_dir data/mine
    python scripts/prepare_data.py check data/mbpp --against humaneval=HumanEval.jsonl.gz
    python scripts/prepare_data.py public --output_dir data/public

SOURCE is mbpp, mbpp-sanitized, humaneval, humanevalfix, humanevalfix-docs or kodcode; jsonl, csv or parquet
for your own file; or OWNER/NAME for a data set on the Hugging Face hub. The command writes train.jsonl,
validation.jsonl, test.jsonl, dataset_card.md and manifest.json. If the checks find something, it also writes
findings.jsonl, and if rows are dropped, dropped.jsonl. If it fails, it leaves no folder behind.

`check` checks prepared files, and `public` prepares the public sets. Each has its own --help.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from prepare_data_options import check_parser, convert_parser, preparation_options, public_parser
from tqdm import tqdm

from cocos.dataprep.dataset_card import save_card
from cocos.dataprep.findings import FINDING_KINDS
from cocos.dataprep.formats.conversion import MBPP_FIELDS
from cocos.dataprep.output_folder import new_folder
from cocos.dataprep.preparation import (
    PreparationOptions,
    PreparationReport,
    prepare,
    read_prepared,
    run_check,
)
from cocos.dataprep.raw_files import fetch_raw_file
from cocos.dataprep.readers import RawRow, input_files, read_file, read_hub
from cocos.dataprep.sources import PUBLIC_SOURCES, Source, custom_source
from cocos.entry_point import run_command

FILE_SOURCES = ("jsonl", "csv", "parquet")


def main(argv: list[str]) -> int:
    """Run the command that the arguments name; return the exit status."""
    commands = {"check": (check_parser, check), "public": (public_parser, prepare_public)}
    if argv[:1] and argv[0] in commands:
        make_parser, command = commands[argv[0]]
        args = make_parser().parse_args(argv[1:])
    else:
        command = convert
        args = convert_parser(__doc__).parse_args(argv)
    return command(args, preparation_options(args))


def convert(args: argparse.Namespace, options: PreparationOptions) -> int:
    """Prepare one data set: write its splits, card and manifest."""
    source = _source(args)
    inputs = input_files(args.input) if args.input else []
    if not inputs and not source.hub:
        raise ValueError(f"--input is missing; give the {source.name} file to read")
    report = _write_folder(source, inputs, options, args.output_dir, args.revision)
    print(
        f"{report.rows_in} rows read, {report.dropped.total()} dropped, {_describe(report.counts)}; "
        f"written to {args.output_dir}"
    )
    for kind, count in sorted(report.findings.items()):
        print(f"{count} {kind}: {FINDING_KINDS[kind]} (findings.jsonl)")
    return 0


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
    failed = 0
    for source in PUBLIC_SOURCES.values():
        folder = args.output_dir / source.name
        if not source.raw_file:
            continue
        try:
            raw = fetch_raw_file(source, args.output_dir / "raw", args.input)
            if folder.exists():
                print(f"{source.name}: skipped; {folder} exists")
                continue
            report = _write_folder(source, [(raw, None)], options, folder, None)
            print(f"{source.name}: {_describe(report.counts)}; written to {folder}")
        except (ValueError, OSError) as error:
            failed += 1
            print(f"{source.name}: failed: {' '.join(str(error).split())}", file=sys.stderr)
    return int(failed > 0)


def _write_folder(
    source: Source,
    inputs: list[tuple[Path, str | None]],
    options: PreparationOptions,
    output_dir: Path,
    revision: str | None,
) -> PreparationReport:
    """Prepare a data set in a new folder."""
    try:
        with new_folder(output_dir) as folder:
            rows = tqdm(_rows(source, inputs, revision), desc="rows", unit=" rows")
            report = prepare(rows, source, options, folder)
            save_card(report, source, options, [path for path, _ in inputs], revision)
    except KeyboardInterrupt:
        print(f"{output_dir} was not written", file=sys.stderr)
        raise
    return report


def _rows(source: Source, inputs: list[tuple[Path, str | None]], revision: str | None) -> Iterator[RawRow]:
    if not inputs:
        assert source.hub
        yield from read_hub(*source.hub, revision)
    for path, split in inputs:
        yield from read_file(path, split)


def _describe(counts: Counter[str]) -> str:
    return ", ".join(f"{split} {count}" for split, count in counts.items())


def _source(args: argparse.Namespace) -> Source:
    columns = dict(pair.partition("=")[::2] for pair in args.columns)
    if bad := [field for field in columns if field not in MBPP_FIELDS or not columns[field]]:
        raise ValueError(f"--columns {bad[0]}: give FIELD=COLUMN with one of {', '.join(MBPP_FIELDS)}")
    if args.source in PUBLIC_SOURCES:
        if columns or args.tests != "list" or args.licence:
            raise ValueError(
                f"--columns, --tests and --licence describe your own set; leave them out for {args.source}"
            )
        return PUBLIC_SOURCES[args.source]
    if args.source not in FILE_SOURCES and "/" not in args.source:
        known = ", ".join((*PUBLIC_SOURCES, *FILE_SOURCES))
        raise ValueError(f"unknown source {args.source!r}; choose one of {known}, or OWNER/NAME on the hub")
    return custom_source(args.source, columns, args.tests, args.licence or "not stated")


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))

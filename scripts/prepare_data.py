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

from tqdm import tqdm

from cocos.dataprep.dataset_card import save_card
from cocos.dataprep.findings import FINDING_KINDS
from cocos.dataprep.formats.conversion import MBPP_FIELDS, TEST_FORMS
from cocos.dataprep.output_folder import new_folder
from cocos.dataprep.preparation import (
    CHECKS,
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
        args = parser().parse_args(argv)
    return command(args, _options(args))


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


def _options(args: argparse.Namespace) -> PreparationOptions:
    """Return the options of a preparation; raise ValueError for numbers out of range."""
    fields = PreparationOptions.__dataclass_fields__
    values = {name: value for name, value in vars(args).items() if name in fields}
    options = PreparationOptions(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    )
    if options.hide_tests < 0 or (options.hide_tests > 1 and options.hide_tests % 1):
        raise ValueError(
            f"--hide_tests {options.hide_tests:g}: give a whole number of tests, or a share below 1"
        )
    if min(options.splits) < 0 or not any(options.splits):
        raise ValueError("--splits: give three shares of 0 or more, not all 0")
    if options.num_seeds < 1 or options.slow_s <= 0 or not 0 < options.similarity <= 1:
        raise ValueError("--num_seeds must be 1 or more, --slow_s above 0, --similarity in (0, 1]")
    return options


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options for one data set."""
    result = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    for flag, help_, more in (
        ("source", "public set, jsonl, csv, parquet, or OWNER/NAME on the hub", {"metavar": "SOURCE"}),
        (
            "--input",
            "file, or folder of train, validation and test files (default: download from the hub)",
            {"type": Path},
        ),
        (
            "--output_dir",
            "folder to create; it may exist if it is empty",
            {"type": Path, "required": True},
        ),
        ("--revision", "commit or tag on the hub (default: the newest)", {}),
        (
            "--columns",
            "columns of your set whose names differ from the MBPP fields, such as text=question",
            {"nargs": "+", "default": [], "metavar": "FIELD=COLUMN"},
        ),
        (
            "--tests",
            "format of test_list in your set: a list, a program of asserts, HumanEval's check(), or a pytest "
            "file (default: list)",
            {"choices": TEST_FORMS, "default": "list"},
        ),
        ("--licence", "licence of your set, for its card (default: not stated)", {}),
    ):
        result.add_argument(flag, help=help_, **more)
    _add_output_options(result)
    return _add_check_options(result)


def check_parser() -> argparse.ArgumentParser:
    """Return the parser of the options of `check`."""
    result = argparse.ArgumentParser(
        prog="prepare_data.py check",
        allow_abbrev=False,
        description="Run the checks on prepared files or folders. Exit with status 1 if they find anything.",
    )
    result.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE", help="MBPP-format files, or folders of splits"
    )
    return _add_check_options(result)


def public_parser() -> argparse.ArgumentParser:
    """Return the parser of the options of `public`."""
    names = [source.name for source in PUBLIC_SOURCES.values() if source.raw_file]
    result = argparse.ArgumentParser(
        prog="prepare_data.py public",
        allow_abbrev=False,
        description=f"Prepare {', '.join(names[:-1])} and {names[-1]}, each in a folder of its name, and "
        "keep the raw files in raw/. No program is executed; `check` does that. Sets that exist are "
        "skipped, so that the same command continues after a failure. Exits with status 1 if a set failed.",
    )
    result.add_argument("--output_dir", type=Path, required=True, help="folder of the prepared sets")
    result.add_argument(
        "--input", type=Path, metavar="FOLDER", help="folder of the raw files (default: download them)"
    )
    result.set_defaults(checks=[])
    return result


def _add_output_options(to: argparse.ArgumentParser) -> None:
    # test_left_out is a finding about a test, not about the row.
    droppable = [kind for kind in FINDING_KINDS if kind != "test_left_out"]
    for flag, help_, more in (
        (
            "--splits",
            "shares of train, validation and test, for a set without standard splits (default: 0.8 0.1 0.1)",
            {"type": float, "nargs": 3, "default": list(PreparationOptions.splits), "metavar": "SHARE"},
        ),
        (
            "--seed",
            "seed of the splits and of the choice of hidden tests (default: 0)",
            {"type": int, "default": PreparationOptions.seed},
        ),
        (
            "--hide_tests",
            "number of tests per problem to hide, or their share if below 1; hidden tests are scored but "
            "never shown to the model, and at least one test stays visible (default: 0)",
            {"type": float, "default": PreparationOptions.hide_tests, "metavar": "N"},
        ),
        (
            "--drop",
            f"drop rows with these findings: {', '.join(droppable)}",
            {"nargs": "+", "choices": droppable, "default": [], "metavar": "KIND"},
        ),
    ):
        to.add_argument(flag, help=help_, **more)


def _add_check_options(to: argparse.ArgumentParser) -> argparse.ArgumentParser:
    for flag, help_, more in (
        (
            "--checks",
            "checks to run; without a value: none (default: both)",
            {"nargs": "*", "choices": CHECKS, "default": list(CHECKS)},
        ),
        (
            "--against",
            "benchmarks to compare the rows with: MBPP-format files, or raw files of public sets such as "
            "humaneval=HumanEval.jsonl.gz",
            {"nargs": "+", "default": [], "metavar": "NAME=FILE"},
        ),
        (
            "--num_seeds",
            "runs of each reference solution, with different random seeds (default: 3)",
            {"type": int, "default": PreparationOptions.num_seeds},
        ),
        (
            "--slow_s",
            "seconds above which a reference solution counts as slow (default: 1)",
            {"type": float, "default": PreparationOptions.slow_s},
        ),
        (
            "--similarity",
            "smallest Jaccard similarity of near duplicates, in (0, 1] (default: 0.8)",
            {"type": float, "default": PreparationOptions.similarity},
        ),
        (
            "--executor_workers",
            "programs to run at the same time (default: one per processor)",
            {"type": int},
        ),
        (
            "--sandbox",
            "isolation level, as in train.py (default: auto)",
            {"default": PreparationOptions.sandbox},
        ),
        ("--min_isolation", "weakest isolation level to accept, as in train.py", {}),
    ):
        to.add_argument(flag, help=help_, **more)
    return to


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))

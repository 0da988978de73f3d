"""Convert a public data set or your own file to checked problems in MBPP format.

SOURCE is a public set: mbpp, mbpp-sanitized, humaneval, humanevalfix,
humanevalfix-docs, humanevalplus, mbppplus, kodcode, opc-educational, leetcode,
acecode, livecodebench, bigcodebench, debugbench, codeio; or the format of your
own file: jsonl, csv, parquet; or OWNER/NAME, a data set on the Hugging Face
hub; or repository, a folder of Python code whose doctests and test files become
problems.

Writes train.jsonl, validation.jsonl, test.jsonl, README.md and manifest.json;
also findings.jsonl if the checks find something, and
dropped.jsonl if rows are dropped. If it fails, it leaves no folder behind.

`cocos prepare check` checks prepared files, and `cocos prepare public`
prepares every public set. Each has its own --help.
"""

import argparse
import difflib
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cocos.assembly.programs import open_executor
from cocos.commands.prepare_summary import describe_counts, print_summary
from cocos.commands.runner import exit_on_ctrl_c
from cocos.config.arguments import add_options
from cocos.config.command_line import PlainParser
from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.code_base import DROPPED, REPOSITORY, code_base_source
from cocos.dataprep.data_set import journal_path, prepare_data_set
from cocos.dataprep.exports import save_rows
from cocos.dataprep.named_sets import fetch_raw_file
from cocos.dataprep.options import CheckOptions, PreparationOptions, PrepareOptions
from cocos.dataprep.preparation import Checks, Preparation
from cocos.dataprep.preparation_report import PreparationReport
from cocos.dataprep.prepared_files import read_benchmarks, read_prepared
from cocos.dataprep.readers import SUFFIXES, input_files
from cocos.dataprep.row_hints import file_command
from cocos.dataprep.sources import NOT_STATED, PUBLIC_SOURCES, Source, custom_source
from cocos.files.output_folder import check_output_folder, new_folder

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


def convert_parser() -> PlainParser:
    """Return the parser of the options for one data set."""
    result = PlainParser(usage=USAGE, description=__doc__, epilog=EXAMPLES)
    result.add_argument("source", metavar="SOURCE", type=_source_name, help="see above")
    add_options(result, PrepareOptions)
    return result


def check_parser() -> PlainParser:
    """Return the parser of the options of `check`."""
    result = PlainParser(
        usage="%(prog)s check FILE [FILE ...] [options]",
        description="Run the checks on prepared files or folders. Exit with status 1 if they find anything.",
    )
    words = "MBPP-format files, or folders of splits"
    result.add_argument("paths", nargs="+", type=Path, metavar="FILE", help=words)
    add_options(result, CheckOptions)
    return result


def public_parser() -> PlainParser:
    """Return the parser of the options of `public`."""
    result = PlainParser(
        usage="%(prog)s public --output_dir FOLDER [--input FOLDER]",
        description=f"Prepare {', '.join(source.name for source in _small_sources())},\n"
        "each in a folder of its name, and keep the raw files in raw/. No program is\n"
        "executed; `check` does that. Sets that exist are skipped, so that the same\n"
        "command continues after a failure. Exit with status 1 if a set failed.",
    )
    words = "folder of the prepared sets"
    result.add_argument("--output_dir", type=Path, required=True, metavar="FOLDER", help=words)
    words = "folder of the raw files (default: download them)"
    result.add_argument("--input", type=Path, metavar="FOLDER", help=words)
    return result


def _small_sources() -> list[Source]:
    return [
        source for source in PUBLIC_SOURCES.values() if not (source.is_large or source.executes_references)
    ]


def _source_name(text: str) -> str:
    known = (*PUBLIC_SOURCES, *FILE_SOURCES)
    if text in known or "/" in text:
        return text
    close = difflib.get_close_matches(text, (*known, "check", "public"), n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise argparse.ArgumentTypeError(
        f"unknown source {text!r}; {hint}choose one of {', '.join(known)}, or OWNER/NAME on the hub"
    )


def _refuse_file_as_source(path: Path) -> None:
    """Raise ValueError for the path of a file or a folder, with the command that it needs.

    A folder owner/name is the data set of the hub of that name, as `datasets` reads it.
    """
    if path.exists() and not (path.is_dir() and len(path.parts) == 2):
        what = "folder" if path.is_dir() else "file"
        raise ValueError(
            f"{path} is a {what}; SOURCE is its format, and --input the {what}: {file_command(path)}"
        )
    if path.name.lower().removesuffix(".gz").endswith(tuple(f".{suffix}" for suffix in SUFFIXES)):
        raise ValueError(f"{path}: no such file; SOURCE is a format, and --input the file")


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["check"]:
        args = vars(check_parser().parse_args(argv[1:]))
        return check(args.pop("paths"), CheckOptions(**args))
    if argv[:1] == ["public"]:
        given = public_parser().parse_args(argv[1:])
        return prepare_public(given.output_dir, given.input)
    if argv and argv[0] not in (*PUBLIC_SOURCES, *FILE_SOURCES) and not argv[0].startswith("-"):
        _refuse_file_as_source(Path(argv[0]))
    args = vars(convert_parser().parse_args(argv))
    return convert(args.pop("source"), PrepareOptions(**args), argv)


def convert(name: str, options: PrepareOptions, words: Sequence[str]) -> int:
    """Prepare one data set: write its splits, card and manifest.

    Args:
        words: Words of the command, of which the one that drops the rows with findings is made.

    """
    source, output_dir = _source(name, options), Path(options.output_dir)
    inputs: list[tuple[Path, str | None]] = []
    if name == REPOSITORY:
        options = replace(options, drop=options.drop or list(DROPPED))
    if options.input:
        inputs = [(options.input, None)] if source.read else input_files(options.input)
    if not inputs and not source.hub:
        raise ValueError(f"--input is missing; give the {name} file to read")
    if options.revision and inputs:
        raise ValueError("--revision selects a commit on the hub; leave it out with --input")
    if tuple(options.splits) != PreparationOptions.splits and (
        source.splits or any(split for _, split in inputs)
    ):
        raise ValueError(f"--splits: {options.input or name} has its own splits; leave the option out")
    with _output_folder(output_dir, options) as (folder, journal):
        report = PreparationReport(folder)
        preparation = Preparation(options, report, journal, open_executor, source)
        prepare_data_set(preparation, inputs, options.revision)
        if options.to:
            save_rows(folder, options.to)
    print_summary(report, output_dir, name, options, words)
    return 0


@contextmanager
def _output_folder(output_dir: Path, options: PreparationOptions) -> Iterator[tuple[Path, Journal]]:
    """Yield the folder to write and the journal of its check; Ctrl-C removes what is unfinished."""
    kept = journal_path(output_dir) if options.executes else None
    with new_folder(output_dir) as folder, Journal(kept) as journal:

        def discard() -> str:
            shutil.rmtree(folder, ignore_errors=True)
            is_begun = kept is not None and kept.exists()
            continues = "; the same command continues the checks" * is_begun
            return f"{output_dir} was not written{continues}"

        former_handler = exit_on_ctrl_c(discard)
        try:
            yield folder, journal
        finally:
            signal.signal(signal.SIGINT, former_handler)


def check(paths: Sequence[Path], options: CheckOptions) -> int:
    """Run the checks on prepared data sets; return 1 if there are findings."""
    # The first pass validates every row, so that a malformed one is reported before the slow checks start.
    counts = Counter(split for split, _ in read_prepared(paths))
    benchmarks = list(read_benchmarks(options.against))
    print(describe_counts(counts))
    report = PreparationReport(Path(), counts=counts)
    path = journal_path(paths[0])
    is_kept = options.executes and os.access(path.parent, os.W_OK)
    with Journal(path if is_kept else None) as journal:
        checks = Checks(options, report, journal, open_executor)
        for name in options.checks:
            problems = read_prepared(paths)
            for finding in checks.run(name, problems, benchmarks):
                report.findings[finding.kind] += 1
                print(finding)
    summary = ", ".join(f"{count} {kind}" for kind, count in sorted(report.findings.items()))
    print(summary or "nothing found")
    return int(bool(report.findings))


def prepare_public(output_dir: Path, raw_folder: Path | None) -> int:
    """Prepare every public set that is missing; return 1 if one of them failed."""
    if raw_folder and not raw_folder.is_dir():
        raise ValueError(f"--input {raw_folder}: no such folder; give the folder of the raw files")
    options = PreparationOptions(checks=())
    failed = 0
    check_output_folder(output_dir, lambda folder: (folder / "raw").is_dir())  # of an earlier call
    for source in _small_sources():
        folder = output_dir / source.name
        try:
            raw = fetch_raw_file(source, output_dir / "raw", raw_folder)
            if folder.exists():
                print(f"{source.name}: skipped; {folder} exists")
                continue
            with _output_folder(folder, options) as (partial, journal):
                report = PreparationReport(partial)
                prepare_data_set(Preparation(options, report, journal, None, source), [(raw, None)])
            print(f"{source.name}: {describe_counts(report.counts)}; written to {folder}")
        except (ValueError, OSError) as error:
            failed += 1
            print(f"{source.name}: failed: {' '.join(str(error).split())}", file=sys.stderr)
    return int(failed > 0)


def _source(name: str, options: PrepareOptions) -> Source:
    if name == REPOSITORY:
        return code_base_source(options.input, options.licence, tuple(options.program_packages))
    if name not in PUBLIC_SOURCES:
        columns = dict(pair.split("=", 1) for pair in options.columns)
        return custom_source(name, columns, options.tests, options.licence or NOT_STATED)
    if options.columns or options.tests != "list" or options.licence:
        raise ValueError(f"--columns, --tests and --licence describe your own set; leave them out for {name}")
    return PUBLIC_SOURCES[name]

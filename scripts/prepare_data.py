"""Problems in MBPP format, checked, from a public set or from your own file.

    python scripts/prepare_data.py mbpp --input mbpp.jsonl --output_dir data/mbpp
    python scripts/prepare_data.py csv --input mine.csv --columns text=question --output_dir data/mine
    python scripts/prepare_data.py check data/mbpp --against humaneval=HumanEval.jsonl.gz

SOURCE is mbpp, mbpp-sanitized, humaneval, humanevalfix, humanevalfix-docs, kodcode; jsonl, csv or parquet for
a file of yours; or OWNER/NAME on the hub. Writes train.jsonl, validation.jsonl, test.jsonl, dataset_card.md,
manifest.json, and findings.jsonl and dropped.jsonl where there is something to say. The folder appears whole,
or not at all.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs from a clone

from tqdm import tqdm

from cocos.dataprep.card import save_card
from cocos.dataprep.checks import KINDS
from cocos.dataprep.formats.conversion import FIELDS, TEST_FORMS
from cocos.dataprep.output_folder import appearing
from cocos.dataprep.preparation import CHECKS, Ledger, Options, examine, finished, prepare
from cocos.dataprep.readers import RawRow, input_files, read_file, read_hub
from cocos.dataprep.sources import PUBLIC, Source, custom
from cocos.executor import ExecutorError

FILE_SOURCES = ("jsonl", "csv", "parquet")


def main(argv: list[str]) -> int:
    """Prepare or check; returns the exit status."""
    is_check = argv[:1] == ["check"]
    args = check_parser().parse_args(argv[1:]) if is_check else parser().parse_args(argv)
    fields = Options.__dataclass_fields__
    options = Options(
        **{k: tuple(v) if isinstance(v, list) else v for k, v in vars(args).items() if k in fields}
    )
    _hold(options)
    return check(args.paths, options) if is_check else convert(args, options)


def convert(args: argparse.Namespace, options: Options) -> int:
    """Rows -> a folder of splits, card and manifest."""
    source = _source(args)
    inputs = input_files(args.input) if args.input else []
    if not inputs and not source.hub:
        raise ValueError(f"--input is missing; give the {source.name} file to read")
    with appearing(args.output_dir) as folder:
        ledger = prepare(
            tqdm(_rows(source, inputs, args.revision), desc="rows", unit=" rows"), source, options, folder
        )
        save_card(ledger, source, options, [path for path, _ in inputs], args.revision)
    counts = ", ".join(f"{split} {count}" for split, count in ledger.counts.items())
    print(
        f"{ledger.rows_in} rows read, {ledger.dropped.total()} dropped, {counts}; "
        f"written to {args.output_dir}"
    )
    for kind, count in sorted(ledger.found.items()):
        print(f"{count} {kind}: {KINDS[kind]} (findings.jsonl)")
    return 0


def check(paths: list[Path], options: Options) -> int:
    """Every check on finished sets; 1 where something was found."""
    counts = Counter(split for split, _ in finished(paths))  # every row is well formed, else this raises
    print(", ".join(f"{split} {count}" for split, count in counts.items()))
    ledger = Ledger(Path(), counts=counts)
    for name in options.checks:
        for found in examine(name, finished(paths), options, ledger):
            ledger.found[found.kind] += 1
            as_other = found.other and f" as {found.other}"
            print(f"{found.kind}: {found.split}/{found.task_id}: {found.detail}{as_other}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(ledger.found.items())) or "nothing found")
    return int(bool(ledger.found))


def _rows(source: Source, inputs: list[tuple[Path, str | None]], revision: str | None) -> Iterator[RawRow]:
    if not inputs:
        assert source.hub
        yield from read_hub(*source.hub, revision)
    for path, split in inputs:
        yield from read_file(path, split)


def _source(args: argparse.Namespace) -> Source:
    columns = dict(pair.partition("=")[::2] for pair in args.columns)
    if bad := [field for field in columns if field not in FIELDS or not columns[field]]:
        raise ValueError(f"--columns {bad[0]}: give FIELD=COLUMN with one of {', '.join(FIELDS)}")
    if args.source in PUBLIC:
        if columns or args.tests != "list" or args.licence:
            raise ValueError(
                f"--columns, --tests and --licence are for sets of your own; {args.source} is known"
            )
        return PUBLIC[args.source]
    if args.source not in FILE_SOURCES and "/" not in args.source:
        known = ", ".join((*PUBLIC, *FILE_SOURCES))
        raise ValueError(f"unknown source {args.source!r}; choose one of {known}, or OWNER/NAME on the hub")
    return custom(args.source, columns, args.tests, args.licence or "not stated")


def _hold(options: Options) -> None:
    """Refuse numbers that mean nothing."""
    if options.hide_tests < 0 or (options.hide_tests > 1 and options.hide_tests % 1):
        raise ValueError(
            f"--hide_tests {options.hide_tests:g}: give a whole number of tests, or a share below 1"
        )
    if min(options.splits) < 0 or not any(options.splits):
        raise ValueError("--splits: give three shares of 0 or more, not all 0")
    if options.num_seeds < 1 or options.slow_s <= 0 or not 0 < options.similarity <= 1:
        raise ValueError("--num_seeds is 1 or more, --slow_s above 0, --similarity above 0 and at most 1")


def parser() -> argparse.ArgumentParser:
    """The options of preparing."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    droppable = [kind for kind in KINDS if kind != "test_left_out"]
    for flag, help_, more in (
        ("source", "a public set, jsonl, csv, parquet, or OWNER/NAME on the hub", {"metavar": "SOURCE"}),
        ("--input", "file, or folder of train/validation/test files; the hub without it", {"type": Path}),
        ("--output_dir", "folder to make; it must not hold anything yet", {"type": Path, "required": True}),
        ("--revision", "commit or tag on the hub; the newest without it", {}),
        (
            "--columns",
            "where a set of yours has other names",
            {"nargs": "+", "default": [], "metavar": "FIELD=COLUMN"},
        ),
        (
            "--tests",
            "how your test_list is written: a list, a program of asserts, HumanEval's check(), or a pytest "
            "file (default: list)",
            {"choices": TEST_FORMS, "default": "list"},
        ),
        ("--licence", "of a set of yours, for its card", {}),
        (
            "--splits",
            "train, validation and test of a set without standard splits (default: 0.8 0.1 0.1)",
            {"type": float, "nargs": 3, "default": list(Options.splits), "metavar": "SHARE"},
        ),
        ("--seed", "of splits and hidden tests (default: 0)", {"type": int, "default": Options.seed}),
        (
            "--hide_tests",
            "tests per problem that are scored and never shown: a number, or below 1 a share; one always "
            "stays visible (default: 0)",
            {"type": float, "default": Options.hide_tests, "metavar": "N"},
        ),
        (
            "--drop",
            f"leave such rows out, by name: {', '.join(droppable)}",
            {"nargs": "+", "choices": droppable, "default": [], "metavar": "KIND"},
        ),
    ):
        made.add_argument(flag, help=help_, **more)
    return _with_checks(made)


def check_parser() -> argparse.ArgumentParser:
    """The options of checking a finished set."""
    made = argparse.ArgumentParser(
        prog="prepare_data.py check",
        allow_abbrev=False,
        description="Every check on finished files or folders; exit status 1 where one finds something.",
    )
    made.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE", help="MBPP-format files, or folders of splits"
    )
    return _with_checks(made)


def _with_checks(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    for flag, help_, more in (
        (
            "--checks",
            "what is checked beyond the format; none with no value (default: both)",
            {"nargs": "*", "choices": CHECKS, "default": list(CHECKS)},
        ),
        (
            "--against",
            "benchmarks that the set must not overlap: humaneval=HumanEval.jsonl.gz, or an MBPP-format file",
            {"nargs": "+", "default": [], "metavar": "NAME=FILE"},
        ),
        ("--num_seeds", "runs per reference (default: 3)", {"type": int, "default": Options.num_seeds}),
        (
            "--slow_s",
            "a reference is slow above it, in seconds (default: 1)",
            {"type": float, "default": Options.slow_s},
        ),
        (
            "--similarity",
            "near from this Jaccard similarity on (default: 0.8)",
            {"type": float, "default": Options.similarity},
        ),
        ("--executor_workers", "programs run at a time (default: all processors)", {"type": int}),
        ("--sandbox", "isolation level, as in train.py (default: auto)", {"default": Options.sandbox}),
        ("--min_isolation", "refuse to execute below this level", {}),
    ):
        made.add_argument(flag, help=help_, **more)
    return made


def run(argv: list[str]) -> int:
    """The same; what the user can mend, and an interruption, are one line instead of a traceback."""
    try:
        return main(argv)
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        return 130
    except (ValueError, OSError, ExecutorError) as error:
        if os.environ.get("COCOS_TRACEBACK"):
            raise
        print(f"error: {' '.join(str(error).split())} (COCOS_TRACEBACK=1 shows where)", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

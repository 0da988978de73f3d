"""Options of prepare_data.py: the parsers of its commands, and the check of their values."""

import argparse
from pathlib import Path

from cocos.dataprep.findings import FINDING_KINDS
from cocos.dataprep.formats.conversion import TEST_FORMS
from cocos.dataprep.preparation import CHECKS, PreparationOptions
from cocos.dataprep.sources import PUBLIC_SOURCES


def preparation_options(args: argparse.Namespace) -> PreparationOptions:
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


def convert_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of the options for one data set."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
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

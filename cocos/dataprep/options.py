"""Options of a preparation (the shares of the splits, your own set's columns), and of the checks alone."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, get_args

from cocos.config.executor_options import ExecutorOptions
from cocos.config.option import option, require_options
from cocos.dataprep.checks.findings import FINDING_KINDS, KEPT
from cocos.dataprep.formats.conversion import MBPP_FIELDS
from cocos.dataprep.prepared_files import benchmark_files

Check = Literal["references", "strength", "overlap"]
CHECKS = get_args(Check)  # in the order in which they run
DROPPABLE = [kind for kind in FINDING_KINDS if kind not in KEPT]
DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass
class CheckOptions(ExecutorOptions):
    """Options of the checks of problems."""

    group: ClassVar[str] = "checks"

    checks: tuple[Check, ...] = option(
        "data",
        ("references", "overlap"),
        "checks to run; without a value: none. `strength` takes the longest: it runs programs that differ "
        "from each reference in one place",
    )
    against: list[str] = option(
        "data",
        [],
        "benchmarks to compare with: public sets such as mbpp, their raw files such as "
        "humaneval=HumanEval.jsonl.gz, or MBPP-format files",
    )

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        benchmark_files(self.against)

    @property
    def executes(self) -> bool:
        """Return True if a check executes programs."""
        return not {"references", "strength"}.isdisjoint(self.checks)


@dataclass
class PreparationOptions(CheckOptions):
    """Options of a preparation that its manifest records."""

    group: ClassVar[str] = "what is written"

    splits: tuple[float, float, float] = option(
        "data", (0.8, 0.1, 0.1), "shares of train, validation and test, for a set without splits"
    )
    seed: int = option("sampling", 0, "seed of the splits and of the choice of hidden tests (default: 0)")
    hide_tests: float = option(
        "data",
        0,
        "tests per problem to score but never show to the model: a number, or a share if below 1; at "
        "least one test stays visible (default: 0)",
    )
    profile: str = option(
        "data",
        "",
        "solve rates of a model, which become the field solve_rate: the profile.csv that "
        "scripts/select_problems.py writes",
    )
    solved: tuple[float, float] | None = option(
        "data",
        None,
        "keep the problems whose solve_rate, of --profile or of the rows, lies between these two",
    )
    max_lines: int = option(
        "data", 0, "keep the problems whose reference has at most this many lines (default: 0, all)"
    )
    dates: tuple[str, str] | None = option(
        "data",
        None,
        "keep the problems of livecodebench that were published from the first day to the second",
    )
    drop: list[str] = option(
        "data",
        [],
        f"drop rows with these findings: {', '.join(DROPPABLE)} (default for repository: malformed, "
        "failing, flaky, untested, constant; otherwise none)",
    )
    strengthen: bool = option(
        "data", False, "add hidden tests that programs fail which pass all tests of a row, and should not"
    )

    def __post_init__(self) -> None:
        CheckOptions.__post_init__(self)
        if (self.strengthen or "weak" in self.drop) and "strength" not in self.checks:
            self.checks = (*self.checks, "strength")
        if not (0 <= self.hide_tests < 1 or (self.hide_tests >= 1 and self.hide_tests % 1 == 0)):
            raise ValueError(
                f"--hide_tests {self.hide_tests:g}: give a whole number of tests, or a share below 1"
            )
        _check_shares(self.splits)
        if unknown := [kind for kind in self.drop if kind not in DROPPABLE]:
            raise ValueError(f"--drop: invalid choice: {unknown[0]!r} (choose from {', '.join(DROPPABLE)})")
        if self.dates and not (all(map(DATE.fullmatch, self.dates)) and self.dates[0] <= self.dates[1]):
            raise ValueError(f"--dates {' '.join(self.dates)}: give two days as 2024-08-01 2025-01-31")
        if self.max_lines < 0:
            raise ValueError(f"--max_lines {self.max_lines}: give a number of lines, or 0 for no limit")
        if self.solved and not 0 <= self.solved[0] <= self.solved[1] <= 1:
            low, high = self.solved
            raise ValueError(f"--solved {low:g} {high:g}: give two numbers with 0 <= LOW <= HIGH <= 1")


@dataclass
class OwnSetOptions:
    """Description of the user's own set."""

    group: ClassVar[str] = "your own set"

    columns: list[str] = option(
        "data",
        [],
        "pairs FIELD=COLUMN of columns whose names differ from the MBPP fields, such as text=question",
    )
    tests: Literal["list", "lines", "check", "pytest"] = option(
        "data", "list", "format of test_list: a list, lines of asserts, HumanEval's check() or a pytest file"
    )
    licence: str = option("data", "", "licence, for the card (default: not stated)")


@dataclass
class PrepareOptions(OwnSetOptions, PreparationOptions):
    """Options of the preparation of one set."""

    group: ClassVar[str] = "files"

    output_dir: str = option("run", "", "new or empty folder for the files")
    input: Path | None = option(
        "data", None, "file, or folder of train, validation and test files (default: download from the hub)"
    )
    revision: str | None = option("data", None, "commit or tag on the hub (default: the newest)")
    to: Literal["verl", "openr1"] | None = option(
        "data", None, "write the problems also as rows of this trainer, in TO/SPLIT.parquet"
    )

    def __post_init__(self) -> None:
        PreparationOptions.__post_init__(self)
        require_options(self, "output_dir")
        for pair in self.columns:
            field, _, column = pair.partition("=")
            if field not in MBPP_FIELDS and column in MBPP_FIELDS:
                raise ValueError(f"--columns: {pair}: the field comes first; give {column}={field}")
            if field not in MBPP_FIELDS or not column:
                raise ValueError(f"--columns: {pair}: give FIELD=COLUMN with one of {', '.join(MBPP_FIELDS)}")
        fields = Counter(pair.partition("=")[0] for pair in self.columns)
        if twice := [field for field, count in fields.items() if count > 1]:
            raise ValueError(f"--columns names {twice[0]} {fields[twice[0]]} times; give it one column")


def _check_shares(shares: tuple[float, ...]) -> None:
    given, total = " ".join(f"{share:g}" for share in shares), sum(shares)
    if not all(share >= 0 for share in shares):
        raise ValueError(f"--splits {given}: give three shares of 0 or more that add up to 1")
    if not abs(total - 1) < 1e-6:
        scaled = [share / total for share in shares] if 0 < total < float("inf") else (0.8, 0.1, 0.1)
        example = " ".join(f"{share:.3g}" for share in scaled)
        raise ValueError(
            f"--splits {given}: the shares add up to {total:g}, not 1; give for example {example}"
        )

"""Preparation of a data set: convert, check, drop rows, and report; and the checks of a finished data set.

Every step streams. Memory holds only the ids and what the checks need to remember.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from cocos.config.executor_options import ExecutorOptions
from cocos.dataprep.checks.findings import Finding
from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.checks.reference_checks import check_references
from cocos.dataprep.checks.strength import check_strength
from cocos.dataprep.expected_values import with_expected_values
from cocos.dataprep.formats.conversion import Converted
from cocos.dataprep.options import CHECKS, CheckOptions, PreparationOptions
from cocos.dataprep.preparation_report import PreparationReport
from cocos.dataprep.prepared_files import read_benchmarks, require_new_id
from cocos.dataprep.readers import SPLITS, RawRow, read_solve_rates
from cocos.dataprep.sources import Source, convert_row
from cocos.dataprep.splits import (
    ASSIGNED_SPLITS,
    Assigned,
    assign_split,
    fill_empty_splits,
    hide_tests,
    split_point,
)
from cocos.executor import Executor
from cocos.files.json_lines import RowErrors, read_rows
from cocos.problems import DataError, Problem, problem_line, save_problems

MAX_FEW = 1000  # problems of a set in which a split may be filled by hand
StartExecutor = Callable[[ExecutorOptions], Executor]


@dataclass(frozen=True)
class Checks:
    """Checks of problems, each of which executes their programs with an executor of its own."""

    options: CheckOptions
    report: PreparationReport  # gives the total for the progress bar; receives isolation level and packages
    journal: Journal  # findings about references of an interrupted run
    start_executor: StartExecutor | None  # None if no program is executed

    def run(
        self, check: str, problems: Iterable[tuple[str, Problem]], benchmarks: Iterable[tuple[str, Problem]]
    ) -> Iterator[Finding]:
        """Yield the findings of one check.

        Args:
            benchmarks: (name, problem) of the benchmarks with which the problems are compared.

        """
        total = sum(self.report.counts.values()) or None
        with tqdm(problems, desc=check, unit=" problems", total=total) as bar:
            if check == "overlap":
                from cocos.dataprep.checks.overlap import find_overlap  # imports numpy

                yield from find_overlap(bar, benchmarks)
                return
            with self.open_executor() as executor:
                limits = self.options.program_limits
                conditions = (check, limits, executor.isolation, executor.packages, sys.version)
                self.journal.conditions = conditions
                run = check_references if check == "references" else check_strength
                yield from run(bar, executor, self.journal)

    def open_executor(self) -> Executor:
        """Return a new executor after writing its isolation level and packages into the report."""
        assert self.start_executor is not None, "references are executed"
        executor = self.start_executor(self.options)
        self.report.isolation, self.report.packages = executor.isolation, executor.packages
        return executor


@dataclass(frozen=True)
class Preparation(Checks):
    """Preparation of the rows of a source; the report names the folder."""

    options: PreparationOptions
    source: Source

    def prepare(self, rows: Iterable[RawRow]) -> None:
        """Write the splits, dropped.jsonl and findings.jsonl of a data set into the report's folder.

        Raises:
            DataError: There is no valid row, a row is malformed and `options.drop` does not include
                "malformed", or a split with a share above 0 gets no row.
            ExecutorError: The executor failed.

        """
        report, options = self.report, self.options
        if "overlap" in options.checks:
            import numpy  # noqa: F401 - if it is missing, before the work
        benchmarks = list(read_benchmarks(options.against))  # first: a mistake there is found before the work
        self._convert(rows)
        if not report.rows_in:
            raise DataError("there is no function or class with doctests or tests; give another folder")
        if not report.counts:
            raise DataError(
                f"none of the {report.rows_in} rows is valid; the first: {report.first_error}; repair the "
                "rows, or check that SOURCE names this data set"
            )
        for check in CHECKS:
            if check in options.checks:
                self._check(check, benchmarks)

    def _check(self, check: str, benchmarks: Sequence[tuple[str, Problem]]) -> None:
        """Run a check, and drop or strengthen rows before the next one, which must not see dropped ones."""
        report, options = self.report, self.options
        dropped: dict[tuple[str, str], Finding] = {}  # (split, task_id) -> first finding to drop it for
        added: dict[tuple[str, str], tuple[str, ...]] = {}  # (split, task_id) -> further hidden tests
        for finding in self.run(check, read_splits(report.folder), benchmarks):
            report.add_finding(finding)
            if finding.kind in options.drop:
                dropped.setdefault((finding.split, finding.task_id), finding)
            elif options.strengthen and finding.tests:
                added[finding.split, finding.task_id] = finding.tests
        _drop_rows(dropped, report)
        _add_tests(added, report.folder)
        if not report.counts:
            [(_, task_id), finding], *_ = dropped.items()
            reasons = ", ".join(f"{count} {kind}" for kind, count in report.dropped.items())
            raise DataError(
                f"no row is left ({reasons}); the last check dropped {task_id}: {finding.detail}; "
                "repair the rows, or --drop fewer kinds"
            )

    def _convert(self, rows: Iterable[RawRow]) -> None:
        """Write the converted rows to the files of their splits, and fill the report's counts."""
        report, options = self.report, self.options
        assigned: list[Assigned] = []
        files: dict[str, TextIO] = {}  # of the splits
        with ExitStack() as stack:
            is_executed = self.source.executes_references
            executor = stack.enter_context(self.open_executor()) if is_executed else None
            for split, converted in self._convertible(rows, executor):
                if not split:
                    point = split_point(converted, options.seed)
                    split = assign_split(point, options.splits)
                    if len(assigned) < MAX_FEW:
                        assigned.append(Assigned(point, split, converted.problem.task_id))
                report.add_edits(converted, split)
                if split not in files:
                    path = report.folder / f"{split}.jsonl"
                    files[split] = stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
                problem = hide_tests(converted.problem, options.hide_tests, options.seed)
                files[split].write(problem_line(problem))
                report.counts[split] += 1
        if assigned:
            if len(assigned) < MAX_FEW:
                _move_rows(fill_empty_splits(assigned, options.splits), report)
            _require_rows_in_splits(report.counts, options.splits)

    def _convertible(
        self, rows: Iterable[RawRow], executor: Executor | None
    ) -> Iterator[tuple[str | None, Converted]]:
        """Yield (split or None, problem) of the rows that are kept; raise DataError for malformed ones."""
        report, options = self.report, self.options
        seen: set[bytes] = set()
        rates = read_solve_rates(Path(options.profile)) if options.profile else {}
        errors = RowErrors()
        for raw in rows:
            report.rows_in += 1
            try:
                converted = self._converted(raw, rates, executor)
                require_new_id(converted.problem, raw.place, seen)
                split = self.source.standard_split(converted.problem, raw.place) or raw.split
            except DataError as error:
                add = report.add_malformed if "malformed" in options.drop else errors.add
                add(raw.place, error)
                continue
            report.add_row(converted)
            if unwanted := _unwanted(converted, options):
                report.add_unwanted(converted.problem.task_id, *unwanted)
            else:
                yield split, converted
        errors.raise_any("; --drop malformed leaves them out" if seen else "")
        if rates and not report.has_solve_rates:
            raise DataError(
                f"--profile {options.profile} contains none of the problems; give the profile of this set, "
                "whose task_ids are those of the rows"
            )

    def _converted(self, raw: RawRow, rates: Mapping[str, float], executor: Executor | None) -> Converted:
        """Return the problem of a row, with its solve rate and, if programs run, its expected values."""
        if isinstance(raw.row, DataError):
            raise raw.row
        converted = convert_row(self.source, raw.row, raw.place)
        if (rate := rates.get(converted.problem.task_id)) is not None:
            converted = converted._replace(problem=replace(converted.problem, solve_rate=round(rate, 4)))
        return with_expected_values(converted, raw.place, executor) if executor is not None else converted


def _unwanted(converted: Converted, options: PreparationOptions) -> tuple[str, str] | None:
    """Return the kind and the reason for which the options drop a row; None if it is kept."""
    problem = converted.problem
    if options.dates and not options.dates[0] <= converted.date <= options.dates[1]:
        return "date", f"published on {converted.date}" if converted.date else "the row has no date"
    num_lines = len(problem.code.strip().splitlines())
    if options.max_lines and num_lines > options.max_lines:
        return "long", f"the reference has {num_lines} lines"
    if options.solved:
        low, high = options.solved
        if problem.solve_rate is None:
            return "solve_rate", "no solve rate is known; give a --profile that contains the problem"
        if not low <= problem.solve_rate <= high:
            rate = f"solved in {problem.solve_rate:.0%} of the samples"
            return "solve_rate", f"{rate}, not in {low:.0%} to {high:.0%}"
    return None


def _move_rows(moves: Iterable[tuple[Assigned, str]], report: PreparationReport) -> None:
    """Move rows from the file of one split to that of another."""
    for row, split in moves:
        with open(report.folder / f"{split}.jsonl", "a", encoding="utf-8", newline="\n") as file:
            file.writelines(_take_rows(row.split, {row.task_id}, report))
        report.counts[split] += 1
        report.add_finding(Finding("moved", split, row.task_id, f"from {row.split}"))


def _drop_rows(dropped: dict[tuple[str, str], Finding], report: PreparationReport) -> None:
    """Remove dropped rows from the splits, and delete splits that become empty."""
    for split in sorted({split for split, _ in dropped}):
        task_ids = {task_id for of, task_id in dropped if of == split}
        for line in _take_rows(split, task_ids, report):
            finding = dropped[split, json.loads(line)["task_id"]]
            report.add_dropped(**{name: value for name, value in asdict(finding).items() if value})
        if not report.counts[split]:
            (report.folder / f"{split}.jsonl").unlink()
            del report.counts[split]


def _add_tests(added: Mapping[tuple[str, str], Sequence[str]], folder: Path) -> None:
    """Add hidden tests to the rows of the splits."""
    for split in sorted({split for split, _ in added}):
        path, stronger = folder / f"{split}.jsonl", folder / f"{split}.stronger"
        problems = (
            replace(p, hidden_test_list=(*p.hidden_test_list, *added.get((split, p.task_id), ())))
            for p in _read_split(path)
        )
        save_problems(problems, stronger)
        stronger.replace(path)


def _take_rows(split: str, task_ids: Collection[str], report: PreparationReport) -> Iterator[str]:
    """Remove rows from the file of a split; yield their lines."""
    path, kept = report.folder / f"{split}.jsonl", report.folder / f"{split}.kept"
    with open(path, encoding="utf-8") as old, open(kept, "w", encoding="utf-8", newline="\n") as new:
        for line in old:
            if json.loads(line)["task_id"] in task_ids:
                report.counts[split] -= 1
                yield line
            else:
                new.write(line)
    kept.replace(path)


def _require_rows_in_splits(counts: Counter[str], shares: tuple[float, float, float]) -> None:
    """Raise DataError if a split with a share above 0 has no row."""
    shares_by_split = dict(zip(ASSIGNED_SPLITS, shares, strict=True))
    if empty := [split for split, share in shares_by_split.items() if share and not counts[split]]:
        given = " ".join(f"{share:g}" for share in shares)
        raise DataError(
            f"the shares {given} leave {' and '.join(empty)} without a problem (there are "
            f"{counts.total()}, and a hash assigns each); for so few give --splits 0 0 1 (all in "
            "test.jsonl) or 1 0 0 (all in train.jsonl)"
        )


def read_splits(folder: Path) -> Iterator[tuple[str, Problem]]:
    """Yield (split, problem) of the splits that a preparation has written into a folder."""
    for split in SPLITS:
        if (path := folder / f"{split}.jsonl").exists():
            yield from ((split, problem) for problem in _read_split(path))


def _read_split(path: Path) -> Iterator[Problem]:
    for _, row in read_rows(path):
        assert isinstance(row, dict)
        lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
        # Not checked again: this run wrote the row.
        yield Problem(**row | lists | {"files": tuple(row.get("files", {}).items())})

"""The story of preparing a set: convert, check, drop what was asked for, write it down; and of checking a
finished one.

Streams: no step holds the problems, only their ids, and what the checks must remember.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tqdm import tqdm

from cocos.dataprep.checks import Finding, check_references
from cocos.dataprep.duplicates import overlaps
from cocos.dataprep.formats.conversion import Converted
from cocos.dataprep.hidden_tests import hide_tests
from cocos.dataprep.output_folder import Splits
from cocos.dataprep.readers import RawRow, input_files, read_file
from cocos.dataprep.sources import PUBLIC, SPLITS, Source
from cocos.dataprep.splits import deal
from cocos.executor import Executor
from cocos.files.json_lines import Place, read_rows
from cocos.problems import DataError, Problem, problem_from_row

CHECKS = ("references", "overlap")


@dataclass(frozen=True)
class Options:
    """How a set is dealt out and checked; `scripts/prepare_data.py --help` explains each."""

    splits: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    hide_tests: float = 0
    checks: tuple[str, ...] = CHECKS
    against: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    num_seeds: int = 3
    slow_s: float = 1.0
    similarity: float = 0.8
    sandbox: str = "auto"
    min_isolation: str | None = None
    executor_workers: int | None = None


@dataclass
class Ledger:
    """Where every row went: rows_in = rows_out + dropped."""

    folder: Path
    rows_in: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # split -> problems
    dropped: Counter[str] = field(default_factory=Counter)  # kind -> rows
    found: Counter[str] = field(default_factory=Counter)  # kind -> findings
    isolation: str | None = None

    def drop(self, kind: str, **row: str) -> None:
        """Name a row that is left out, in dropped.jsonl."""
        self.dropped[kind] += 1
        self._append("dropped.jsonl", {"kind": kind, **row})

    def note(self, finding: Finding) -> None:
        """Name a finding, in findings.jsonl."""
        self.found[finding.kind] += 1
        self._append("findings.jsonl", {k: v for k, v in asdict(finding).items() if v})

    def _append(self, name: str, row: dict) -> None:
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def prepare(rows: Iterable[RawRow], source: Source, options: Options, folder: Path) -> Ledger:
    """Fill a folder with the splits, dropped.jsonl and findings.jsonl.

    Raises:
        DataError: A row is malformed and `malformed` is not among what may be dropped.

    """
    ledger = Ledger(folder)
    _convert(rows, source, options, ledger)
    if not ledger.counts:
        raise DataError(f"{source.name}: no problem in it; expected one row or more ({ledger.rows_in} read)")
    for check in CHECKS:
        if check in options.checks:
            bad: dict[tuple[str, str], Finding] = {}
            for finding in examine(check, _written(folder), options, ledger):
                ledger.note(finding)
                if finding.kind in options.drop:
                    bad.setdefault((finding.split, finding.task_id), finding)
            _remove(bad, ledger)
    return ledger


def examine(
    check: str, problems: Iterable[tuple[str, Problem]], options: Options, ledger: Ledger
) -> Iterator[Finding]:
    """The findings of one check; the isolation that was in force is noted in the ledger."""
    bar = tqdm(problems, desc=check, unit=" problems", total=sum(ledger.counts.values()) or None)
    if check == "overlap":
        yield from overlaps(bar, _benchmarks(options.against), options.similarity)
        return
    with Executor(
        options.executor_workers, sandbox=options.sandbox, min_isolation=options.min_isolation
    ) as executor:
        ledger.isolation = executor.isolation
        yield from check_references(bar, executor, options.num_seeds, options.slow_s)


def finished(paths: Iterable[Path]) -> Iterator[tuple[str, Problem]]:
    """(split, problem) of finished files; a file that is named after a split is that split."""
    for path in paths:
        for file, split in input_files(path):
            seen: set[bytes] = set()
            stem = file.name.split(".")[0]
            for place, row in read_rows(file):
                problem = problem_from_row(row, place)
                _once(problem, place, seen)
                yield split or stem, problem


def _convert(rows: Iterable[RawRow], source: Source, options: Options, ledger: Ledger) -> None:
    seen: set[bytes] = set()
    with Splits(ledger.folder) as splits:
        for place, split, row in rows:
            ledger.rows_in += 1
            try:
                if isinstance(row, DataError):
                    raise row
                converted = source.convert(row, place)
                _once(converted.problem, place, seen)
                split = _split(converted, split, source, options, place)
            except DataError as error:
                if "malformed" not in options.drop:
                    raise
                detail = str(error).removeprefix(f"{place}: ")
                ledger.drop("malformed", place=Path(str(place)).name, detail=detail)
                continue
            for reason in converted.left_out:
                ledger.note(Finding("test_left_out", split, converted.problem.task_id, reason[:300]))
            splits.write(split, hide_tests(converted.problem, options.hide_tests, options.seed))
    ledger.counts = splits.counts


def _split(converted: Converted, split: str | None, source: Source, options: Options, place: Place) -> str:
    if source.split_of:
        return source.split_of(converted.problem, place)
    return split or deal(converted, options.splits, options.seed)


def _once(problem: Problem, place: Place, seen: set[bytes]) -> None:
    digest = hashlib.blake2b(problem.task_id.encode(), digest_size=12).digest()
    if digest in seen:
        raise DataError(f"{place}: task_id {problem.task_id!r} occurs twice; make every id unique")
    seen.add(digest)


def _written(folder: Path) -> Iterator[tuple[str, Problem]]:
    yield from finished(folder / f"{split}.jsonl" for split in SPLITS if (folder / f"{split}.jsonl").exists())


def _remove(bad: dict[tuple[str, str], Finding], ledger: Ledger) -> None:
    """Write the splits that hold bad rows anew without them."""
    for split in sorted({split for split, _ in bad}):
        path, kept = ledger.folder / f"{split}.jsonl", ledger.folder / f"{split}.kept"
        with open(path, encoding="utf-8") as old, open(kept, "w", encoding="utf-8", newline="\n") as new:
            for line in old:
                finding = bad.get((split, json.loads(line)["task_id"]))
                if finding is None:
                    new.write(line)
                else:
                    ledger.counts[split] -= 1
                    ledger.drop(**{name: value for name, value in asdict(finding).items() if value})
        kept.replace(path)
        if not ledger.counts[split]:
            path.unlink()
            del ledger.counts[split]


def _benchmarks(names: Iterable[str]) -> Iterator[tuple[str, Problem]]:
    """(name, problem) of benchmarks given as NAME=PATH, or as the path of an MBPP-format file."""
    for given in names:
        name, _, path = given.rpartition("=")
        if not name:
            yield from ((Path(path).name, problem) for _, problem in finished([Path(path)]))
        elif name not in PUBLIC:
            raise ValueError(
                f"--against {given}: unknown benchmark {name!r}; choose one of {', '.join(PUBLIC)}"
            )
        else:
            for file, _ in input_files(Path(path)):
                for place, _, row in read_file(file):
                    if isinstance(row, DataError):
                        raise row
                    yield name, PUBLIC[name].convert(row, place).problem

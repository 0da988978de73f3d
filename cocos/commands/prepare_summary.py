"""Summary that `cocos prepare` prints: counts, unused columns, findings, and the files of a code base."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from cocos.dataprep.checks.findings import FINDING_KINDS, KEPT, Finding
from cocos.dataprep.code_base import REPOSITORY
from cocos.dataprep.options import PrepareOptions
from cocos.dataprep.preparation import read_splits
from cocos.dataprep.preparation_report import PreparationReport
from cocos.dataprep.row_hints import columns_example
from cocos.files.json_lines import read_rows
from cocos.files.markdown import markdown_table

LONGEST_LIST, LONGEST_TABLE = 10, 20


def print_summary(
    report: PreparationReport, folder: Path, name: str, options: PrepareOptions, words: Sequence[str]
) -> None:
    """Print what a preparation has written, and what it has found.

    Args:
        folder: Folder of the finished set.
        name: Name of its source.
        words: Words of the command, of which the one that drops the rows with findings is made.

    """
    counts = f"{report.rows_in} rows read, {report.dropped.total()} dropped, {describe_counts(report.counts)}"
    print(f"{counts}; written to {folder}")
    if notes := _unused(report, options.columns):
        print(notes)
    if name == REPOSITORY:
        _print_yields(folder)
    for kind, count in sorted(report.findings.items()):
        print(f"{count} {kind}: {FINDING_KINDS[kind]} (findings.jsonl)")
    _print_findings(folder, report, options.drop, words)


def describe_counts(counts: Counter[str]) -> str:
    """Return the problems of each split. Example: `train 8, test 2`."""
    return ", ".join(f"{split} {count}" for split, count in counts.items())


def _print_findings(
    folder: Path, report: PreparationReport, dropped: Sequence[str], words: Sequence[str]
) -> None:
    """Print the first findings about rows that were kept, and the command that leaves these rows out."""
    kinds = [kind for kind in FINDING_KINDS if kind in report.findings and kind not in (*KEPT, *dropped)]
    if not kinds:
        return
    rows = (row for _, row in read_rows(folder / "findings.jsonl") if isinstance(row, dict))
    for row in islice((row for row in rows if row["kind"] in kinds), LONGEST_LIST):
        print(f"  {Finding(**row)}")
    if (more := sum(report.findings[kind] for kind in kinds) - LONGEST_LIST) > 0:
        print(f"  and {more} more in findings.jsonl")
    given = [
        word for word, last in zip(words, ("", *words), strict=False) if "--output_dir" not in (word, last)
    ]
    changed = ["--drop", *dropped, *kinds, "--output_dir", f"{folder}_dropped"]
    print(f"to leave these rows out: {shlex.join(['cocos', 'prepare', *given, *changed])}")


def _unused(report: PreparationReport, columns: Sequence[str]) -> str:
    """Return which columns gave no field, and that no problem has a reference; "" for neither."""
    names = sorted(report.unused)
    notes = [f"columns that are not used: {', '.join(names)}"] if names else []
    if not report.has_references:
        words = shlex.join(columns_example(names, ["code"], columns))
        example = f"; name its column: {words}" if names else ""
        notes.append(f"no problem has a reference, so none was checked{example}")
    return "; ".join(notes)


def _print_yields(folder: Path) -> None:
    """Print the problems and the reasons of the files of a code base, those with most of both first."""
    problems = Counter(problem.task_id.rpartition(":")[0] for _, problem in read_splits(folder))
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for _, row in read_rows(folder / "dropped.jsonl") if (folder / "dropped.jsonl").exists() else ():
        assert isinstance(row, dict)
        # Without the name before a reason, and the particulars after it.
        reason = re.split(r"[:;(]", row["detail"].partition(" ")[2])[0].strip()
        path = str(row.get("task_id") or row["place"]).rpartition(":")[0]
        reasons[path][reason if row["kind"] == "malformed" else row["kind"]] += 1
    files = sorted({*problems, *reasons}, key=lambda file: -problems[file] - reasons[file].total())
    cells = [(file, str(problems[file]), _most(reasons[file], 3)) for file in files[:LONGEST_TABLE]]
    if others := files[LONGEST_TABLE:]:
        num_problems = str(sum(problems[file] for file in others))
        cells.append((f"{len(others)} other files", num_problems, "see dropped.jsonl"))
    total: Counter[str] = sum(reasons.values(), Counter())
    cells.append(("all", str(problems.total()), _most(total, 8)))
    print(markdown_table(("file", "problems", "not, and why"), cells))


def _most(reasons: Counter[str], count: int) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in reasons.most_common(count))

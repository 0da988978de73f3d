"""Counts of a preparation, and the files that say which rows were dropped and what was found."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cocos.dataprep.checks.findings import Finding
from cocos.dataprep.formats.conversion import Converted
from cocos.files.json_lines import DataError, Place


@dataclass
class PreparationReport:
    """Result of a preparation. `rows_in` is the sum of `counts` and `dropped`."""

    folder: Path  # folder of dropped.jsonl and findings.jsonl
    rows_in: int = 0  # rows read
    counts: Counter[str] = field(default_factory=Counter)  # split -> problems
    dropped: Counter[str] = field(default_factory=Counter)  # kind -> dropped rows
    findings: Counter[str] = field(default_factory=Counter)  # kind -> findings
    isolation: str | None = None  # isolation level at which references were executed; None if they were not
    packages: tuple[str, ...] = ()  # third-party packages that references could import, with their versions
    unused: set[str] = field(default_factory=set)  # columns that give no field
    has_references: bool = False  # a problem had one
    has_solve_rates: bool = False  # a problem had one
    first_error: str = ""  # what was wrong with the first malformed row, or ""

    def add_dropped(self, kind: str, **row: str) -> None:
        """Count a dropped row and append it to dropped.jsonl.

        Args:
            kind: The kind of the finding for which it is dropped.
            row: What dropped.jsonl says about it.

        """
        self.dropped[kind] += 1
        self._append("dropped.jsonl", {"kind": kind, **row})

    def add_malformed(self, place: Place, error: DataError) -> None:
        """Count a dropped row that cannot be read, and keep the first error."""
        self.first_error = self.first_error or str(error)
        # Without the folder: the output must not depend on where the input was.
        short_place = Path(str(place)).name if isinstance(place.path, Path) else str(place)
        self.add_dropped("malformed", place=short_place, detail=str(error).removeprefix(f"{place}: "))

    def add_unwanted(self, task_id: str, kind: str, reason: str) -> None:
        """Count a row that the options drop, and keep the first reason."""
        self.first_error = self.first_error or reason
        self.add_dropped(kind, task_id=task_id, detail=reason)

    def add_row(self, converted: Converted) -> None:
        """Note what a converted row has."""
        self.unused.update(converted.unused)
        self.has_references |= bool(converted.problem.code.strip())
        self.has_solve_rates |= converted.problem.solve_rate is not None

    def add_edits(self, converted: Converted, split: str) -> None:
        """Add findings about what the conversion left out of a row."""
        for edit in converted.edits:
            self.add_finding(Finding("edited", split, converted.problem.task_id, edit))
        for reason in converted.left_out:
            self.add_finding(Finding("test_left_out", split, converted.problem.task_id, reason[:300]))

    def add_finding(self, finding: Finding) -> None:
        """Count a finding and append it to findings.jsonl."""
        self.findings[finding.kind] += 1
        self._append("findings.jsonl", {k: v for k, v in asdict(finding).items() if v})

    def _append(self, name: str, row: dict) -> None:
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

"""Findings about executed references, kept on the disk, so that an interrupted check continues."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TextIO

from cocos.files.durable import drop_torn_line
from cocos.problems import DataError, Problem, problem_to_row

SAVED_TOGETHER = 50  # problems per write; an interruption loses less than these


class Journal:
    """Findings by problem, appended to a file; a context manager.

    The file stays if the block is interrupted or the executor fails, and is removed otherwise. A changed
    problem, or another condition, gives another key, so what the file says is never wrong.

    Args:
        path: The file; None keeps nothing.

    Attributes:
        conditions: What findings depend on besides the problem: limits, isolation, packages.

    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.conditions: object = None
        self._known: dict[str, list[tuple[str, str]]] = {}
        self._file: TextIO | None = None
        self._unsaved = 0
        if path is not None and path.exists():
            data, _ = drop_torn_line(path)
            for key, findings in map(json.loads, data.splitlines()):
                self._known[key] = [(kind, detail) for kind, detail in findings]

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if self.path is not None and (error is None or isinstance(error, DataError)):
            self.path.unlink(missing_ok=True)

    def key(self, problem: Problem) -> str:
        """Return the key of a problem under the conditions."""
        row = json.dumps(problem_to_row(problem), sort_keys=True)
        return hashlib.blake2b(f"{self.conditions!r}\0{row}".encode(), digest_size=12).hexdigest()

    def find(self, key: str) -> list[tuple[str, str]] | None:
        """Return the (kind, detail) pairs that were found about a problem; None if it was not executed."""
        return self._known.get(key)

    def add(self, key: str, findings: Iterable[tuple[str, str]]) -> None:
        """Save what was found about a problem."""
        if self.path is None:
            return
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(json.dumps([key, list(findings)]) + "\n")
        self._unsaved += 1
        if self._unsaved == SAVED_TOGETHER:
            self._file.flush()
            self._unsaved = 0

"""Findings about executed references, kept on the disk, so that an interrupted check continues."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from cocos.files.durable import drop_torn_line
from cocos.problems import DataError, Problem, problem_to_row


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
        self._known: dict[str, list[tuple[str, ...]]] = {}
        if path is not None and path.exists():
            for key, found in map(json.loads, drop_torn_line(path)[0].splitlines()):
                self._known[key] = list(map(tuple, found))

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.path is not None and (error is None or isinstance(error, DataError)):
            self.path.unlink(missing_ok=True)

    def key(self, problem: Problem) -> str:
        """Return the key of a problem under the conditions."""
        row = json.dumps(problem_to_row(problem), sort_keys=True)
        return hashlib.blake2b(f"{self.conditions!r}\0{row}".encode(), digest_size=12).hexdigest()

    def find(self, key: str) -> list[tuple[str, ...]] | None:
        """Return what was found about a problem, as (kind, detail, test ...); None if it was not executed."""
        return self._known.get(key)

    def add(self, key: str, findings: Iterable[tuple[str, ...]]) -> None:
        """Save what was found about a problem."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, list(findings)]) + "\n")

"""Log of sampled attempts, extended batch by batch, so that an interrupted command can continue.

The first line records the options that the attempts were sampled with. Each later line is one batch.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from boost.attempts import Attempt
from cocos.files.durable import append_durably, drop_torn_line, write_atomically
from cocos.files.json_lines import DataError, read_rows


class AttemptLog:
    """Batches of attempts in a JSON-lines file. An incomplete last batch is dropped.

    Args:
        path: The file; created with the first batch, so that a start that fails leaves none.

    Attributes:
        batches: Complete batches in the order of the file.

    Raises:
        DataError: The file is not a log of attempts, or its attempts were sampled with other options.

    """

    def __init__(self, path: Path, made_with: dict[str, object]) -> None:
        self.path = path
        self.batches: list[list[Attempt]] = []
        self._header = json.dumps({"made_with": made_with})
        if path.exists():
            self._read(json.loads(self._header)["made_with"])

    def append(self, attempts: Iterable[Attempt]) -> None:
        """Append a batch to the file. A batch that a crash cut off is dropped when the log is read again."""
        batch = list(attempts)
        line = json.dumps([asdict(attempt) for attempt in batch], ensure_ascii=False)
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, f"{self._header}\n")
        try:
            with open(self.path, "ab", buffering=0) as file:
                append_durably(file, f"{line}\n".encode())
        except OSError as error:
            raise OSError(f"{error}, then continue with the same command") from None
        self.batches.append(batch)

    def _read(self, made_with: dict[str, object]) -> None:
        drop_torn_line(self.path)
        rows = [row for _, row in read_rows(self.path)]
        recorded = rows[0].get("made_with") if rows and isinstance(rows[0], dict) else None
        if not isinstance(recorded, dict):
            raise DataError(f"{self.path}: not a log of attempts; remove it or choose another --output")
        for name, value in made_with.items():
            if recorded.get(name) != value:
                raise DataError(
                    f"{self.path}: was made with {name} {recorded.get(name)!r}, not {value!r}; "
                    "remove it or choose another --output"
                )
        for batch in rows[1:]:
            assert isinstance(batch, list)
            self.batches.append(
                [Attempt(**row | {"corrections": tuple(row["corrections"])}) for row in batch]
            )

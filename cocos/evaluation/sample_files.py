"""The rows of a run on disk: appended, never lost, never doubled; an interrupted run can be continued.

A row is keyed by (task_id, sample). Rank 0 appends to samples.jsonl, rank r above it to
samples.rank<r>.jsonl; `settle` makes one file of them. Knows files and locks; of a row it knows the key, and
that a failure of the infrastructure is no result.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cocos.files.json_lines import DataError

Row = dict[str, Any]
Key = tuple[str, int]  # task_id, sample


def key(row: Row) -> Key:
    """What a row is known by."""
    return row["task_id"], row["sample"]


def is_scored(row: Row) -> bool:
    """Whether neither an executor nor an endpoint failed in any of its turns."""
    return all(turn["infra_error"] is None for turn in row["turns"])


class Lock:
    """A claim on a folder that ends with the process, however that ends.

    A run takes the folder for itself alone, prepares it, then shares it among its ranks: as long as one of
    them lives, no other run gets it.

    Args:
        folder: Made if absent.

    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = open(folder / ".lock", "a+b")  # noqa: SIM115 - held as long as this object

    def take(self, alone: bool) -> None:
        """Hold the folder alone, or with others who share it.

        Raises:
            DataError: Another run holds it.

        """
        try:
            fcntl.flock(self._file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(
                f"{self._folder}: another run is writing there; wait for it or choose another --output_dir"
            ) from None

    def close(self) -> None:
        """Give the folder back."""
        self._file.close()


def files(folder: Path) -> list[Path]:
    """The files of rows that a run left, rank 0's first."""
    return sorted(folder.glob("samples*.jsonl"))


@contextmanager
def appending(folder: Path, rank: int = 0) -> Iterator[BinaryIO]:
    """The file that a rank adds its rows to."""
    with open(folder / (f"samples.rank{rank}.jsonl" if rank else "samples.jsonl"), "ab", buffering=0) as file:
        yield file


def append(file: BinaryIO, rows: Iterable[Row]) -> None:
    """Add rows, and return when the disk has them."""
    data = b"".join(_line(row) for row in rows)
    while data:
        data = data[file.write(data) :]
    os.fsync(file.fileno())


def settle(folder: Path, keys: Sequence[Key]) -> dict[Key, Row]:
    """Make one samples.jsonl of what all ranks wrote: a row per key, in the order of `keys`.

    Of the rows of one key the scored one stands, else the last. A last line that was cut off is removed, with
    a notice. A kill at any moment loses nothing: files go only after their rows are on the disk elsewhere.

    Args:
        folder: Held alone, or by ranks that no longer write.
        keys: Of every row that the run should have.

    Returns:
        The rows that are there.

    Raises:
        DataError: A line in the middle is no row, or a row is of no problem of this run.

    """
    lines: dict[Key, bytes] = {}
    rows: dict[Key, Row] = {}
    known = set(keys)
    for path in files(folder):
        for place, line in _whole_lines(path):
            row = _row(line, place)
            if key(row) not in known:
                raise DataError(
                    f"{place}: sample {row['sample']} of task {row['task_id']!r} is none of this run; choose "
                    "another --output_dir"
                )
            if key(row) not in rows or not is_scored(rows[key(row)]):
                rows[key(row)], lines[key(row)] = row, line
    present = [one for one in keys if one in rows]
    _replace(folder / "samples.jsonl", b"".join(lines[one] for one in present))
    for path in files(folder):
        if path.name != "samples.jsonl":
            path.unlink()
    return {one: rows[one] for one in present}


def _line(row: Row) -> bytes:
    # A lone surrogate, which UTF-8 does not have, becomes the escape that JSON has for it.
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n"


def _whole_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each line with its place; what follows the last line end is cut off."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        print(f"{path}: the last row was cut off after {len(data) - end} bytes; it is made again")
        os.truncate(path, end)
    for number, line in enumerate(data[:end].split(b"\n")[:-1], start=1):
        yield f"{path}:{number}", line + b"\n"


def _row(line: bytes, place: str) -> Row:
    try:
        row = json.loads(line)
        if isinstance(row["task_id"], str) and isinstance(row["sample"], int) and is_scored(row) is not None:
            return row
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise DataError(f"{place}: is no row of samples; repair or remove the line, then --resume again")


def _replace(path: Path, data: bytes) -> None:
    """Put a file in the place of another: a kill leaves the one or the other, whole."""
    if path.exists() and path.read_bytes() == data:
        return
    new = path.with_name(f"{path.name}.new")
    with open(new, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

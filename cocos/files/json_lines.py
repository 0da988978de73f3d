"""Reader for rows in JSON files: JSON lines or one JSON list, optionally gzipped.

JSON lines are streamed; a list is loaded into memory as a whole. A row that cannot be read is reported with
its file and line. This module does not know what a row means.
"""

import gzip
import json
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

# No row is that long. A file with a longer line has another format, or is a list without its bracket.
MAX_LINE_BYTES = 4 << 20
# First bytes, in lower case, of what is given by mistake, what it is, and the remedy.
OTHER_CONTENTS = (
    (b"pk\x03\x04", "a zip archive", "unpack it, or save a spreadsheet as CSV"),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself with git lfs pull"),
    (b"<!doctype html", "a web page", "download the file itself"),
    (b"<html", "a web page", "download the file itself"),
    (b"\x89png", "an image", "give a file of rows"),
    (b"%pdf", "a PDF file", "give a file of rows"),
)


MAX_NAMED = 4  # files, in a message
BESIDE_ROWS = ("findings.jsonl", "dropped.jsonl", "log.jsonl")


class DataError(ValueError):
    """A data file cannot be used; the message names the file, the line or row, and the remedy."""


@dataclass(frozen=True)
class Place:
    """Position of a row in a file, for error messages."""

    path: str | Path  # the file, or the name of a data set
    number: int  # number of the line or row, from 1
    # `number` counts lines, as in "FILE:3". If False, it counts rows, as in "FILE: row 3".
    is_line: bool = True

    def __str__(self) -> str:
        return f"{self.path}:{self.number}" if self.is_line else f"{self.path}: row {self.number}"


MAX_LISTED = 10  # ids or errors in one message


def listed(names: Sequence[object]) -> str:
    """Return names for a message: ten at most, then a count. Example: `'a', 'b' and 12 more`."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(map(repr, names[:MAX_LISTED])) + more


class RowErrors:
    """Errors of a file's rows, which are raised together: ten at most, equal ones once with all places."""

    def __init__(self) -> None:
        self._places: dict[str, list[Place]] = {}  # error without its place -> places

    def add(self, place: Place, error: DataError) -> None:
        """Keep the error of a row; raise DataError if it is the tenth."""
        self._places.setdefault(str(error).removeprefix(f"{place}: "), []).append(place)
        if sum(map(len, self._places.values())) == MAX_LISTED:
            self.raise_any(" (reading stopped at the tenth error)")

    def raise_any(self, remedy: str = "") -> None:
        """Raise DataError if there was an error.

        Args:
            remedy: Text after the errors.

        """
        texts = []
        for reason, (first, *others) in self._places.items():
            numbers = ", ".join(str(place.number) for place in others)
            also = f" (also {'line' if first.is_line else 'row'} {numbers})" if others else ""
            texts.append(f"{first}{also}: {reason}")
        if texts:
            raise DataError("; ".join(texts) + remedy)


def read_rows(path: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[Place, object]]:
    """Yield each row of a JSON list or a JSON-lines file with its place.

    Raises:
        DataError: The file is missing or unreadable, or a line is not JSON, not UTF-8 or too long.

    """
    for place, row in read_rows_leniently(path, max_line_bytes):
        if isinstance(row, DataError):
            raise row
        yield place, row


def read_rows_leniently(path: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[Place, object]]:
    """Yield rows as `read_rows` does, with a DataError instead of each line that cannot be read.

    Raises:
        DataError: The file as a whole is missing or unreadable.

    """
    try:
        with open_bytes(path) as file:
            # The first byte after a byte order mark and white space shows whether the file is a list.
            start = file.read(3)
            while start.strip(b"\xef\xbb\xbf \t\r\n") == b"" and (byte := file.read(1)):
                start = byte
            is_list = start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
            file.seek(0)
            yield from _read_list(path, file) if is_list else _read_lines(path, file, max_line_bytes)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the path of a JSON or JSONL file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: cannot be read ({error}); expected UTF-8 JSON or JSONL, optionally gzipped"
        ) from None


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; decompress it if its first two bytes are those of gzip."""
    start = first_bytes(path)
    is_gzip = start.startswith(b"\x1f\x8b")
    return cast(BinaryIO, gzip.open(path, "rb")) if is_gzip else open(path, "rb")


def files_of_rows(folder: Path) -> list[Path]:
    """Return the files of rows in a folder, without those that a command writes beside its rows."""
    paths = (path for pattern in ("*.jsonl", "*.jsonl.gz") for path in folder.glob(pattern))
    return sorted(path for path in paths if path.name not in BESIDE_ROWS)


def first_bytes(path: Path) -> bytes:
    """Return the start of a data file.

    Raises:
        DataError: The file is a folder, a pipe or a device, which could be read for ever, or has other
            contents.
        OSError: The file cannot be opened.

    """
    if path.is_dir():
        found = ", ".join(map(str, files_of_rows(path)[:MAX_NAMED]))
        raise DataError(f"{path}: is a folder; give a file{f' in it: {found}' if found else ''}")
    if not stat.S_ISREG(path.stat().st_mode):
        raise DataError(f"{path}: is a pipe or a device; give a file")
    with open(path, "rb") as file:
        start = file.read(64)
    for content, what, remedy in OTHER_CONTENTS:
        if start.lstrip().lower().startswith(content):
            raise DataError(f"{path}: is {what}; {remedy}")
    return start


def _read_list(path: Path, file: BinaryIO) -> Iterator[tuple[Place, object]]:
    try:
        rows = json.loads(file.read().decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); repair the list") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {encoding_message(error)}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); repair the list") from None
    yield from ((Place(path, number, is_line=False), row) for number, row in enumerate(rows, start=1))


def _read_lines(path: Path, file: BinaryIO, max_line_bytes: int) -> Iterator[tuple[Place, object]]:
    number = 0
    while line := file.readline(max_line_bytes + 1):
        number += 1
        place = Place(path, number)
        if len(line) > max_line_bytes:
            while line and not line.endswith(b"\n"):
                line = file.readline(max_line_bytes)
            size = f"more than {max_line_bytes >> 20} MiB"
            yield place, DataError(f"{place}: the line has {size}; write one row per line, or remove it")
        elif line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield place, _parse_line(line, place)


def _parse_line(line: bytes, place: Place) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return DataError(f"{place}: {encoding_message(error)}")
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        if place.number == 1 and line.strip(b"\xef\xbb\xbf \t\r\n") == b"{":
            raise DataError(
                f"{place.path}: its rows take several lines each; write one row per line, for example with "
                f"jq -c . {place.path}"
            ) from None
        if b"\r" in line.rstrip(b"\r\n"):
            remedy = "its lines end with CR alone: convert it with tr '\\r' '\\n'"
        elif line.endswith(b"\n"):
            remedy = "write one row per line"
        else:
            remedy = "the file ends within this line: download it again"
        return DataError(f"{place}: not valid JSON ({reason}); {remedy}")


def encoding_message(error: UnicodeDecodeError, expected: str = "JSON or JSONL") -> str:
    """Return what is wrong with a byte that is not UTF-8, and a command that converts the file."""
    byte = error.object[error.start]
    encoding = "utf-16" if error.start == 0 and byte in (0xFF, 0xFE) else "latin1"
    if encoding != "utf-16" and b"\0" in error.object:
        return f"the file is not text; expected UTF-8 {expected}, optionally gzipped: give another file"
    return (
        f"byte {byte:#04x} is not UTF-8; expected UTF-8 {expected}, optionally gzipped: convert it with "
        f"iconv -f {encoding} -t utf-8"
    )

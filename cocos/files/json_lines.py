"""Rows out of JSON files, one at a time: JSON lines or a JSON list, either of them gzipped.

Knows encodings, line ends and what a cut-off file looks like; a row that cannot be read is named by file and
line. Does not know what a row means. JSON lines are streamed; a list is held in memory whole.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

MAX_LINE_BYTES = 4 << 20  # no problem is that long: it is a list without its bracket, or another format


class DataError(ValueError):
    """A data file cannot be used; the message names the file, the line or row, and the remedy."""


def read_rows(path: Path) -> Iterator[tuple[str, object]]:
    """Yield (place for error messages, parsed row) of a JSON list or JSON-lines file.

    Raises:
        DataError: The file is missing or unreadable, or a line is no JSON, not UTF-8 or longer than 4 MiB.

    """
    for place, row in read_rows_leniently(path):
        if isinstance(row, DataError):
            raise row
        yield place, row


def read_rows_leniently(path: Path) -> Iterator[tuple[str, object]]:
    """The same, with the DataError of a line in place of its row: for callers that can do without the
    line.
    """
    try:
        with open_bytes(path) as file:
            start = file.read(3)
            while start.strip(b"\xef\xbb\xbf \t\r\n") == b"" and (byte := file.read(1)):
                start = byte
            is_list = start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        with open_bytes(path) as file:
            yield from _list(path, file) if is_list else _lines(path, file)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the path of a JSON or JSONL file of problems") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: cannot be read ({error}); expected UTF-8 JSON or JSONL, optionally gzipped"
        ) from None


def open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, unzipped where they begin as gzip does, whatever the file is called."""
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if is_gzip else open(path, "rb")


def _list(path: Path, file: BinaryIO) -> Iterator[tuple[str, object]]:
    try:
        rows = json.loads(file.read().decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); repair the list") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {_not_utf8(error)}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); repair the list") from None
    yield from ((f"{path}: row {number}", row) for number, row in enumerate(rows, start=1))


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[str, object]]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        place = f"{path}:{number}"
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
            yield (
                place,
                DataError(
                    f"{place}: the line has more than {MAX_LINE_BYTES >> 20} MiB; one row per line, "
                    "or remove it"
                ),
            )
        elif line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield place, _parsed(line, place)


def _parsed(line: bytes, place: str) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return DataError(f"{place}: {_not_utf8(error)}")
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        is_open = not line.endswith(b"\n")
        remedy = "the file ends within it: fetch it again" if is_open else "one object per line"
        return DataError(f"{place}: not valid JSON ({reason}); {remedy}")


def _not_utf8(error: UnicodeDecodeError) -> str:
    return (
        f"byte {error.object[error.start]:#04x} is no UTF-8; expected UTF-8 JSON or JSONL, optionally "
        "gzipped: convert it with iconv -f latin1 -t utf-8"
    )

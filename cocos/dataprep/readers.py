"""Streaming readers for rows of JSON, JSON lines, CSV and Parquet files.

A row that cannot be read is yielded as a DataError, so that the caller decides whether to go on. A reader
does not know what a row means.
"""

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cocos.files.json_lines import (
    MAX_LINE_BYTES,
    DataError,
    Place,
    encoding_message,
    first_bytes,
    open_bytes,
    read_rows_leniently,
)

SPLITS = ("train", "validation", "test", "prompt")  # names of the files of a folder
SUFFIXES = ("jsonl", "json", "csv", "tsv", "parquet")
SEPARATORS = ",;\t|"  # of the columns of a CSV file; the first one if the header does not decide
HEADER_BYTES = 1 << 16


class RawRow(NamedTuple):
    """Row of a source before conversion."""

    place: Place  # position of the row, for messages
    split: str | None  # split in which the source has the row; None if the source does not say
    row: dict | DataError  # column -> value, or a DataError if the row cannot be read


def input_files(path: Path) -> list[tuple[Path, str | None]]:
    """Return (file, split) for a file, or for the train, validation, test and prompt files of a folder.

    The split of a single file is None: its name does not say where its rows belong.

    Raises:
        DataError: The path does not exist, the folder has none of these files, or it has two for one split.

    """
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{path}: no such file; give the path of a JSON, JSONL, CSV or Parquet file")
        return [(path, None)]
    files: list[tuple[Path, str | None]] = []
    for split in SPLITS:
        candidates = [path / f"{split}.{suffix}{gz}" for suffix in SUFFIXES for gz in ("", ".gz")]
        existing = [file for file in candidates if file.exists()]
        if len(existing) > 1:
            raise DataError(f"{path}: has both {existing[0].name} and {existing[1].name}; keep one of them")
        files += [(file, split) for file in existing]
    if not files:
        raise DataError(f"{path}: no train, validation, test or prompt file in this folder; give a file")
    return files


def read_file(path: Path, split: str | None = None, is_csv: bool = False) -> Iterator[RawRow]:
    """Yield every row of a local file.

    Args:
        path: A file, optionally gzipped. Suffixes other than .csv, .tsv and .parquet mean JSON.
        is_csv: Whether a file of another name is CSV, too, unless it begins like JSON.

    Raises:
        DataError: The file as a whole cannot be read.

    """
    kind = table_kind(path)
    if not kind and is_csv and not _start(path).lstrip().startswith(("{", "[")):
        kind = "CSV"
    if kind:
        read = _read_csv if kind == "CSV" else _read_parquet
        yield from (RawRow(place, split, row) for place, row in read(path))
    else:
        for place, row in read_rows_leniently(path):
            if not isinstance(row, (dict, DataError)):
                row = DataError(f"{place}: expected a JSON object, found {type(row).__name__}")
            yield RawRow(place, split, row)


def table_kind(path: Path) -> str:
    """Return `CSV` or `Parquet` for a table, by its name or its first bytes; "" for another file."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".csv", ".tsv")):
        return "CSV"
    is_parquet = name.endswith(".parquet") or (path.is_file() and first_bytes(path).startswith(b"PAR1"))
    return "Parquet" if is_parquet else ""


def read_solve_rates(path: Path) -> dict[str, float]:
    """Return the share of right samples of each problem of a profile, by task_id.

    Args:
        path: CSV file with the columns task_id, samples and right, as select_problems.py writes it.

    Raises:
        DataError: The file cannot be read, or a row has no such numbers.

    """
    rates: dict[str, float] = {}
    for place, row in _read_csv(path):
        if isinstance(row, DataError):
            raise row
        try:
            rates[row["task_id"]] = int(row["right"]) / int(row["samples"])
        except (KeyError, ValueError, ZeroDivisionError):
            raise DataError(
                f"{place}: expected the columns task_id, samples and right; give a profile.csv of "
                "scripts/select_problems.py"
            ) from None
    return rates


def read_debugbench(folder: Path) -> Iterator[RawRow]:
    """Yield DebugBench's Python rows with the row of LeetCodeDataset that has the tests, as `leetcode`.

    Args:
        folder: DebugBench's files `python3_*.json`, or `eval.json` of the hub, and files `LeetCodeDataset*`.

    Raises:
        DataError: The folder does not contain both.

    """
    tests: dict[str, dict] = {}
    for file in sorted(folder.glob("LeetCodeDataset*")):
        rows = (row for _, _, row in read_file(file) if isinstance(row, dict))
        tests |= {row["task_id"]: row for row in rows if "task_id" in row}
    bugs = sorted([*folder.glob("python3_*.json"), *folder.glob("eval.json")])
    if not tests or not bugs:
        missing = "LeetCodeDataset-*.jsonl" if bugs else "python3_*.json of DebugBench"
        raise DataError(f"{folder}: contains no {missing}; --input is a folder with both")
    for file in bugs:
        for place, split, row in read_file(file):
            if isinstance(row, dict) and row.get("language", "python3") == "python3":
                found = tests.get(row.get("slug", ""))
                absent = DataError(f"{place}: LeetCodeDataset has no tests of {row.get('slug')!r}")
                yield RawRow(place, split, row | {"leetcode": found} if found else absent)


def _start(path: Path) -> str:
    with open_bytes(path) as file:
        return file.read(HEADER_BYTES).decode("utf-8-sig", "replace")


def _separator(path: Path) -> str:
    """Return the separator that gives the header of a CSV file most columns."""
    start = _start(path)

    def num_columns(separator: str) -> int:
        return len(next(csv.reader(io.StringIO(start, newline=""), delimiter=separator), ()))

    return max(SEPARATORS, key=num_columns)


def _read_csv(path: Path) -> Iterator[tuple[Place, dict | DataError]]:
    csv.field_size_limit(MAX_LINE_BYTES)  # the default of 128 KiB is too small for some test files
    number = 0  # of the last line that was read
    try:
        # utf-8-sig removes the byte order mark that spreadsheet programs write.
        with open_bytes(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as file:
            separator = _separator(path)
            reader = csv.DictReader(file, strict=True, delimiter=separator)
            if not reader.fieldnames:
                raise DataError(f"{path}: empty; the first line of a CSV file names its columns")
            if repeated := [name for name, count in Counter(reader.fieldnames).items() if count > 1]:
                raise DataError(f"{path}:1: the column {repeated[0]!r} occurs twice; rename one of them")
            number = reader.line_num
            for row in reader:
                place, number = Place(path, number + 1), reader.line_num  # a cell may contain line breaks
                # DictReader collects surplus fields under the key None and fills missing fields with None.
                if None in row or None in row.values():
                    fault = f"the number of fields differs from the header's ({len(reader.fieldnames)})"
                    remedy = f"quote fields that contain {separator!r} or line breaks"
                    yield place, DataError(f"{place}: {fault}; {remedy}")
                else:
                    yield place, row
    except csv.Error as error:
        raise DataError(
            f"{path}:{number + 1}: not valid CSV ({error}); check the quotes from this line on"
        ) from None
    except UnicodeDecodeError as error:
        with open_bytes(path) as raw:
            lines = enumerate(raw, 1)
            line = next(n for n, text in lines if text.decode(errors="ignore").encode() != text)
        raise DataError(f"{path}:{line}: {encoding_message(error, 'CSV')}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}); expected UTF-8 CSV, optionally gzipped") from None


def _read_parquet(path: Path) -> Iterator[tuple[Place, dict]]:
    import pyarrow
    import pyarrow.parquet

    try:
        first_bytes(path)  # says more about a web page than Parquet's reader
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield Place(path, number, is_line=False), row
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}); download it again") from None

"""Rows of a source, one at a time, from files (JSON, JSON lines, CSV, Parquet, gzipped or not) or from the
hub.

A row that cannot be read comes as a DataError in its place, so that the caller decides whether to go on. Does
not know what a row means.
"""

import csv
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cocos.dataprep.sources import SPLITS
from cocos.files.json_lines import MAX_LINE_BYTES, DataError, Place, open_bytes, read_rows_leniently

SUFFIXES = ("jsonl", "json", "csv", "parquet")


class RawRow(NamedTuple):
    """Where it stands, the split that the source puts it in, and its values; a DataError where it is
    unreadable.
    """

    place: Place
    split: str | None
    row: dict | DataError


def input_files(path: Path) -> list[tuple[Path, str | None]]:
    """The file itself, or a folder's train, validation, test and prompt files with the split that each is.

    Raises:
        DataError: There is no such file, or none in the folder.

    """
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{path}: no such file; give the path of a JSON, JSONL, CSV or Parquet file")
        return [(path, None)]
    found: list[tuple[Path, str | None]] = []
    for split in SPLITS:
        files = [
            path / f"{split}.{suffix}{gz}"
            for suffix in SUFFIXES
            for gz in ("", ".gz")
            if (path / f"{split}.{suffix}{gz}").exists()
        ]
        if len(files) > 1:
            raise DataError(f"{path}: has both {files[0].name} and {files[1].name}; keep one of them")
        found += [(file, split) for file in files]
    if not found:
        raise DataError(f"{path}: no train, validation, test or prompt file in this folder; give a file")
    return found


def read_file(path: Path, split: str | None = None) -> Iterator[RawRow]:
    """Every row of a local file."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".csv"):
        yield from (RawRow(place, split, row) for place, row in _csv(path))
    elif name.endswith(".parquet"):
        yield from (RawRow(place, split, row) for place, row in _parquet(path))
    else:
        for place, row in read_rows_leniently(path):
            if not isinstance(row, (dict, DataError)):
                row = DataError(f"{place}: expected a JSON object, found {type(row).__name__}")
            yield RawRow(place, split, row)


def read_hub(repository: str, configuration: str | None, revision: str | None) -> Iterator[RawRow]:
    """Every row of a set on the hub, streamed, with the hub's own splits."""
    from datasets import load_dataset  # seconds and 150 MB that a local file does not cost

    try:
        splits = load_dataset(repository, configuration, revision=revision, streaming=True)
        for name, rows in splits.items():
            split = name if name in SPLITS else None
            for number, row in enumerate(rows, start=1):
                yield RawRow(Place(f"{repository}/{name}", number, is_line=False), split, row)
    except (OSError, ValueError, RuntimeError) as error:  # what datasets raises without network, id or right
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{repository}: cannot be read from the hub ({reason}); check the id and the network, "
            "or give --input FILE"
        ) from None


def _csv(path: Path) -> Iterator[tuple[Place, dict | DataError]]:
    csv.field_size_limit(MAX_LINE_BYTES)
    try:
        with open_bytes(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if not reader.fieldnames:
                raise DataError(f"{path}: empty; the first line of a CSV file names its columns")
            try:
                for row in reader:
                    place = Place(path, reader.line_num)
                    if None in row or None in row.values():
                        yield (
                            place,
                            DataError(
                                f"{place}: has another number of fields than the header "
                                f"({len(reader.fieldnames)}); "
                                "quote fields that hold commas or line ends"
                            ),
                        )
                    else:
                        yield place, row
            except csv.Error as error:
                raise DataError(f"{path}:{reader.line_num}: not valid CSV ({error}); repair it") from None
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}:{reader.line_num + 1}: not UTF-8 ({error.reason}); convert it: "
                    "iconv -f latin1 -t utf-8"
                ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}); expected UTF-8 CSV, optionally gzipped") from None


def _parquet(path: Path) -> Iterator[tuple[Place, dict]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield Place(path, number, is_line=False), row
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}); fetch it again") from None

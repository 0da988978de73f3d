"""Storage of a run's rows: rank files, and one merged file.

Rank 0 appends to samples.jsonl, every other rank r to samples.rank<r>.jsonl. `merge_files` merges them into
one samples.jsonl with one row per (task_id, sample), so that an interrupted run can be resumed with any
number of ranks.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cocos.evaluation.sample_rows import SampleRow, has_infra_failure, row_key, validate_row
from cocos.files.durable import append_durably, drop_torn_line, write_atomically
from cocos.files.json_lines import DataError, Place
from cocos.files.output_folder import EVALUATION, check_output_folder, recorded_kind
from cocos.trajectories import Key


def sample_paths(folder: Path) -> list[Path]:
    """Return the existing files of rows in a run's folder, rank 0's first."""
    return sorted(folder.glob("samples*.jsonl"))


def rank_path(folder: Path, rank: int = 0) -> Path:
    """Return the path of the file to which a rank appends its rows."""
    return folder / (f"samples.rank{rank}.jsonl" if rank else "samples.jsonl")


def is_evaluation(folder: Path) -> bool:
    """Return whether a folder holds an evaluation, even if its record is damaged."""
    return (recorded_kind(folder) or EVALUATION * bool(sample_paths(folder))) == EVALUATION


def check_folders(output_dir: Path, folders: Sequence[Path]) -> None:
    """Check that evaluations may write to their folders, and their report to the folders around them.

    Args:
        output_dir: Folder of the whole: that of the only evaluation, or the parent of several.

    Raises:
        ValueError: A folder holds something else, or cannot be written to.

    """
    above = [place for folder in folders for place in folder.parents if place.is_relative_to(output_dir)]
    for place in dict.fromkeys(above):
        check_output_folder(place, lambda place: any(is_evaluation(f) for f in folders if place in f.parents))
    for folder in folders:
        check_output_folder(folder, is_evaluation)


def append_rows(path: Path, rows: Iterable[SampleRow]) -> None:
    """Append rows to a file, which is created if necessary, and return when they are on the disk.

    Raises:
        OSError: The disk is full. `--resume` removes a row that was written in part, and plays it again.

    """
    try:
        with open(path, "ab", buffering=0) as file:
            append_durably(file, b"".join(row_to_line(row) for row in rows))
    except OSError as error:
        raise OSError(f"{error}, then continue with --resume") from None


def finished_work(folder: Path) -> str:
    """Return how many rows a run has saved and how to continue it, for the line after Ctrl-C."""
    num_rows = sum(path.read_bytes().count(b"\n") for path in sample_paths(folder))
    if not num_rows:
        return "no trajectory was finished; start again"
    return f"{num_rows} trajectories are saved in {folder}; continue with the same command and --resume"


def merge_files(folder: Path, keys: Sequence[Key]) -> dict[Key, SampleRow]:
    """Merge the files of all ranks into one samples.jsonl with one row per key, in the order of `keys`.

    If several rows have the same key, the first without an infrastructure failure is kept; if there is none,
    the last. An incomplete last line is removed and reported.

    Args:
        folder: No rank may be writing to it.
        keys: The keys of all rows of the finished run.

    Raises:
        DataError: A complete line is not a row, or a row does not belong to this run.

    """
    lines: dict[Key, bytes] = {}
    rows: dict[Key, SampleRow] = {}
    known = set(keys)
    for path in sample_paths(folder):
        for place, line in _complete_lines(path):
            row = _row_from_line(line, place)
            key = row_key(row)
            if key not in known:
                raise DataError(
                    f"{place}: sample {key[1]} of problem {key[0]!r} does not belong to this run; choose "
                    "another --output_dir"
                )
            if key not in rows or has_infra_failure(rows[key]):
                rows[key], lines[key] = row, line
    present = [key for key in keys if key in rows]
    if present:  # an empty file would look like a run
        _write_if_changed(folder / "samples.jsonl", b"".join(lines[key] for key in present))
    # Remove the other files only now: a kill at any moment loses no row.
    for path in sample_paths(folder):
        if path.name != "samples.jsonl":
            path.unlink()
    return {key: rows[key] for key in present}


def row_to_line(row: SampleRow) -> bytes:
    """Return a row as a line of samples.jsonl."""
    # UTF-8 cannot encode a lone surrogate; backslashreplace writes it as JSON's escape \udXXX.
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n"


def _row_from_line(line: bytes, place: Place) -> SampleRow:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    return validate_row(value, place)


def _complete_lines(path: Path) -> Iterator[tuple[Place, bytes]]:
    """Yield each line with its place, after removing an incomplete last line."""
    content, num_bytes = drop_torn_line(path)
    if num_bytes:
        print(f"{path}: the last row was incomplete ({num_bytes} bytes); it is removed and played again")
    # Every line is complete now, so the part after the last line end is empty.
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        yield Place(path, number), line + b"\n"


def _write_if_changed(path: Path, data: bytes) -> None:
    if not path.exists() or path.read_bytes() != data:
        write_atomically(path, data)

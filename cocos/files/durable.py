"""Durable file writes: a kill or a power failure leaves no half-written file."""

import errno
import json
import os
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | Path, data: bytes | str) -> None:
    """Replace a file atomically: after a kill at any moment, it has either the old or the new content.

    Args:
        path: The file to write; its folder must exist. `PATH.new` is its temporary file.
        data: The new content; text is encoded as UTF-8.

    """
    path = Path(path)
    new = path.with_name(f"{path.name}.new")
    try:
        with open(new, "wb") as file:
            append_durably(file, data.encode("utf-8") if isinstance(data, str) else data)
        # The content is on the disk before the rename; otherwise a power failure could leave an empty file.
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)  # still there only if the write failed, for example on a full disk
    # The rename is an entry of the folder, which has to be flushed too.
    sync(path.parent)


def append_durably(file: BinaryIO, data: bytes) -> None:
    """Write bytes to an open file and return when they are on the disk.

    Args:
        file: A binary file, opened for writing or appending, buffered or not.
        data: The bytes to add.

    Raises:
        OSError: The disk is full or fails; the message names the file. A part may have been written.

    """
    try:
        while data:  # an unbuffered file may write only a part
            data = data[file.write(data) :]
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:  # its own message names no file
        remedy = "make space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check the disk"
        raise OSError(f"{file.name}: cannot be written ({error.strerror or error}); {remedy}") from None


def sync(path: str | Path) -> None:
    """Flush a file to the disk, or the entries of a folder (new, renamed and removed files)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def drop_torn_line(path: str | Path) -> tuple[bytes, int]:
    """Remove the incomplete last line that an interrupted append left in a file.

    Returns:
        The remaining content, and the number of bytes removed: 0 if the file ends with a line end or is
        empty.

    """
    data = Path(path).read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        os.truncate(path, end)
    return data[:end], len(data) - end


def save_json(value: object, path: str | Path) -> None:
    """Write a value as indented JSON, atomically.

    Values of types that JSON does not have are written as `str(value)`.

    Raises:
        ValueError: The value contains NaN or an infinity.

    """
    write_atomically(path, json.dumps(value, indent=2, default=str, allow_nan=False) + "\n")

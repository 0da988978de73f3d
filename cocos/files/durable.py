"""Durable file writes, and a lock on a folder: a kill or a power failure leaves no half-written file."""

import errno
import fcntl
import json
import os
from pathlib import Path
from typing import BinaryIO

from cocos.files.json_lines import DataError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)  # numbers of an OSError


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

    Raises:
        OSError: The disk is full or fails; the message names the file. A part may have been written.

    """
    try:
        while data:  # an unbuffered file may write only a part
            data = data[file.write(data) :]
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:  # its own message names no file
        remedy = "make space" if error.errno in DISK_FULL else "check the disk"
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


LOCK_FILE = ".lock"


class FolderLock:
    """Lock on an output folder; the operating system releases it when the process ends, however it ends.

    A run locks the folder exclusively while it merges files, and then shares the lock among its ranks. No
    other run can lock the folder as long as one of these processes exists.
    """

    def __init__(self, folder: Path) -> None:
        self._is_new_folder = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._path = folder, folder / LOCK_FILE
        self._file = open(self._path, "a+b")  # noqa: SIM115 - stays open as long as this object

    def lock_exclusive(self) -> None:
        """Lock the folder for this process alone.

        Raises:
            DataError: Another run has locked it.

        """
        self._lock(fcntl.LOCK_EX)

    def lock_shared(self) -> None:
        """Lock the folder together with the other ranks of the run; replaces an exclusive lock.

        Raises:
            DataError: Another run has locked it exclusively.

        """
        self._lock(fcntl.LOCK_SH)

    def close(self) -> None:
        """Release the lock."""
        self._file.close()

    def discard(self) -> None:
        """Remove the lock's file, and its folder if this object made it and nothing else is in it."""
        self._path.unlink(missing_ok=True)
        if self._is_new_folder and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _lock(self, mode: int) -> None:
        try:
            # LOCK_NB: fail at once rather than wait for a run that may take hours.
            fcntl.flock(self._file, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(
                f"{self._folder}: another run is writing there; wait for it or choose another --output_dir"
            ) from None

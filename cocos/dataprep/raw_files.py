"""Raw files of the public sets: downloaded or copied once, into a cache folder or a folder of the user.

The cache folder is $COCOS_CACHE, or else cocos/ in $XDG_CACHE_HOME or ~/.cache.
"""

import fcntl
import gzip
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cocos.dataprep.hub import read_hub
from cocos.dataprep.sources import Source
from cocos.files.durable import write_atomically
from cocos.files.json_lines import DataError

TIMEOUT_S = 60


def fetch_raw_file(source: Source, raw_folder: Path, input_folder: Path | None) -> Path:
    """Put the raw file of a public set into a folder, unless it is already there.

    Args:
        input_folder: Folder that contains the file; None to download it.

    Raises:
        DataError: The set cannot be downloaded, or the input folder does not contain its file.

    """
    path = raw_folder / source.raw_file
    if path.exists():
        return path
    if input_folder is None:
        data = _download(source)
    else:
        original = input_folder / source.raw_file
        if not original.is_file():
            raise DataError(f"{original}: no such file; put it there, or leave out --input to download it")
        data = original.read_bytes()
    raw_folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return path


def _download(source: Source) -> bytes:
    """Return the rows of a set as JSON lines, gzipped if the raw file's name says so."""
    rows = _read_urls(source.raw_urls) if source.raw_urls else _read_hub_rows(source)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    # mtime=0: the same rows give the same bytes.
    return gzip.compress(data, mtime=0) if source.raw_file.endswith(".gz") else data


def _read_hub_rows(source: Source) -> Iterator[dict]:
    assert source.hub
    for _, _, row in read_hub(*source.hub, None, source.hub_split):
        if isinstance(row, DataError):
            raise row
        yield row


def _read_urls(urls: tuple[str, ...]) -> Iterator[dict]:
    for url in urls:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                yield from json.load(response)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise DataError(
                f"{url}: cannot be downloaded ({reason}); check the network, or use a file"
            ) from None


@contextmanager
def locked_cache() -> Iterator[Path]:
    """Yield the cache folder, which one process at a time uses: the ranks of a run start together."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("COCOS_CACHE") or Path(base) / "cocos")
    lock_file = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock_file.touch()
    except OSError as error:
        raise DataError(
            f"{folder}: not writable ({error.strerror}); set COCOS_CACHE to a folder for public sets"
        ) from None
    with open(lock_file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder

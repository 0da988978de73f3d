"""Output folder of a preparation: complete or absent, with one JSON lines file per split."""

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from cocos.files.durable import sync
from cocos.problems import Problem, problem_to_row


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `folder` on success and removed on any exception.

    Raises:
        ValueError: The folder exists and is not empty, is a file, or cannot be created.
        OSError: A file cannot be written.

    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists; choose another --output_dir or remove it")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, because a rename works only within one file system.
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", suffix=".partial", dir=folder.parent))
    except OSError as error:
        raise ValueError(
            f"{folder}: cannot be created ({error.strerror}: {error.filename}); choose another --output_dir"
        ) from None
    try:
        yield partial
        for path in partial.iterdir():
            sync(path)  # before the rename: a power failure must not leave a folder of empty files
        # mkdtemp lets only the owner in; the finished folder gets the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        partial.replace(folder)
        sync(folder.parent)
    except OSError as error:
        if error.filename is None:  # a failed write, for example on a full disk, does not know its file
            raise OSError(error.errno, f"{error.strerror}; {folder} was not written") from None
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # after a success it has another name


class SplitWriter:
    """Writer of one JSON lines file per split; a context manager.

    Attributes:
        counts: Split -> number of problems written.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self._files: dict[str, TextIO] = {}
        self._stack = ExitStack()

    def write(self, split: str, problem: Problem) -> None:
        """Append a problem to its split's file, which the first problem of the split creates."""
        if split not in self._files:
            path = self.folder / f"{split}.jsonl"
            file = path.open("w", encoding="utf-8", newline="\n")
            self._files[split] = self._stack.enter_context(file)
        self._files[split].write(json.dumps(problem_to_row(problem), ensure_ascii=False) + "\n")
        self.counts[split] += 1

    def __enter__(self) -> "SplitWriter":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

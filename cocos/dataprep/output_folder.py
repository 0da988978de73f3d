"""A folder that appears whole or not at all, and the JSON lines in it."""

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from cocos.problems import Problem, problem_to_row


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder` to write into; renamed to it at the end, removed whatever interrupts.

    Raises:
        ValueError: There is something at that place already.

    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists; choose another --output_dir or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", suffix=".partial", dir=folder.parent))
    try:
        yield partial
        for path in partial.iterdir():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o777 & ~mask)
        partial.replace(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


class Splits:
    """One JSONL file per split, opened when its first problem comes. A context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self._files: dict[str, TextIO] = {}
        self._stack = ExitStack()

    def write(self, split: str, problem: Problem) -> None:
        if split not in self._files:
            path = self.folder / f"{split}.jsonl"
            file = path.open("w", encoding="utf-8", newline="\n")
            self._files[split] = self._stack.enter_context(file)
        self._files[split].write(json.dumps(problem_to_row(problem), ensure_ascii=False) + "\n")
        self.counts[split] += 1

    def __enter__(self) -> "Splits":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

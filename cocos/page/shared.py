"""Shared parts of the views: options and executor of the server, folders, and how text is shown."""

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import streamlit as st

from cocos.assembly.programs import open_executor
from cocos.page.page_options import PageOptions


class Shared:
    """Options, executor and secrets of one server.

    Attributes:
        report_key: Part of the links to reports, which only visitors of the page know.
        token: What visitors have to type if other machines can reach the page; "": nothing.

    """

    def __init__(self, options: PageOptions) -> None:
        self.options, self.executor = options, open_executor(options)
        self.report_key = secrets.token_urlsafe(16)
        self.token = "" if options.is_local else secrets.token_urlsafe(16)


@cache
def shared(options: str) -> Shared:
    """Return what the visitors of this process share; the first call starts the executor."""
    return Shared(PageOptions(**json.loads(options)))


def find_folders(roots: Iterable[str | Path], *patterns: str) -> dict[str, Path]:
    """Return the folders below the roots that have a file for each pattern, by their paths.

    They are listed root by root, the latest of each first.

    Checkpoints, hidden folders and what links lead to outside of the root (`linked_folders`) are left out.
    """
    found: list[tuple[int, float, str]] = []
    for number, root in enumerate(map(Path, roots)):
        for folder, files in _complete_folders(root, patterns):
            if not folder.is_symlink() and _stays_inside(folder, root):
                found.append((number, -max(path.stat().st_mtime for path in files), str(folder)))
    return {name: Path(name) for *_, name in sorted(found)}


def linked_folders(roots: Iterable[str | Path], *patterns: str) -> dict[str, Path]:
    """Return the folders that are left out because they, or their files, are links: where they lead."""
    places = [*map(Path, roots)]
    return {
        str(folder): folder.resolve() if folder.is_symlink() else files[0].resolve().parent
        for root in places
        for folder, files in _complete_folders(root, patterns)
        if not any(_stays_inside(folder, place) for place in places)
    }


def _complete_folders(root: Path, patterns: Sequence[str]) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each folder, or link to a folder, that has a file for each pattern, with these files."""
    for name, folders, _ in os.walk(root):
        folders[:] = sorted(n for n in folders if not n.startswith((".", "checkpoint-")))
        for folder in (Path(name), *(Path(name) / n for n in folders if (Path(name) / n).is_symlink())):
            files = [[*folder.glob(pattern)] for pattern in patterns]
            if all(files):
                yield folder, [*chain(*files)]


def _stays_inside(folder: Path, root: Path) -> bool:
    """Return whether all files of a folder lie below the root.

    The files of a snapshot in the hub's cache are links to the `blobs` beside `snapshots`, which belong to a
    root that is the snapshot.
    """
    places = [at for at in (root.resolve(), *root.resolve().parents) if at.name.startswith("models--")]
    area = next((at for at in places if (at / "blobs").is_dir()), root.resolve())
    return all(path.resolve().is_relative_to(area) for path in folder.iterdir())


def show_error(title: str, reason: object) -> None:
    """Show an error with its reason, which may quote what was typed: as code, which nothing interprets."""
    text = " ".join(str(reason).split())
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))  # no backticks of the text end it
    st.error(f"{title}: {fence} {text} {fence}")


def show_code(text: str, language: str | None = None) -> None:
    """Show a text that nothing interprets; `language` only chooses its colours."""
    st.code(text, language=language, wrap_lines=True)

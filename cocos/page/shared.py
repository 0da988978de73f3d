"""Shared parts of the views: options and executor of the server, folders, and how text is shown."""

import json
import os
import secrets
from collections.abc import Iterable
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

    Checkpoints and hidden folders are left out. Links to folders are not followed, and a folder is left out
    if one of its files is a link to a place outside of the root.
    """
    found: list[tuple[int, float, str]] = []
    for number, root in enumerate(map(Path, roots)):
        for name, folders, _ in os.walk(root):
            folders[:] = sorted(n for n in folders if not n.startswith((".", "checkpoint-")))
            files = [[*Path(name).glob(pattern)] for pattern in patterns]
            if all(files) and _stays_inside(Path(name), root):
                found.append((number, -max(path.stat().st_mtime for path in chain(*files)), name))
    return {name: Path(name) for *_, name in sorted(found)}


def _stays_inside(folder: Path, root: Path) -> bool:
    return all(path.resolve().is_relative_to(root.resolve()) for path in folder.iterdir())


def show_error(title: str, reason: object) -> None:
    """Show an error; the reason is shown as text, because it may quote what was typed."""
    st.error(f"{title}:")
    st.text(str(reason))


def show_code(text: str, language: str | None = None) -> None:
    """Show a text that nothing interprets; `language` only chooses its colours."""
    st.code(text, language=language, wrap_lines=True)

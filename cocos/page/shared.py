"""State of the page for all visitors: options, token, executor, everybody's attempts, and folders to show."""

import json
import os
import secrets
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cocos.assembly import open_executor
from cocos.page.live_attempts import Watchers
from cocos.page.page_options import PageOptions


def find_folders(roots: Iterable[str | Path], *patterns: str) -> dict[str, Path]:
    """Return the folders below the roots that have a file for each pattern, by their paths, latest first.

    Checkpoints and hidden folders are left out. Links to folders are not followed, and a folder is left out
    if one of its files is a link to a place outside of the root.
    """
    found: dict[str, Path] = {}
    written_s: dict[str, float] = {}
    for root in map(Path, roots):
        for name, folders, _ in os.walk(root):
            folders[:] = sorted(n for n in folders if not n.startswith((".", "checkpoint-")))
            folder = Path(name)
            files = [[*folder.glob(pattern)] for pattern in patterns]
            if all(files) and _stays_inside(folder, root):
                found[name] = folder
                written_s[name] = max(path.stat().st_mtime for matches in files for path in matches)
    return dict(sorted(found.items(), key=lambda item: -written_s[item[0]]))


def _stays_inside(folder: Path, root: Path) -> bool:
    return all(path.resolve().is_relative_to(root.resolve()) for path in folder.iterdir())


class Shared:
    """Options, executor and visitors of one server.

    Attributes:
        report_key: Part of the links to reports, which only visitors of the page know.
        token: What visitors have to type if other machines can reach the page; "": nothing.

    """

    def __init__(self, options: PageOptions) -> None:
        self.options, self.executor = options, open_executor(options)
        self.report_key = secrets.token_urlsafe(16)
        self.token = secrets.token_urlsafe(16) if options.allow_remote else ""
        self.visitors = Watchers(options.max_visitors)


@cache
def shared(options: str) -> Shared:
    """Return what the visitors of this process share; the first call starts the executor."""
    return Shared(PageOptions(**json.loads(options)))

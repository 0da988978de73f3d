"""Search for folders by the files in them, which leaves no root folder."""

import os
from collections.abc import Iterable
from pathlib import Path


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

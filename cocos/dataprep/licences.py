"""Licences of the files of a folder of code, by the texts and the package metadata in it."""

import csv
import email.parser
import re
from functools import cache
from pathlib import Path, PurePosixPath

LICENCE_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
# Words of a licence, in lower case and without commas, and its name; the first match counts.
LICENCES = (
    ("gnu affero general public license", "AGPL"),
    ("gnu lesser general public license", "LGPL"),
    ("gnu general public license", "GPL"),
    ("mozilla public license version 2.0", "MPL-2.0"),
    ("apache license version 2.0", "Apache-2.0"),
    ("permission is hereby granted free of charge", "MIT"),
    ("neither the name", "BSD-3-Clause"),
    ("redistributions of source code must retain", "BSD-2-Clause"),
)


class Licences:
    """Licences of the files of a folder.

    A file that a package has installed has the package's licence, another one that of the nearest folder
    above it with the text of a licence.

    Args:
        root: The folder.

    """

    def __init__(self, root: Path) -> None:
        self._folder_licence = cache(lambda parent: folder_licence(root / parent))
        self._installed: dict[str, str] = {}  # path relative to the root -> licence
        for record in sorted(root.glob("*.dist-info/RECORD")):
            licence = _package_licence(record.parent)
            with open(record, encoding="utf-8", errors="replace", newline="") as file:
                self._installed |= {row[0]: licence for row in csv.reader(file) if row}

    def of(self, path: str) -> str:
        """Return the licence of a file; "" if none is known."""
        parents = PurePosixPath(path).parents
        found = (licence for parent in parents if (licence := self._folder_licence(parent)))
        return self._installed.get(path) or next(found, "")


def folder_licence(folder: Path) -> str:
    """Return the licence whose text is in a folder; "" if none is known there."""
    for path in sorted(folder.iterdir()):
        if LICENCE_FILE.fullmatch(path.name) and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").lower().replace(",", "")
            one_line = " ".join(text.split())
            for words, name in LICENCES:
                if words in one_line:
                    return name
    return ""


def _package_licence(folder: Path) -> str:
    """Return the licence of an installed package by its metadata, or else by the text beside them."""
    metadata = folder / "METADATA"
    if metadata.is_file():
        text = metadata.read_text(encoding="utf-8", errors="replace")
        if stated := email.parser.HeaderParser().parsestr(text)["License-Expression"]:
            return stated
    texts = folder / "licenses"
    return folder_licence(folder) or (folder_licence(texts) if texts.is_dir() else "")

"""Licences of the files of a folder of code, by the texts in it."""

import re
from functools import cache
from pathlib import Path

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


@cache
def folder_licence(folder: Path) -> str:
    """Return the licence whose text is in a folder; "" if none is known there."""
    for path in sorted(folder.glob("*")):
        if LICENCE_FILE.fullmatch(path.name) and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").lower()
            text = " ".join(text.replace(",", "").split())
            for words, name in LICENCES:
                if words in text:
                    return name
    return ""

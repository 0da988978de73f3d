"""Data files for tests: the public sets, where they are present, and queries on what prepare_data.py writes."""

import json
from pathlib import Path

from cocos.dataprep.readers import read_file
from cocos.dataprep.sources import PUBLIC_SOURCES
from cocos.problems import Problem
from tests.support.paths import dataset


def public(name: str) -> Path:
    """Return the file of the public set of that name, as dataset does."""
    return dataset(PUBLIC_SOURCES[name].raw_file)


def converted(name: str, **changes: str) -> list[tuple[dict, Problem]]:
    """Return every source row of a public set with its problem.

    Args:
        name: the set, as prepare_data.py calls it.
        changes: field=other_field, to convert rows in which one field has the value of another.
    """
    return [
        (row, PUBLIC_SOURCES[name].convert(row | {k: row[v] for k, v in changes.items()}, place).problem)
        for place, _, row in read_file(public(name))
    ]


def lines(path: Path) -> list[dict]:
    """Return the rows of a JSON lines file; none if it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder, by file name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}

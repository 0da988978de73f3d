"""Paths of the repository, the laboratory and the public data sets."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "data" / "toy"

# `make data` writes the first folder; a checkout may share the second one with its neighbours.
DATASET_FOLDERS = (ROOT / "data" / "public" / "raw", ROOT.parent / "shared" / "datasets")


def dataset(file: str) -> Path:
    """Return the path of a public set's file; skip the test if no folder has it."""
    for folder in DATASET_FOLDERS:
        if (folder / file).exists():
            return folder / file
    pytest.skip(f"public data set {file} is missing: make data")

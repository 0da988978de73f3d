"""Paths of the repository, the laboratory and the public data sets."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "data" / "toy"

# `make data` writes data/public/raw; a checkout without it may share a folder of data sets with its neighbours.
DATASETS = ROOT / "data" / "public" / "raw"
if not DATASETS.is_dir():
    DATASETS = ROOT.parent / "shared" / "datasets"


def dataset(file: str) -> Path:
    """Return the path of a public set's file; skip the test if the file is missing."""
    path = DATASETS / file
    if not path.exists():
        pytest.skip(f"public data set {file} is missing: make data")
    return path

"""Where the repository and the public data sets lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATASETS = ROOT.parent / "shared" / "datasets"

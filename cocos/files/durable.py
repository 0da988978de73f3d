"""Files that are written whole or not at all."""

import json
from pathlib import Path


def save_json(value: object, path: str | Path) -> None:
    """Write JSON for people: indented, NaN refused, everything else as text."""
    Path(path).write_text(json.dumps(value, indent=2, default=str, allow_nan=False) + "\n", encoding="utf-8")

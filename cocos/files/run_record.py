"""The contents of run.json. Imports the standard library only."""

import hashlib
import importlib.metadata
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "trl", "accelerate", "peft", "datasets", "deepspeed", "wandb")


def run_record(*configs: Any, **facts: object) -> dict[str, object]:
    """Return the record of a run: `options`, `versions` and the given facts.

    Args:
        configs: Dataclasses or transformers' TrainingArguments; if two of them have an
            option of the same name, the value of the later one is kept.

    """
    options: dict[str, object] = {}
    for config in configs:
        options |= config.to_dict() if hasattr(config, "to_dict") else asdict(config)
    versions = {name: importlib.metadata.version(name) for name in PACKAGES if _is_installed(name)}
    return {"options": options, "versions": versions | {"python": sys.version.split()[0]}, **facts}


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(names: Iterable[str | None], locate: Callable[[str], Path] = Path) -> dict[str, str]:
    """Return the SHA-256 of each file, by the name that the user gave.

    Args:
        names: Values of options; None and "" (no file) are left out.
        locate: Returns the path of the file with this name.

    """
    return {name: sha256(locate(name)) for name in names if name}


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

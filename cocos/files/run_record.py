"""What a run was made with, as it stands in run.json: options, versions, data files, and further facts."""

import hashlib
import importlib.metadata
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "trl", "accelerate", "peft", "datasets", "deepspeed", "wandb")


def run_record(*configs: Any, **facts: object) -> dict[str, object]:
    """What a result was made with: options, versions, and further facts (data sha256, isolation level)."""
    options: dict[str, object] = {}
    for config in configs:
        options |= config.to_dict() if hasattr(config, "to_dict") else asdict(config)
    versions = {name: importlib.metadata.version(name) for name in PACKAGES if _installed(name)}
    return {"options": options, "versions": versions | {"python": sys.version.split()[0]}, **facts}


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal: recorded beside every result."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

"""The contents of run.json, and the protection of trained models in an output folder.

Imports the standard library only.
"""

import hashlib
import importlib.metadata
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cocos.files.durable import DISK_FULL

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


WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "adapter_model.bin")


def check_output_folder(folder: Path, remedy: str = "", is_resumed: bool = False) -> None:
    """Check that a run can write to a folder without losing a trained model.

    A training run that was stopped before its first checkpoint has nothing to lose, so it may be replaced.

    Args:
        remedy: What else than another folder helps if the folder contains checkpoints; "" for nothing.
        is_resumed: Whether the run continues from a checkpoint, so that the folder may contain a model.

    Raises:
        ValueError: The path is a file or cannot be written to, or the folder contains a trained model or
            checkpoints.

    """
    _check_writable(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output_dir {folder} is a file; give a folder")
    if is_resumed:
        return
    if any(path.is_dir() for path in folder.glob("checkpoint-*")):
        raise ValueError(
            f"--output_dir {folder} contains checkpoints of a training run; "
            f"{f'{remedy}, or ' if remedy else ''}choose another folder"
        )
    if any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        raise ValueError(f"--output_dir {folder} contains a model; choose another folder")


def _check_writable(folder: Path) -> None:
    """Raise ValueError if nothing can be written to a folder, or no such folder can be made. Makes none."""
    if not str(folder).isprintable():
        raise ValueError(
            f"--output_dir {str(folder)!r} has characters that cannot be printed; choose another folder"
        )
    try:
        if folder.is_symlink() and not folder.exists():
            raise ValueError(
                f"--output_dir {folder}: a link to nowhere; make its target, or choose another folder"
            )
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if existing.is_dir():  # root may write where the permissions do not say so, and fail where they do
            tempfile.TemporaryDirectory(dir=existing).cleanup()
        elif existing != folder:
            raise ValueError(f"--output_dir {folder}: {existing} is a file; choose another folder")
    except OSError as error:
        if error.errno in DISK_FULL:  # named with its remedy when the run writes
            return
        raise ValueError(
            f"--output_dir {folder}: cannot be written to ({error.strerror}); choose another folder"
        ) from None

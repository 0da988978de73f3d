"""Detection of a trained model in a folder, so that no command overwrites it."""

from pathlib import Path

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "adapter_model.bin")


def find_model(folder: Path) -> str:
    """Return what a folder contains, "checkpoints of a training run" or "a model"; "" for neither."""
    if any(path.is_dir() for path in folder.glob("checkpoint-*")):
        return "checkpoints of a training run"
    return "a model" if any(next(folder.glob(pattern), None) for pattern in WEIGHTS) else ""

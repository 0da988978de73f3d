"""Protection of the trained models in an output folder. Imports the standard library only."""

from pathlib import Path

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "adapter_model.bin")


def check_output_folder(folder: Path, remedy: str = "", is_resumed: bool = False) -> None:
    """Check that a run can write to a folder without losing a trained model.

    A training run that was stopped before its first checkpoint has nothing to lose, so it may be replaced.

    Args:
        folder: Output folder of the run; it need not exist.
        remedy: What else than another folder helps if the folder contains checkpoints; "" for nothing.
        is_resumed: Whether the run continues from a checkpoint, so that the folder may contain a model.

    Raises:
        ValueError: The path is a file, or the folder contains a trained model or checkpoints.

    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output_dir {folder} is a file; give a folder")
    if is_resumed:
        return
    if any(path.is_dir() for path in folder.glob("checkpoint-*")):
        raise ValueError(
            f"--output_dir {folder} contains checkpoints of a training run; "
            f"{remedy}{', or ' * bool(remedy)}choose another folder"
        )
    if any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        raise ValueError(f"--output_dir {folder} contains a model; choose another folder")

"""Protection of the trained models in an output folder. Imports the standard library only."""

from pathlib import Path

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "adapter_model.bin")


def check_output_folder(output_dir: str, is_resumed: bool) -> None:
    """Check that a run can write to a folder without losing an earlier one.

    A run that was stopped before its first checkpoint has nothing to lose, so a new run may replace it.

    Args:
        output_dir: Output folder of the run; it need not exist.
        is_resumed: Whether the run continues from a checkpoint.

    Raises:
        ValueError: The path is not a folder, or the folder contains a trained model or checkpoints and the
            run is not resumed.

    """
    folder = Path(output_dir)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output_dir {folder}: this is a file; give a folder")
    if is_resumed:
        return
    if any(path.is_dir() for path in folder.glob("checkpoint-*")):
        raise ValueError(
            f"--output_dir {folder} contains the checkpoints of a run; continue it with "
            "--resume_from_checkpoint last, or choose another folder"
        )
    if any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        raise ValueError(f"--output_dir {folder} contains a model; choose another folder")

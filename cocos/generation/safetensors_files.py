"""Check of the weights of a checkpoint folder without loading them: a download or a copy may be cut off.

Reads only the headers: https://github.com/huggingface/safetensors describes the format.
"""

import json
import struct
import zipfile
from pathlib import Path

WHOLE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SHARD_INDICES = tuple(f"{name}.index.json" for name in WHOLE_WEIGHTS)
LFS_POINTER = b"version https://git-lfs"
REMEDY = "download or copy it again"


def check_weights(folder: Path) -> None:
    """Raise ValueError if a folder has no weights, lacks a shard of them, or has a damaged file."""
    files = [folder / name for name in WHOLE_WEIGHTS if (folder / name).is_file()]
    # transformers reads the first of these too: whole before sharded, safetensors before pickles.
    indices = [folder / name for name in SHARD_INDICES if (folder / name).is_file()]
    if files:
        check_weight_file(files[0])
    elif indices:
        for shard in _shards(indices[0]):
            if not shard.is_file():
                raise ValueError(
                    f"{folder}: {indices[0].name} names {shard.name}, which is missing; {REMEDY}"
                )
            check_weight_file(shard)
    else:
        raise ValueError(
            f"{folder}: the folder has no weights (model.safetensors); give the folder of a saved model"
        )


def check_weight_file(path: Path) -> None:
    """Raise ValueError if a file of weights is cut off, or is not what its name says.

    A safetensors file is 8 bytes with the length of its header, the header in JSON, and the tensors.
    """
    with open(path, "rb") as file:
        start = file.read(len(LFS_POINTER))
        if start == LFS_POINTER:
            raise ValueError(
                f"{path}: a pointer of Git LFS, not the weights; run `git lfs pull` in {path.parent}"
            )
        if path.suffix == ".safetensors":
            size, expected = path.stat().st_size, _safetensors_size(path)
            if size != expected:
                found = "its header is unreadable" if expected is None else f"{size} of {expected} bytes"
                raise ValueError(f"{path}: the file is damaged ({found}); {REMEDY}")
        # torch.save writes a ZIP archive, whose directory stands at its end. Older files are plain pickles.
        elif start.startswith(b"PK") and not zipfile.is_zipfile(path):
            raise ValueError(f"{path}: the file is damaged (its end is missing); {REMEDY}")


def _shards(index: Path) -> list[Path]:
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(f"{index}: the file is damaged (no weight_map); {REMEDY}") from None
    return [index.parent / name for name in sorted(names)]


def _safetensors_size(path: Path) -> int | None:
    """Return the size of the file according to its header, in bytes; None if the header is unreadable."""
    with open(path, "rb") as file:
        try:
            [header_size] = struct.unpack("<Q", file.read(8))
            # A damaged length must not fill the memory: the header lies within the file.
            if header_size > path.stat().st_size:
                return None
            header = json.loads(file.read(header_size))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            return 8 + header_size + max(ends, default=0)
        except (ValueError, LookupError, TypeError, AttributeError, struct.error):
            return None

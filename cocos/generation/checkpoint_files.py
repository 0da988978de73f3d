"""Check of a checkpoint before it is loaded: every fault is one line, found within seconds.

A name is a folder of this machine, or a model on the Hugging Face hub. Without this check transformers would
ask the hub for a mistyped folder, retry for a minute without a network, and fail in many lines.
"""

import difflib
import json
import zipfile
from importlib.metadata import version
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_url, is_offline_mode, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id
from safetensors import SafetensorError, safe_open

from cocos.config.model_names import MODELS, similar_names

HUB_TIMEOUT_S = 5.0
CONFIG, ADAPTER_CONFIG, ADAPTER_WEIGHTS = "config.json", "adapter_config.json", "adapter_model.safetensors"
# One of these holds a tokenizer's vocabulary. Without any, transformers fails with a page about conversion.
TOKENIZER_FILES = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tokenization_*.py")
GGUF_REMEDY = (
    "convert it with `python scripts/import_gguf.py FILE.gguf FOLDER`, or serve it with Ollama and use "
    "--generator api"
)
WHOLE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SHARD_INDICES = tuple(f"{name}.index.json" for name in WHOLE_WEIGHTS)
LFS_POINTER = b"version https://git-lfs"
DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")
REMEDY = "download or copy it again"


def check_checkpoint(name_or_path: str, revision: str | None = None, needs_weights: bool = True) -> None:
    """Check that a checkpoint exists and that its files are complete, without loading it.

    The hub is asked only for a name that can be a hub id, is neither a folder here nor in the local cache,
    and only once: without a network the check ends within seconds.

    Args:
        name_or_path: A folder, or a hub id. A PEFT adapter is checked together with its base model.
        revision: Branch, tag or commit on the hub; None: the default branch.
        needs_weights: Whether the weights of a folder are checked, too. A dry run does not need them.

    Raises:
        ValueError: It does not exist or cannot be read, or a file of it is missing or damaged.

    """
    path = Path(name_or_path)
    if path.is_dir():
        _check_folder(path, needs_weights)
    elif path.is_file():
        remedy = GGUF_REMEDY if path.suffix == ".gguf" else "give the folder that contains it"
        raise ValueError(f"--model_name_or_path {path}: a file, not a checkpoint folder; {remedy}")
    else:
        _check_hub_id(name_or_path, revision)


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
    """Raise ValueError if a file of weights is cut off, or is not what its name says."""
    with open(path, "rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ValueError(
                f"{path}: a pointer of Git LFS, not the weights; run `git lfs pull` in {path.parent}"
            )
    if fault := weight_file_fault(path):
        raise ValueError(f"{path}: the file is damaged ({fault}); {REMEDY}")


def weight_file_fault(path: Path, may_be_old: bool = True) -> str | None:
    """Return what is wrong with a file that safetensors or torch.save wrote; None for nothing found.

    Reads no weights: a safetensors file has its size in its header, a ZIP archive its index at its end. Old
    files of torch.save are plain pickles, which cannot be checked.
    """
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, "np"):
                return None
        except (SafetensorError, OSError) as error:
            return str(error)
    with open(path, "rb") as file:
        must_be_zip = not may_be_old or file.read(2) == b"PK"
    return "its end is missing" if must_be_zip and not zipfile.is_zipfile(path) else None


def _shards(index: Path) -> list[Path]:
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(f"{index}: the file is damaged (no weight_map); {REMEDY}") from None
    return [index.parent / name for name in sorted(names)]


def _check_folder(folder: Path, needs_weights: bool) -> None:
    if (folder / ADAPTER_CONFIG).is_file() and not (folder / CONFIG).is_file():
        _check_adapter(folder)
    elif not (folder / CONFIG).is_file():
        raise ValueError(f"{folder}: the folder has no {CONFIG}; {_hint(folder)}")
    else:
        _check_config(folder / CONFIG)
        if needs_weights:
            check_weights(folder)
    if not any(found for pattern in TOKENIZER_FILES for found in folder.glob(pattern)):
        raise ValueError(
            f"{folder}: the folder has no tokenizer (tokenizer.json); copy the tokenizer files of the model "
            "that it was made from into it"
        )


def _check_config(path: Path) -> None:
    """Raise ValueError if transformers does not know the architecture or the data type of a config.json."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # takes a second

    config = _read_json(path)
    kind = config.get("model_type")
    if kind not in CONFIG_MAPPING_NAMES and "auto_map" not in config:
        raise ValueError(
            f"{path}: model_type {kind!r} is unknown to transformers {version('transformers')}; update "
            "transformers, or choose another model"
        )
    dtype = config.get("dtype") or config.get("torch_dtype")
    if dtype not in (None, *DTYPES):
        raise ValueError(f"{path}: the data type {dtype!r} is none of {', '.join(DTYPES)}; correct it")


def _check_adapter(folder: Path) -> None:
    base = _read_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path")
    if not base:
        raise ValueError(
            f"{folder}/{ADAPTER_CONFIG}: no base_model_name_or_path; add the adapter's base model"
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise ValueError(
            f"{folder}: the adapter has no {ADAPTER_WEIGHTS}; give the folder of a saved adapter"
        )
    check_weight_file(folder / ADAPTER_WEIGHTS)
    try:
        check_checkpoint(base)
    except ValueError as error:
        raise ValueError(
            f"{folder}/{ADAPTER_CONFIG}: the adapter's base model cannot be used: {error}"
        ) from None


def _read_json(path: Path) -> dict:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); download or copy it again") from None


def _hint(folder: Path) -> str:
    """Return what to do about a folder that is no checkpoint."""
    if next(folder.glob("*.gguf"), None):
        return GGUF_REMEDY
    inner = sorted(
        (config.parent for config in folder.glob(f"*/{CONFIG}")), key=lambda path: path.stat().st_mtime
    )
    return f"did you mean {inner[-1]}?" if inner else "give the folder of a saved model"


def _check_hub_id(name: str, revision: str | None) -> None:
    """Raise ValueError if a name that is not a folder here is no usable model on the hub either."""
    option = f"--model_name_or_path {name}"
    try:
        validate_repo_id(name)
    except HFValidationError:
        remedy = _similar(Path(name)) or "give a checkpoint folder or a hub id like org/name"
        raise ValueError(f"{option}: no such folder; {remedy}") from None
    if any(
        isinstance(try_to_load_from_cache(name, file, revision=revision), str)
        for file in (CONFIG, ADAPTER_CONFIG)
    ):
        return
    if near := similar_names(name):
        raise ValueError(
            f"{option}: no such folder, and no name in {MODELS}; did you mean {near}? A model of the hub is "
            "named org/name"
        )
    # `outputs/cocos` beside a folder `outputs` is a mistyped path. The hub is not asked: anyone may have
    # published a model of that name.
    if "/" in name and Path(name).parent.is_dir():
        remedy = _similar(Path(name)) or f"for the hub's model: hf download {name} --local-dir {name}"
        raise ValueError(f"{option}: {Path(name).parent} has no such folder; {remedy}")
    if is_offline_mode():
        raise ValueError(
            f"{option}: no such folder, and not in the cache of the hub (HF_HUB_OFFLINE is set); check the "
            "path, or download the model with a network"
        )
    try:
        try:
            get_hf_file_metadata(hf_hub_url(name, CONFIG, revision=revision), timeout=HUB_TIMEOUT_S)
        except EntryNotFoundError:
            get_hf_file_metadata(hf_hub_url(name, ADAPTER_CONFIG, revision=revision), timeout=HUB_TIMEOUT_S)
    except (HTTPError, HfHubHTTPError) as error:
        raise ValueError(f"{option}: no such folder, and {_hub_fault(error, revision)}") from None


def _hub_fault(error: Exception, revision: str | None) -> str:
    """Return why the hub does not have the model, and what to do."""
    match error:
        case GatedRepoError():
            return "on the hub its licence has to be accepted: do so on its page, then run `hf auth login`"
        case RevisionNotFoundError():
            return f"the model on the hub has no revision {revision!r}; check --model_revision"
        case EntryNotFoundError():
            return f"the model on the hub has no {CONFIG} (is it GGUF?); {GGUF_REMEDY}"
        case RepositoryNotFoundError():
            return "the hub has no such model, or it is private; check the name, or run `hf auth login`"
    reason = " ".join(str(error).split())
    return f"the hub cannot be asked ({reason}); check the path, or download the model with a network"


def _similar(path: Path) -> str:
    """Return a hint at the folder here with the most similar name, or "" if there is none."""
    if not path.parent.is_dir():
        return ""
    names = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else ""

"""Check of a checkpoint before it is loaded: every fault is one line, found within seconds.

A name is a folder of this machine, or a model on the Hugging Face hub. Without this check transformers would
ask the hub for a mistyped folder, retry for a minute without a network, and fail in many lines.
"""

import difflib
import json
from importlib.metadata import version
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_url, is_offline_mode, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError, HTTPError
from huggingface_hub.utils import validate_repo_id
from safetensors import SafetensorError, safe_open

from cocos.config.model_names import MODELS, similar_names

HUB_TIMEOUT_S = 5.0
LOCAL_MODELS = Path("models")  # scripts/fetch_model.py writes them there
CONFIG, ADAPTER_CONFIG = "config.json", "adapter_config.json"
# One of these holds a tokenizer's vocabulary. Without any, transformers fails with a page about conversion.
TOKENIZER_FILES = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tokenization_*.py")
GGUF_REMEDY = (
    "convert it with `python scripts/import_gguf.py FILE.gguf FOLDER`, or serve it with Ollama and use "
    "--generator api"
)
LFS_POINTER = b"version https://git-lfs"
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
        raise ValueError(f"model {path}: a file, not a checkpoint folder; {remedy}")
    else:
        _check_hub_id(name_or_path, revision)


def weight_file_fault(path: Path) -> str | None:
    """Return why a file is no whole safetensors file; None if it is. The header says how long the file is."""
    try:
        with safe_open(path, "np"):
            return None
    except (SafetensorError, OSError) as error:
        return str(error)


def _check_folder(folder: Path, needs_weights: bool) -> None:
    if (folder / ADAPTER_CONFIG).is_file() and not (folder / CONFIG).is_file():
        _check_base_model(folder)
        _check_weights(folder, "adapter_model")
    elif not (folder / CONFIG).is_file():
        raise ValueError(f"{folder}: the folder has no {CONFIG}; {_hint(folder)}")
    else:
        _check_architecture(folder / CONFIG)
        if needs_weights:
            _check_weights(folder, "model")
    if not any(found for pattern in TOKENIZER_FILES for found in folder.glob(pattern)):
        raise ValueError(
            f"{folder}: the folder has no tokenizer (tokenizer.json); copy the tokenizer files of the model "
            "that it was made from into it"
        )


def _check_weights(folder: Path, name: str) -> None:
    """Raise ValueError if a folder has no weights, lacks a shard of them, or has a damaged file."""
    index = folder / f"{name}.safetensors.index.json"
    weights = [folder / f"{name}.safetensors"]
    if not weights[0].is_file():
        if any(folder.glob("*.bin")):
            return  # pickles, which cannot be checked without loading them
        if not index.is_file():
            raise ValueError(
                f"{folder}: the folder has no weights ({name}.safetensors); give the folder of a saved model"
            )
        weights = [folder / shard for shard in sorted(set(_read_json(index).get("weight_map", {}).values()))]
    for file in weights:
        if not file.is_file():
            raise ValueError(f"{folder}: {index.name} names {file.name}, which is missing; {REMEDY}")
        if fault := weight_file_fault(file):
            with open(file, "rb") as start:
                is_pointer = start.read(len(LFS_POINTER)) == LFS_POINTER
            if is_pointer:
                raise ValueError(
                    f"{file}: a pointer of Git LFS, not the weights; run `git lfs pull` in {folder}"
                )
            raise ValueError(f"{file}: the file is damaged ({fault}); {REMEDY}")


def _check_architecture(path: Path) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # takes a second

    config = _read_json(path)
    kind = config.get("model_type")
    if kind not in CONFIG_MAPPING_NAMES and "auto_map" not in config:
        raise ValueError(
            f"{path}: model_type {kind!r} is unknown to transformers {version('transformers')}; update "
            "transformers, or choose another model"
        )


def adapter_base(folder: Path) -> str:
    """Return the base model of an adapter: a hub id, or a folder here, beside the adapter or above it.

    Raises:
        ValueError: The adapter's configuration cannot be read, or names no model.

    """
    base = _read_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path")
    if not base:
        raise ValueError(f"{folder / ADAPTER_CONFIG}: no base_model_name_or_path; add the base model")
    # A relative path is that of the folder in which the training was started.
    places = (place / base for place in (Path(), folder.absolute(), *folder.absolute().parents))
    return next((str(place) for place in places if place.is_dir()), str(base))


def _check_base_model(folder: Path) -> None:
    base = adapter_base(folder)
    try:
        check_checkpoint(base)
    except ValueError as error:
        raise ValueError(
            f"{folder}: an adapter of the base model {base!r}, which is no folder here, beside it or "
            f"above it, nor another model that can be loaded; set base_model_name_or_path in "
            f"{folder / ADAPTER_CONFIG} to its path ({error})"
        ) from None


def _read_json(path: Path) -> dict:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); {REMEDY}") from None


def _hint(folder: Path) -> str:
    """Return what to do about a folder that is no checkpoint."""
    if any(folder.glob("*.gguf")):
        return GGUF_REMEDY
    inner = max(folder.glob(f"*/{CONFIG}"), key=lambda path: path.stat().st_mtime, default=None)
    return f"did you mean {inner.parent}?" if inner else "give the folder of a saved model"


def _check_hub_id(name: str, revision: str | None) -> None:
    """Raise ValueError if a name that is not a folder here is no usable model on the hub either."""
    place, parent = f"model {name}: no such folder", Path(name).parent
    folders = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    close = difflib.get_close_matches(Path(name).name, folders, n=1)
    similar = f"did you mean {parent / close[0]}?" if close else ""
    try:
        validate_repo_id(name)
    except HFValidationError:
        remedy = similar or "give a checkpoint folder or a hub id like org/name"
        raise ValueError(f"{place}; {remedy}") from None
    cached = (try_to_load_from_cache(name, file, revision=revision) for file in (CONFIG, ADAPTER_CONFIG))
    if any(isinstance(path, str) for path in cached):
        return
    if near := similar_names(name):
        raise ValueError(
            f"{place}, and no name in {MODELS}; did you mean {near}? A model of the hub is named org/name"
        )
    # `outputs/cocos` beside a folder `outputs` is a mistyped path. The hub is not asked: anyone may have
    # published a model of that name.
    if "/" in name and parent.is_dir():
        remedy = similar or f"for the hub's model: hf download {name} --local-dir {name}"
        raise ValueError(f"{place} in {parent}; {remedy}")
    local = LOCAL_MODELS / Path(name).name
    copy = (
        f"for the copy in this folder give --model_name_or_path {local}" if (local / CONFIG).is_file() else ""
    )
    if is_offline_mode():
        remedy = copy or "check the path, or download the model with a network"
        raise ValueError(f"{place}, and not in the cache of the hub (HF_HUB_OFFLINE is set); {remedy}")
    try:
        try:
            get_hf_file_metadata(hf_hub_url(name, CONFIG, revision=revision), timeout=HUB_TIMEOUT_S)
        except EntryNotFoundError:
            get_hf_file_metadata(hf_hub_url(name, ADAPTER_CONFIG, revision=revision), timeout=HUB_TIMEOUT_S)
    except EntryNotFoundError:
        raise ValueError(f"{place}, and on the hub it has no {CONFIG} (is it GGUF?); {GGUF_REMEDY}") from None
    except (HTTPError, HfHubHTTPError) as error:
        reason = " ".join(str(error).split())[:300]  # says whether it is missing, gated, or out of reach
        remedy = copy or (
            "check the name and the revision, accept its licence on its page and run `hf auth login`, or "
            "download it with a network"
        )
        raise ValueError(f"{place}, and the hub does not give it ({reason}); {remedy}") from None

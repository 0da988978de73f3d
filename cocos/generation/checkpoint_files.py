"""Check of a checkpoint before it is loaded: every fault is one line, found within seconds.

A name is a folder of this machine, or a model on the Hugging Face hub. Without this check transformers would
ask the hub for a mistyped folder, retry for a minute without a network, and fail in many lines.
"""

import difflib
from dataclasses import replace
from pathlib import Path

from huggingface_hub import (
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    is_offline_mode,
    try_to_load_from_cache,
)
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError, HTTPError
from huggingface_hub.utils import validate_repo_id
from safetensors import SafetensorError, safe_open

from cocos.config.model_names import MODELS, similar_names
from cocos.generation.model_kinds import (
    GGUF_REMEDY,
    REMEDY,
    ModelKind,
    adapter_type,
    brief,
    model_kind,
    other_format,
    read_json,
)

HUB_TIMEOUT_S = 5.0
LOCAL_MODELS = Path("models")  # scripts/fetch_model.py writes them there
CONFIG, ADAPTER_CONFIG = "config.json", "adapter_config.json"
# One of these holds a tokenizer's vocabulary. Without any, transformers fails with a page about conversion.
TOKENIZER_FILES = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tokenization_*.py")
LFS_POINTER = b"version https://git-lfs"
# Of a model or an adapter, by its name; in shards, the list of them or the shards themselves.
WEIGHT_FILES = ("{}.safetensors", "{}.safetensors.index.json", "pytorch_{}*.bin", "{}.bin")


def check_checkpoint(
    name_or_path: str, revision: str | None = None, needs_weights: bool = True, trusts_code: bool = False
) -> ModelKind:
    """Check that a checkpoint exists and that its files are complete, without loading it; return its kind.

    The hub is asked only for a name that can be a hub id, is neither a folder here nor in the local cache,
    and only once: without a network the check ends within seconds.

    Args:
        name_or_path: A folder, or a hub id. A PEFT adapter is checked together with its base model.
        revision: Branch, tag or commit on the hub; None: the default branch.
        needs_weights: Whether the weights of a folder are checked, too, and that transformers can load them
            here. A dry run does not need them.
        trusts_code: Whether Python files of the folder may be run.

    Raises:
        ValueError: It does not exist or cannot be read, a file of it is missing or damaged, or it is no
            causal language model.

    """
    path = Path(name_or_path)
    if path.is_dir():
        return _check_folder(path, needs_weights, trusts_code)
    if path.is_file():
        remedy = GGUF_REMEDY if path.suffix == ".gguf" else "give the folder that contains it"
        raise ValueError(f"model {path}: a file, not a checkpoint folder; {remedy}")
    config = _hub_config(name_or_path, revision)
    if config.name == CONFIG:
        return model_kind(name_or_path, config, trusts_code, needs_weights)
    return ModelKind(name_or_path, "a model of the hub", adapter=adapter_type(config))


def weight_file_fault(path: Path) -> str | None:
    """Return why a file is no whole safetensors file; None if it is. The header says how long the file is."""
    try:
        with safe_open(path, "np"):
            return None
    except (SafetensorError, OSError) as error:
        return str(error)


def is_adapter(name_or_path: str | None) -> bool:
    """Return whether a name is a folder with an adapter; config.json of the base may be in it."""
    folder = Path(name_or_path or "")
    is_whole = (folder / CONFIG).is_file() and bool(_weight_files(folder, "model"))
    return (folder / ADAPTER_CONFIG).is_file() and not is_whole


def tokenizer_source(name_or_path: str) -> str:
    """Return the model whose tokenizer a checkpoint has: an adapter without one has its base model's."""
    return name_or_path if _has_tokenizer(Path(name_or_path)) else base_model(name_or_path)


def _has_tokenizer(folder: Path) -> bool:
    return any(found for pattern in TOKENIZER_FILES for found in folder.glob(pattern))


def _weight_files(folder: Path, name: str) -> list[Path]:
    """Return the files of a folder's weights, or the list of their shards."""
    return [path for ending in WEIGHT_FILES for path in folder.glob(ending.format(name))]


def _check_folder(folder: Path, needs_weights: bool, trusts_code: bool) -> ModelKind:
    for file in folder.iterdir():
        if file.is_file() and _is_pointer(file):
            raise ValueError(
                f"{file}: a pointer of Git LFS, not the file itself; run `git lfs pull` in {folder}"
            )
    if is_adapter(str(folder)):
        adapter = adapter_type(folder / ADAPTER_CONFIG)
        base = _check_base_model(folder, needs_weights)
        kind = replace(
            base, name=str(folder), architecture=f"{base.name} ({base.architecture})", adapter=adapter
        )
        _check_weights(folder, "adapter_model")
        return kind
    if (folder / ADAPTER_CONFIG).is_file():
        raise ValueError(
            f"{folder}: the folder has an adapter and a whole model; move {ADAPTER_CONFIG} and the adapter's "
            f"weights, or {CONFIG} and the model's, to another folder"
        )
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder}: the folder has no {CONFIG}; {_hint(folder)}")
    kind = model_kind(str(folder), folder / CONFIG, trusts_code, needs_weights)
    if needs_weights:
        _check_weights(folder, "model")
    if not _has_tokenizer(folder):
        raise ValueError(
            f"{folder}: the folder has no tokenizer (tokenizer.json); copy the tokenizer files of the model "
            "that it was made from into it"
        )
    return kind


def _is_pointer(file: Path) -> bool:
    """Return whether a file is what Git leaves in place of a large file that was not fetched."""
    with open(file, "rb") as start:
        return start.read(len(LFS_POINTER)) == LFS_POINTER


def _check_weights(folder: Path, name: str) -> None:
    """Raise ValueError if a folder has no weights, lacks a shard of them, or has a damaged file."""
    index = folder / f"{name}.safetensors.index.json"
    weights = [folder / f"{name}.safetensors"]
    if not weights[0].is_file():
        if not index.is_file():
            if _weight_files(folder, name):
                return  # pickles, which cannot be checked without loading them
            raise ValueError(f"{folder}: the folder has no weights ({name}.safetensors); {_hint(folder)}")
        weights = [folder / shard for shard in sorted(set(read_json(index).get("weight_map", {}).values()))]
    for file in weights:
        if not file.is_file():
            raise ValueError(f"{folder}: {index.name} names {file.name}, which is missing; {REMEDY}")
        if fault := weight_file_fault(file):
            raise ValueError(f"{file}: the file is damaged ({fault}); {REMEDY}")


def adapter_base(folder: Path) -> str:
    """Return the base model of an adapter: a hub id, or a folder here, beside the adapter or above it.

    A folder with an adapter is none: a run `outputs/org/name` is not the `org/name` that it was trained from.

    Raises:
        ValueError: The adapter's configuration cannot be read, or names no model.

    """
    base = read_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise ValueError(
            f"{folder / ADAPTER_CONFIG}: base_model_name_or_path is {base!r}; give the base model's name"
        )
    # A relative path is that of the folder in which the training was started.
    places = (place / base for place in (Path(), folder.absolute(), *folder.absolute().parents))
    return next((str(place) for place in places if place.is_dir() and not is_adapter(str(place))), base)


def base_model(name_or_path: str) -> str:
    """Return the model that an adapter was made for; the name itself if it is a whole model."""
    return adapter_base(Path(name_or_path)) if is_adapter(name_or_path) else name_or_path


def _check_base_model(folder: Path, needs_weights: bool) -> ModelKind:
    base = adapter_base(folder)
    try:
        return check_checkpoint(base, needs_weights=needs_weights)
    except ValueError as error:
        if Path(base).is_dir():
            raise ValueError(f"{folder}: an adapter of the base model {base!r}: {error}") from None
        raise ValueError(
            f"{folder}: an adapter of the base model {base!r}, which is no whole model here, beside it "
            f"or above it, nor another model that can be loaded; set base_model_name_or_path in "
            f"{folder / ADAPTER_CONFIG} to its path ({error})"
        ) from None


def _hint(folder: Path) -> str:
    """Return what to do about a folder without the files of a checkpoint."""
    inner = max(folder.glob(f"*/{CONFIG}"), key=lambda path: path.stat().st_mtime, default=None)
    if inner:
        return f"did you mean {inner.parent}?"
    return other_format(folder) or "give the folder of a saved model"


def _hub_config(name: str, revision: str | None) -> Path:
    """Return the configuration of a model of the hub, or of an adapter.

    Raises:
        ValueError: The name is neither a folder here nor a usable model of the hub.

    """
    place, parent = f"model {name}: no such folder", Path(name).parent
    folders = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    close = difflib.get_close_matches(Path(name).name, folders, n=1)
    similar = f"did you mean {parent / close[0]}?" if close else ""
    try:
        validate_repo_id(name)
    except HFValidationError:
        remedy = similar or "give a checkpoint folder or a hub id like org/name"
        raise ValueError(f"{place}; {remedy}") from None
    for file in (CONFIG, ADAPTER_CONFIG):
        if isinstance(cached := try_to_load_from_cache(name, file, revision=revision), str):
            return Path(cached)
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
            return _downloaded(name, CONFIG, revision)
        except EntryNotFoundError:
            return _downloaded(name, ADAPTER_CONFIG, revision)
    except EntryNotFoundError:
        raise ValueError(f"{place}, and on the hub it has no {CONFIG} (is it GGUF?); {GGUF_REMEDY}") from None
    except (HTTPError, HfHubHTTPError) as error:
        reason = brief(error)  # says whether it is missing, gated, or out of reach
        remedy = copy or (
            "check the name and the revision, accept its licence on its page and run `hf auth login`, or "
            "download it with a network"
        )
        raise ValueError(f"{place}, and the hub does not give it ({reason}); {remedy}") from None


def _downloaded(name: str, file: str, revision: str | None) -> Path:
    """Return a file of the hub; ask for its size first, because a download retries for a minute."""
    get_hf_file_metadata(hf_hub_url(name, file, revision=revision), timeout=HUB_TIMEOUT_S)
    return Path(hf_hub_download(name, file, revision=revision))

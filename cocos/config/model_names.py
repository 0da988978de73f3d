"""Short names of models, in configs/models.yaml of the current folder, or of the package."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cocos.files.bundled import locate

MODELS = "configs/models.yaml"


def full_name(model: str) -> str:
    """Return the folder or hub id of a short name; any other name, and a folder that exists, as it is."""
    if not model or "/" in model or Path(model).exists():
        return model
    places = [locate(place) for place in short_names().get(model, [model])]
    return next((place for place in places if Path(place).is_dir()), places[-1])


def with_full_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option of a command's model or models with full names; an endpoint's are its own."""
    name = "model_name_or_path"
    if not options.get(name) or options.get("generator") == "api":
        return {}
    model = options[name]
    return {name: [full_name(one) for one in model] if isinstance(model, list) else full_name(model)}


def short_names() -> dict[str, list[str]]:
    """Return the places of each model by its short name.

    Raises:
        ValueError: The file is no list of names.

    """
    path = Path(locate(MODELS))
    if not path.exists():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: not readable as YAML ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: no names; give lines such as `mine: outputs/cocos`")
    names = {str(name): place if isinstance(place, list) else [place] for name, place in content.items()}
    for name, places in names.items():
        if "/" in name or not places or not all(isinstance(place, str) for place in places):
            raise ValueError(f"{path}: {name}: give a name without `/`, then a folder or a name on the hub")
    return names


def similar_names(model: str) -> str:
    """Return the short names that were probably meant, as a phrase; "" for none."""
    return " or ".join(difflib.get_close_matches(model, short_names())) if "/" not in model else ""

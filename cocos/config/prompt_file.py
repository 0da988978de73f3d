"""A user's own wording of the prompts: a YAML file, see docs/generation.md."""

from pathlib import Path

import yaml

from cocos.files.run_record import sha256
from cocos.prompts import TEMPLATE_PLACEHOLDERS, PromptProtocol, own_protocol

KEYS = (*TEMPLATE_PLACEHOLDERS, "is_chat")


def load_prompt_file(path: str) -> PromptProtocol:
    """Return the protocol that a file of `--prompt_file` describes; its name has the file's checksum.

    Raises:
        ValueError: The file cannot be read, or it has a missing or unknown key, or an unknown placeholder.

    """
    place = f"--prompt_file {path}"
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{place}: no such file; give a YAML file with {', '.join(KEYS)}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{place}: not readable as YAML ({error}); see docs/generation.md") from None
    if not isinstance(content, dict):
        raise ValueError(f"{place}: no keys; give {', '.join(KEYS)}")
    if unknown := [key for key in content if key not in KEYS]:
        raise ValueError(f"{place}: unknown key {unknown[0]!r}; the keys are {', '.join(KEYS)}")
    is_chat = content.pop("is_chat", True)
    if not isinstance(is_chat, bool):
        raise ValueError(f"{place}: is_chat is {is_chat!r}; give true or false")
    for key in TEMPLATE_PLACEHOLDERS:
        if not isinstance(content.get(key), str) or not content[key].strip():
            raise ValueError(f"{place}: {key} is missing or not a text; add {key}: | and the text below it")
    try:
        return own_protocol(prompt_file_name(path), **content, is_chat=is_chat)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def prompt_file_name(path: str) -> str:
    """Return the name under which results record a prompt file; it changes with the file's content."""
    return f"{Path(path).name} ({sha256(path)[:12]})"

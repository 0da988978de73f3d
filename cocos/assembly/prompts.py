"""The prompt protocol that the options describe, and the names under which results record it."""

from dataclasses import replace
from pathlib import Path

import yaml

from cocos.config.prompt_options import PromptOptions
from cocos.dataprep.named_sets import load_problem_set
from cocos.files.run_record import sha256
from cocos.prompts import TEMPLATE_PLACEHOLDERS, PromptProtocol, named_protocol, own_protocol


def prompt_protocol(options: PromptOptions) -> PromptProtocol:
    """Return the prompt protocol, with the few-shot problems and the system message from their files."""
    protocol = _worded_protocol(options)
    for name in ("chat_template", "chat_template_kwargs", "system_prompt"):
        if getattr(options, name) and not protocol.is_chat:
            raise ValueError(f"--{name} needs a chat; choose --protocol chat, repair or fix, or leave it out")
    if options.system_prompt is None:
        return protocol
    return protocol.with_system(_system_text(options.system_prompt))


def _worded_protocol(options: PromptOptions) -> PromptProtocol:
    if options.prompt_file:
        return replace(load_prompt_file(options.prompt_file), prompt_tests=options.prompt_tests)
    few_shot = load_problem_set(options.few_shot_data) if options.few_shot_data else ()
    return named_protocol(
        options.protocol, few_shot, options.prompt_tests, options.prompt_signature, options.few_shot_examples
    )


def protocol_name(options: PromptOptions) -> str:
    """Return the name of the prompt protocol as results record it."""
    return prompt_file_name(options.prompt_file) if options.prompt_file else options.protocol


def prompt_file_name(path: str) -> str:
    """Return the name under which results record a file of prompts; it changes with the file's content."""
    return f"{Path(path).name} ({sha256(path)[:12]})"


def load_prompt_file(path: str) -> PromptProtocol:
    """Return the protocol that a YAML file of `--prompt_file` describes, see docs/evaluation.md.

    Raises:
        ValueError: The file cannot be read, or it has a missing or unknown key, or an unknown placeholder.

    """
    place, keys = f"--prompt_file {path}", (*TEMPLATE_PLACEHOLDERS, "is_chat")
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{place}: no such file; give a YAML file with {', '.join(keys)}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{place}: not readable as YAML ({error}); see docs/evaluation.md") from None
    if not isinstance(content, dict):
        raise ValueError(f"{place}: no keys; give {', '.join(keys)}")
    if unknown := [key for key in content if key not in keys]:
        raise ValueError(f"{place}: unknown key {unknown[0]!r}; the keys are {', '.join(keys)}")
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


def _system_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise ValueError(f"--system_prompt {path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--system_prompt {path}: not readable ({error})") from None

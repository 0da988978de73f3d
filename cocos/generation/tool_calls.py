"""Calls of tools in the text of a completion. Standard library only.

Models write a call in the form that they were trained on. This module reads the forms of these families:

    Qwen, Hermes, SmolLM    <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>, or a list of calls
    Qwen3-Coder             <tool_call><function=f><parameter=x>1</parameter></function></tool_call>
    Llama 3                 {"name": "f", "parameters": {"x": 1}}
    Mistral                 [TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]

An endpoint's calls are written in the first form, so that a transcript has them as text, whatever its source.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPENING, CLOSING = "<tool_call>", "</tool_call>"
# The closing tag may be missing: completions are truncated, and some tokenizers treat it as a special token.
_TAGGED = re.compile(f"{OPENING}(.*?)(?:{CLOSING}|\\Z)", re.DOTALL)
_SPECIAL = re.compile(r"\A(?:\[TOOL_CALLS\]|<\|python_tag\|>)")
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


@dataclass(frozen=True)
class ToolCall:
    """One call."""

    name: str  # the function; "" if the call is malformed
    arguments: Mapping[str, Any]  # its arguments by name; empty if they are malformed
    problem: str = ""  # what is malformed; "" if nothing is


def parse_tool_calls(text: str) -> list[ToolCall]:
    """Return the calls in a completion, malformed ones too; [] if it has none."""
    if blocks := _TAGGED.findall(text):
        return [call for block in blocks for call in _parse_block(block)]
    bare = _SPECIAL.sub("", text.strip())
    is_call = bare != text.strip() or (bare.startswith(("{", "[")) and '"name"' in bare)
    # a prompt that ends with the opening tag leaves the closing one to the completion.
    return list(_parse_block(bare.partition(CLOSING)[0])) if is_call or CLOSING in bare else []


def call_fault(calls: Sequence[ToolCall], tools: Sequence[Mapping[str, Any]], argument: str) -> str:
    """Return why an answer's first call cannot be made, or ""."""
    if not calls:
        return "it calls no tool"
    call = calls[0]
    if not call.problem and all(tool["function"]["name"] != call.name for tool in tools):
        return f"there is no tool {call.name!r}"
    if not call.problem and not isinstance(call.arguments.get(argument), str):
        return f"the argument {argument} is missing, or not a string"
    return call.problem


def call_reason(text: str) -> str:
    """Return the argument `reason` of the first call in a completion; "" if there is none."""
    calls = parse_tool_calls(text)
    reason = calls[0].arguments.get("reason") if calls else None
    return reason if isinstance(reason, str) else ""


def format_tool_call(name: str | None, arguments: object) -> str:
    """Return a call as text.

    Args:
        arguments: JSON, possibly malformed, as endpoints return it; some return the value itself.

    """
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments) if arguments else ""
    return f'{OPENING}\n{{"name": {json.dumps(name)}, "arguments": {arguments or "{}"}}}\n{CLOSING}'


def _parse_block(block: str) -> Iterator[ToolCall]:
    functions = _FUNCTION.findall(block)
    for name, body in functions:
        yield ToolCall(name, dict(_PARAMETER.findall(body)))
    if functions:
        return
    try:  # models write line ends inside strings
        values = json.loads(block, strict=False)
    except (ValueError, RecursionError) as error:
        yield ToolCall("", {}, f"it is not valid JSON ({error})")
        return
    for value in values if isinstance(values, list) else [values]:
        call = value if isinstance(value, dict) else {}
        name, arguments = call.get("name"), call.get("arguments", call.get("parameters"))
        if isinstance(arguments, str):  # encoded twice, as in OpenAI's format
            try:
                arguments = json.loads(arguments, strict=False)
            except (ValueError, RecursionError):
                arguments = None
        if isinstance(name, str) and isinstance(arguments, dict):
            yield ToolCall(name, arguments)
        else:
            yield ToolCall("", {}, "it needs a name and an object of arguments")

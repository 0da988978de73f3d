"""A field of a dataclass as an argument of argparse, as transformers' HfArgumentParser makes it.

TRL's and transformers' options are dataclasses for that parser, but importing it needs both packages, and
whoever evaluates an endpoint has neither. tests/config compares the arguments of both parsers. Beyond it,
a text that begins with `~/` is a path in the home folder, and one that names a bundled file is found.
"""

import argparse
import dataclasses
import types
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from cocos.files.bundled import locate

LIBRARY_GROUP = "options of TRL and transformers"


def add_options(parser: argparse.ArgumentParser, options_type: type) -> set[str]:
    """Add the options of a dataclass, this project's in sections before the hundreds of inherited ones.

    Returns:
        The names of this project's options.

    """
    own_classes = [cls for cls in options_type.__mro__ if cls.__module__.partition(".")[0] == "cocos"]
    # The class closest to the root declares an option; its subclasses only change the default.
    sections = {
        name: getattr(cls, "group", "run")
        for cls in own_classes
        for name in vars(cls).get("__annotations__", {})
        if name != "group"
    }
    titles = ["run", *sections.values(), LIBRARY_GROUP]
    groups = {title: parser.add_argument_group(title) for title in dict.fromkeys(titles)}
    hints = get_type_hints(options_type)
    for field in dataclasses.fields(options_type):
        if field.init:
            _add_option(groups[sections.get(field.name, LIBRARY_GROUP)], field, hints[field.name])
    return set(sections)


def _add_option(parser: Any, field: dataclasses.Field, hint: Any) -> None:
    """Add the argument of one field; an option that is on by default also has the flag `--no_NAME`."""
    kind, allows_none = _without_none(hint)
    choices: list[Any] | None = None
    if get_origin(kind) is Literal:
        choices = list(get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        choices = [member.value for member in kind]
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    arguments: dict[str, Any] = {"default": default}
    if choices is not None:
        arguments |= {"choices": choices, "type": _choice_type(choices)}
    elif kind is bool:
        arguments |= {"type": _boolean, "nargs": "?", "const": True}
    elif get_origin(kind) in (list, tuple):
        kinds = get_args(kind)
        if get_origin(kinds[0]) is Literal:
            choices = list(get_args(kinds[0]))
            arguments |= {"choices": choices, "type": _choice_type(choices)}
        else:
            arguments["type"] = _value_type(kinds[0])
        # `list[X]` has one value or more, `tuple[X, ...]` any number, and `tuple[X, X]` two.
        is_list = get_origin(kind) is list
        arguments["nargs"] = "+" if is_list else "*" if ... in kinds else len(kinds)
        if isinstance(default, str):  # argparse would convert it as if it were given
            arguments["default"] = None
    else:
        arguments["type"] = _value_type(kind)
        if allows_none and kind is not str:  # "none" is a value of some, such as --report_to
            arguments["type"] = _accept_none(arguments["type"])
    arguments |= {name: value for name, value in field.metadata.items() if name not in ("aliases", "role")}
    action = parser.add_argument(*_spellings("--", field.name), *_aliases(field), **arguments)
    action.allows_none = allows_none or default is None
    if default is True:
        parser.add_argument(
            *_spellings("--no_", field.name),
            action="store_false",
            dest=field.name,
            default=True,
            help=argparse.SUPPRESS,  # would repeat the help of the option itself
        )


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return the type of an option's values, and whether None is one, too.

    Of several types, the flag takes a text if None is one of them, as in transformers, whose dataclasses
    parse it further; otherwise what is not a text, such as the choices of an enumeration.
    """
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
    allows_none = len(kinds) < len(get_args(hint))
    if len(kinds) > 1 and str in kinds:
        kinds = [str] if allows_none else [kind for kind in kinds if kind is not str]
    return kinds[0], allows_none


def _spellings(prefix: str, name: str) -> list[str]:
    flags = [prefix + name, prefix.replace("_", "-") + name.replace("_", "-")]
    return list(dict.fromkeys(flags))


def _aliases(field: dataclasses.Field) -> list[str]:
    aliases = field.metadata.get("aliases", [])
    return [aliases] if isinstance(aliases, str) else list(aliases)


def _value_type(kind: Any) -> Callable[[str], Any]:
    return _text if kind is str else kind


def _text(value: str) -> str:
    """Return a text; a path in the home folder with the folder's name, a bundled file with its path."""
    return str(Path(value).expanduser()) if value.startswith("~/") else locate(value)


def _accept_none(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a type whose values may also be `none`, as in TRL's parser."""

    def parse(text: str) -> Any:
        return None if text.lower() in ("none", "null") else convert(text)

    parse.__name__ = convert.__name__  # argparse names it in its errors
    return parse


def _choice_type(choices: list[Any]) -> Callable[[str], Any]:
    by_text = {str(choice): choice for choice in choices}
    return lambda text: by_text.get(text, text)


def _boolean(text: str) -> bool:
    words = {True: ("yes", "true", "t", "y", "1"), False: ("no", "false", "f", "n", "0")}
    for value, spellings in words.items():
        if text.lower() in spellings:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")

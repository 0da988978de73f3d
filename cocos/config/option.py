"""Declaration of one option as a field of a dataclass. Imports the standard library only."""

from collections.abc import Callable
from dataclasses import MISSING, field
from typing import Any


def option(
    *,
    help: str,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | Any = MISSING,
    aliases: tuple[str, ...] = (),
) -> Any:
    """Return a dataclass field from which TRL's parser makes the flag `--NAME`.

    It replaces transformers' HfArg, whose import takes a second.

    Args:
        help: Text in --help, the only documentation of the option.
        default: Value if neither the command line nor the config file sets the option.
        default_factory: Function that returns the default, for lists.
        aliases: Further flags of the option.

    """
    return field(
        default=default, default_factory=default_factory, metadata={"help": help, "aliases": list(aliases)}
    )

"""Exceptions on their way from one process to the other: what describes one, and how it is rebuilt.

An exception keeps its class (or a class with the same bases), arguments, attributes and cause. The traceback
stays behind.
"""

import types
from contextlib import suppress
from typing import Any

from remote_classes import static_base

_MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_STAYS_BEHIND = frozenset(("args", "obj"))


def describe(error: BaseException) -> tuple[tuple, dict[str, Any]]:
    """Return arguments and attributes of an exception."""
    attributes = dict(BaseException.__dict__["__dict__"].__get__(error))
    for base in type(error).__mro__:
        if base is BaseException:
            break
        for name, member in vars(base).items():
            if isinstance(member, _MEMBERS) and name[:1] != "_" and name not in _STAYS_BEHIND:
                with suppress(AttributeError, TypeError):
                    if (value := member.__get__(error)) is not None:
                        attributes[name] = value
    cause = BaseException.__dict__["__cause__"].__get__(error)
    if cause is not None:
        attributes["__cause__"] = cause
    return BaseException.__dict__["args"].__get__(error), attributes


def new(cls: type) -> BaseException:
    """Return an exception of this class without calling code of the class."""
    return static_base(cls).__new__(cls)


def restore(error: BaseException, args: tuple, attributes: dict[str, Any]) -> None:
    """Give a new exception its arguments and attributes."""
    error.args = args
    for name, value in attributes.items():
        if name[:1] != "_" or name in ("__cause__", "__notes__"):
            with suppress(AttributeError, TypeError):
                BaseException.__setattr__(error, name, value)

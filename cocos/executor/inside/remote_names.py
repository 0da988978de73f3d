"""Namespace of a judged test."""

import builtins
from collections.abc import Callable
from typing import Any

from permissions import MODULE


class RemoteNames(dict):
    """The namespace of a test. A name that only the candidate has is looked up in its process.

    Functions and classes are looked up once, other values each time: the program may assign new ones.

    Args:
        remote: The names that only the candidate has.
        resolve: Function that returns the candidate's object of a name.

    """

    def __init__(self, remote: list[str], resolve: Callable[[str], Any]) -> None:
        super().__init__(__name__=MODULE, __builtins__=builtins)
        self._remote, self._resolve = frozenset(remote), resolve

    def __missing__(self, name: str) -> Any:
        if name not in self._remote:
            raise KeyError(name)
        value = self._resolve(name)
        if callable(value):
            self[name] = value
        return value

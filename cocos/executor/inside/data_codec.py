"""Data on their way between the program's process and the driver's, as JSON.

Only values of the exact types in `data_types` cross. An instance of a subclass crosses as the data that it
derives from, once, unless its class changes what a comparison or an iteration finds.

    [1, (2, 3)]         ["l", null, 1, ["t", null, 2, 3]]
    x = []; [x, x]      ["l", null, ["=", 0, "l", null], ["&", 0]]     if the values share what can change
"""

from typing import Any

import data_types
from data_types import IMMUTABLE, MAX_DEPTH, CodecError

# A class that defines one of these is no data: its own code decides what a test finds.
_DECIDING_NAMES = "eq ne lt le gt ge hash len iter next contains bool int float index"
_DECIDING = frozenset(f"__{name}__" for name in _DECIDING_NAMES.split())


class NotData(ValueError):
    """Error for a value that cannot cross; the message is the name of its class."""


def encode(value: Any, shared: dict[int, int] | None = None, depth: int = 0) -> Any:
    """Encode data.

    Args:
        value: The data.
        shared: Numbers of the containers that can change, by their id: one that is met again is encoded as a
            reference to the first. None: as copies.
        depth: Number of containers around it.

    Raises:
        NotData: It, or a part of it, is no data, or is nested too deeply.

    """
    if data_types.is_atom(value):
        return value
    if (node := data_types.encode_leaf(value)) is not None:
        return node
    if depth > MAX_DEPTH:
        raise NotData("a value that is nested too deeply")
    if not (tag := data_types.tag_of(value)):
        base = data_types.data_base(type(value))
        if (
            shared is not None
            or base is None
            or any(_DECIDING & vars(cls).keys() for cls in _classes_below(type(value), base))
        ):
            raise NotData(str(type(value).__name__)[:80])
        if (plain := data_types.plain(value, base)) is None:
            raise NotData(str(type(value).__name__)[:80])
        return encode(plain, None, depth + 1)
    head: list = [tag]
    if shared is not None and tag not in IMMUTABLE:
        if id(value) in shared:
            return ["&", shared[id(value)]]
        shared[id(value)] = len(shared)
        head = ["=", shared[id(value)], tag]
    detail = encode(value.default_factory) if tag == "f" else data_types.detail(tag, value)
    return [*head, detail, *[encode(part, shared, depth + 1) for part in data_types.content(tag, value)]]


def decode(node: Any, shared: dict[int, Any] | None = None) -> Any:
    """Return the value of a node; `shared` has the containers that were met before, by number.

    Raises:
        Exception: The node is malformed.

    """
    if type(node) is not list:
        if type(node) is dict:
            raise CodecError("a JSON object is not an encoded value")
        return node
    tag, *parts = node
    number = None
    if shared is not None:
        if tag == "&":
            return shared[parts[0]]
        if tag == "=":
            number, tag, *parts = parts
    if tag not in data_types.CONTAINERS:
        return data_types.decode_leaf([tag, *parts])
    detail, *parts = parts
    if tag in IMMUTABLE:
        return data_types.build(tag, [decode(part, shared) for part in parts])
    value = data_types.new(tag, detail)
    if number is not None and shared is not None:
        shared[number] = value
    if tag == "f":
        value.default_factory = decode(detail)
    data_types.fill(tag, value, [decode(part, shared) for part in parts])
    return value


def _classes_below(cls: type, base: type) -> tuple[type, ...]:
    return cls.__mro__[: cls.__mro__.index(base)]

"""Codec for the values that a candidate's process sends to the trusted process.

The candidate can change what its process sends, so encoded values are not trusted. `decode` is strict and
builds only plain values that are cheap to handle: values of the types below, which need no more memory or
time than their encoding. A decoded value therefore never has an `__eq__` that the candidate wrote, and never
stops the trusted process, which has no limits. All other values are left to the judge (`object_encoder.py`).

Encoded values are JSON. None, bool, str, float and short int are encoded as themselves. Every other value is
a list of a tag and its parts:

    [1, (2, 3)]      ["l", 1, ["t", 2, 3]]
    {"a": 2**70}     ["d", "a", ["i", "0x400000000000000000"]]

Imports the standard library only, because a sandbox loads this file as a top-level module.
"""

import builtins
import collections
import datetime
from typing import Any

MAX_DEPTH = 100
MAX_INT_BITS = 1 << 16
MAX_EQUAL_HASHES = 256
_MAX_HEX_DIGITS = MAX_INT_BITS // 4 + len("-0x")
_SHORT = 1 << 63  # larger integers are encoded in hexadecimal: Python limits decimal ones to 4,300 digits

# For encoding. The types of views have no public name, so take them from examples.
_VIEWS = {type({}.keys()): "k", type({}.values()): "v", type({}.items()): "m"}
_SCALARS: tuple[tuple[type, Any], ...] = ((int, int.__index__), (float, float.__float__), (str, str.__str__))

# The constructor of each tag.
_SEQUENCES: dict[str, Any] = {
    "l": list,
    "t": tuple,
    "s": set,
    "z": frozenset,
    "q": collections.deque,
}
_MAPPINGS: dict[str, Any] = {
    "d": dict,
    "C": collections.Counter,
    "O": collections.OrderedDict,
    "f": lambda items: collections.defaultdict(None, items),
}
# datetime comes before date, because it is a subclass of date.
DATES: dict[str, Any] = {"dt": datetime.datetime, "da": datetime.date, "ti": datetime.time}
# The types that are plain values themselves, by name (tag "y").
_TYPES: dict[str, type] = {
    value.__name__: value for value in (*vars(builtins).values(), type(None)) if isinstance(value, type)
}


class CodecError(ValueError):
    """Error for data that is not an encoded value."""


class NotPlainValue(CodecError):
    """Error for a value that is not plain, or costly to handle; the message says which."""


def encode(value: Any, depth: int = 0) -> Any:
    """Encode a value as data for `json.dumps`.

    An instance of a subclass is encoded as a value of its plain base class. Methods are called on the base
    class (`dict.items(value)`), because the subclass may have overridden them.

    Raises:
        NotPlainValue: The value, or a part of it, is of another type, too large or nested too deeply.

    """
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if -_SHORT < value < _SHORT else _encode_long(value)
    if depth >= MAX_DEPTH:
        raise NotPlainValue("returned a value that is nested too deeply")
    deeper = depth + 1
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        for tag, base in _SEQUENCES.items():
            if isinstance(value, base):
                return [tag, *[encode(item, deeper) for item in base.__iter__(value)]]
    if isinstance(value, dict):
        tag = "d"
        if isinstance(value, collections.Counter):
            tag = "C"
        elif isinstance(value, collections.OrderedDict):
            tag = "O"
        elif isinstance(value, collections.defaultdict):
            tag = "f"
        # dict.items ignores the order that OrderedDict.move_to_end has set.
        base = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
        return [tag, *[encode(part, deeper) for item in base.items(value) for part in item]]
    if kind in _VIEWS:
        return [_VIEWS[kind], *[encode(item, deeper) for item in value]]
    for base, convert in _SCALARS:
        if isinstance(value, base):
            return encode(convert(value))
    if (node := encode_scalar(value)) is not None:
        return node
    raise NotPlainValue(f"returned {str(kind.__name__)[:80]}, which is not a plain value")


def encode_scalar(value: Any) -> list | None:
    """Encode a value without parts that JSON does not know; return None for a value of any other type."""
    if isinstance(value, (bytes, bytearray)):
        return ["b" if isinstance(value, bytes) else "B", bytes(memoryview(value)).hex()]
    if isinstance(value, complex):
        return ["c", complex.__complex__(value).real, complex.__complex__(value).imag]
    for tag, date in DATES.items():
        if isinstance(value, date):
            return [tag, date.isoformat(value)]
    if isinstance(value, datetime.timedelta):
        return ["td", value.days, value.seconds, value.microseconds]
    if value is ...:
        return ["..."]
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return ["y", value.__name__]
    return None


def _encode_long(value: int) -> list:
    if value.bit_length() > MAX_INT_BITS:
        raise NotPlainValue(f"returned an integer of {value.bit_length()} bits")
    return ["i", hex(value)]


def decode(node: object, depth: int = 0) -> Any:
    """Return the value that `node`, which is parsed JSON, encodes.

    Raises:
        NotPlainValue: The value is an integer of more than MAX_INT_BITS bits.
        CodecError: `node` is not an encoded value, is nested deeper than MAX_DEPTH, or contains too many keys
            or elements with equal hashes.

    """
    if not isinstance(node, list):
        if isinstance(node, dict):
            raise CodecError("a JSON object is not an encoded value")
        return node
    if depth > MAX_DEPTH or not node or not isinstance(node[0], str):
        raise CodecError("nested too deeply, or no tag")
    tag, *parts = node
    try:
        if tag in _SEQUENCES:
            items = [decode(part, depth + 1) for part in parts]
            return _SEQUENCES[tag](_hashable(items) if tag in "sz" else items)
        if tag in _MAPPINGS:
            items = [decode(part, depth + 1) for part in parts]
            if len(items) % 2:
                raise CodecError("a key without its value")
            return _MAPPINGS[tag](dict(zip(_hashable(items[::2]), items[1::2], strict=True)))
        if tag in _VIEWS.values():
            return _decode_view(tag, [decode(part, depth + 1) for part in parts])
        if tag == "i":
            if len(digits := _only(parts, str)) > _MAX_HEX_DIGITS:
                raise NotPlainValue(f"returned an integer of {len(digits)} hexadecimal digits")
            return int(digits, 16)
        return decode_scalar(tag, parts)
    except CodecError:
        raise
    except (TypeError, ValueError, KeyError, ArithmeticError, MemoryError) as error:
        raise CodecError(f"malformed {tag!r}: {error}") from None


def decode_scalar(tag: str, parts: list) -> Any:
    """Return the value that `encode_scalar` has encoded; raise any ValueError, TypeError or KeyError."""
    if tag in ("b", "B"):
        data = bytes.fromhex(_only(parts, str))
        return data if tag == "b" else bytearray(data)
    if tag == "c":
        real, imag = parts
        return complex(float(real), float(imag))
    if tag in DATES:
        return DATES[tag].fromisoformat(_only(parts, str))
    if tag == "td":
        days, seconds, microseconds = parts
        return datetime.timedelta(days, seconds, microseconds)
    if tag == "y":
        return _TYPES[_only(parts, str)]
    if tag == "..." and not parts:
        return ...
    raise CodecError(f"unknown tag {tag!r}")


def _decode_view(tag: str, items: list) -> object:
    if tag == "k":
        return dict.fromkeys(_hashable(items)).keys()
    if tag == "v":
        return dict(enumerate(items)).values()
    _hashable([key for key, _ in items])
    return dict(items).items()


def _only(parts: list, kind: type) -> Any:
    """Return the single item of `parts`, which must be of type `kind`."""
    [part] = parts
    if not isinstance(part, kind):
        raise CodecError("a part of the wrong type")
    return part


def _hashable(items: list) -> list:
    """Return `items`, or raise CodecError if more than MAX_EQUAL_HASHES of them have the same hash.

    A candidate can choose integers with equal hashes. A set of n of them takes about n**2 comparisons to
    build, and the trusted process has no time limit.
    """
    if (
        len(items) > MAX_EQUAL_HASHES
        and max(collections.Counter(map(hash, items)).values()) > MAX_EQUAL_HASHES
    ):
        raise CodecError("too many equal hashes")
    return items

"""Codec for the values that a candidate's process exchanges with the judge and the trusted process.

The candidate can change what its process sends, so encoded values are not trusted. `decode` is strict and
builds only plain values, which are values of the types below. A decoded value therefore never has an `__eq__`
that the candidate wrote. A value of any other type is decoded as `Opaque`.

Encoded values are JSON. None, bool, str, float and short int are encoded as themselves. Every other value is
a list of a tag and its parts:

    [1, (2, 3)]      ["l", 1, ["t", 2, 3]]
    {"a": 2**70}     ["d", "a", ["i", "0x400000000000000000"]]
    Stack()          ["o", "Stack", true]

Imports the standard library only, because a sandbox loads this file as a top-level module.
"""

import collections
import datetime
import decimal
import fractions
import types
from typing import Any

MAX_DEPTH = 100
_SHORT = 1 << 63  # larger integers are encoded in hexadecimal: Python limits decimal ones to 4,300 digits
_TYPE_NAME_CHARS = 80

# For encoding. Most types of iterators and views have no public name, so take them from examples.
_VIEWS = {type({}.keys()): "k", type({}.values()): "v", type({}.items()): "m"}
_ITERABLES: tuple[Any, ...] = ([], (), "", "é", b"", set(), range(0), {}, {}.values(), {}.items())
_ITERATORS: tuple[Any, ...] = (
    *(types.GeneratorType, map, filter, zip, enumerate, reversed, type(reversed([]))),
    *(type(iter(iterable)) for iterable in _ITERABLES),
)
_SCALARS: tuple[tuple[type, Any], ...] = ((int, int.__index__), (float, float.__float__), (str, str.__str__))

# The constructor of each tag.
_SEQUENCES: dict[str, Any] = {
    "l": list,
    "t": tuple,
    "s": set,
    "z": frozenset,
    "q": collections.deque,
    "g": iter,
}
_MAPPINGS: dict[str, Any] = {"d": dict, "C": collections.Counter, "O": collections.OrderedDict}
# datetime comes before date, because it is a subclass of date.
_DATES: dict[str, Any] = {"dt": datetime.datetime, "da": datetime.date, "ti": datetime.time}
# The types that are plain values themselves, by name (tag "y").
_TYPES: dict[str, type] = {
    plain_type.__name__: plain_type
    for plain_type in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple),
        *(set, frozenset, dict, range, object, type(None)),
    )
}


class CodecError(ValueError):
    """Error for data that is not an encoded value."""


class NotPlainValue(CodecError):
    """Error for an operation that an opaque value does not support."""


class Opaque:
    """Stand-in for a value that is not plain.

    It is not None, and it may be true. Comparisons and other operations raise. If `==` returned False, a
    candidate could pass `assert f(x) != 3` with an object of any class.
    """

    def __init__(self, type_name: str, is_true: bool) -> None:
        self.type_name = type_name
        self.is_true = is_true

    def __bool__(self) -> bool:
        return self.is_true or self._refuse()

    def __repr__(self) -> str:
        return f"<{self.type_name} object>"

    def _refuse(self, *others: object) -> bool:
        raise NotPlainValue(f"returned {self.type_name}, which is not a plain value")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def encode(value: Any, depth: int = 0) -> Any:
    """Encode a value as data for `json.dumps`.

    An instance of a subclass is encoded as a value of its plain base class. Methods are called on the base
    class (`dict.items(value)`), because the subclass may have overridden them.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if -_SHORT < value < _SHORT else ["i", hex(value)]
    if depth >= MAX_DEPTH:
        return ["o", "a value nested too deeply", False]
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
        # dict.items ignores the order that OrderedDict.move_to_end has set.
        base = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
        return [tag, *[encode(part, deeper) for item in base.items(value) for part in item]]
    if kind in _VIEWS:
        return [_VIEWS[kind], *[encode(item, deeper) for item in value]]
    if isinstance(value, _ITERATORS):
        return ["g", *[encode(item, deeper) for item in value]]
    return _encode_scalar(value)


def _encode_scalar(value: Any) -> Any:
    for base, convert in _SCALARS:
        if isinstance(value, base):
            return encode(convert(value))
    if isinstance(value, (bytes, bytearray)):
        return ["b" if isinstance(value, bytes) else "B", bytes(memoryview(value)).hex()]
    if isinstance(value, complex):
        return ["c", complex.__complex__(value).real, complex.__complex__(value).imag]
    if isinstance(value, range):
        return ["r", *(encode(part) for part in (value.start, value.stop, value.step))]
    if isinstance(value, decimal.Decimal):
        return ["D", decimal.Decimal.__str__(value)]
    if isinstance(value, fractions.Fraction):
        return ["F", encode(value.numerator), encode(value.denominator)]
    for tag, date in _DATES.items():
        if isinstance(value, date):
            return [tag, date.isoformat(value)]
    if isinstance(value, datetime.timedelta):
        return ["td", value.days, value.seconds, value.microseconds]
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return ["y", value.__name__]
    # Functions and match objects, for example, are always true. If the class defines its truth value, the
    # candidate may have written that code, so the value is not used.
    always_true = not (hasattr(type(value), "__bool__") or hasattr(type(value), "__len__"))
    return ["o", str(type(value).__name__)[:_TYPE_NAME_CHARS], always_true]


def decode(node: object, depth: int = 0) -> Any:
    """Return the value that `node`, which is parsed JSON, encodes.

    Raises:
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
        return _decode_scalar(tag, parts)
    except (TypeError, ValueError, KeyError, ArithmeticError, MemoryError) as error:
        raise CodecError(f"malformed {tag!r}: {error}") from None


def _decode_scalar(tag: str, parts: list) -> Any:
    if tag == "i":
        return int(_only(parts, str), 16)
    if tag in ("b", "B"):
        data = bytes.fromhex(_only(parts, str))
        return data if tag == "b" else bytearray(data)
    if tag == "c":
        real, imag = parts
        return complex(float(real), float(imag))
    if tag == "r":
        start, stop, step = (decode(part) for part in parts)
        return range(start, stop, step)
    if tag == "D":
        return decimal.Decimal(_only(parts, str))
    if tag == "F":
        numerator, denominator = (decode(part) for part in parts)
        return fractions.Fraction(numerator, denominator)
    if tag in _DATES:
        return _DATES[tag].fromisoformat(_only(parts, str))
    if tag == "td":
        days, seconds, microseconds = parts
        return datetime.timedelta(days, seconds, microseconds)
    if tag == "y":
        return _TYPES[_only(parts, str)]
    if tag == "o":
        type_name, is_true = parts
        return Opaque(str(type_name)[:_TYPE_NAME_CHARS], is_true is True)
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
    """Return `items`, or raise CodecError if fewer than one in eight of many hashes are distinct.

    A candidate can choose integers with equal hashes. A set of n of them takes about n**2 comparisons to
    build, and the trusted process has no time limit.
    """
    if len(items) > 256 and len({hash(item) for item in items}) * 8 < len(items):
        raise CodecError("too many equal hashes")
    return items

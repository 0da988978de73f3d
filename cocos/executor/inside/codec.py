"""Plain values as JSON, in both directions: the only thing that crosses the border between a candidate and
its judge.

`encode` runs beside the candidate and is not trusted; `decode` is strict and builds nothing but values of the
types below, so that a decoded value cannot carry an `__eq__` of the candidate's. What is none of them arrives
as `Opaque`. Imports nothing of
ours: the sandbox loads this file on its own.

On the wire None, bool, str, float and short int are themselves; everything else is a list that begins with a
tag.
"""

import collections
import datetime
import decimal
import fractions
import json
import types
from typing import Any

MAX_DEPTH = 100
_SHORT = 1 << 63
_VIEWS = {type({}.keys()): "k", type({}.values()): "v", type({}.items()): "m"}
_ITERABLES: tuple[Any, ...] = ([], (), "", "é", b"", set(), range(0), {}, {}.values(), {}.items())
_ITERATORS: tuple[Any, ...] = (
    *(types.GeneratorType, map, filter, zip, enumerate, reversed, type(reversed([]))),
    *(type(iter(iterable)) for iterable in _ITERABLES),
)
_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        bytearray,
        list,
        tuple,
        set,
        frozenset,
        dict,
        range,
        object,
        type(None),
    )
}
_AT_THE_BASE: tuple[tuple[type, Any], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
)
_BUILD: dict[str, Any] = {
    "l": list,
    "t": tuple,
    "s": set,
    "z": frozenset,
    "q": collections.deque,
    "g": iter,
}
_PAIRS: dict[str, Any] = {"d": dict, "C": collections.Counter, "O": collections.OrderedDict}
_ISO: dict[str, Any] = {"dt": datetime.datetime, "da": datetime.date, "ti": datetime.time}


class CodecError(ValueError):
    """What came is not an encoded value."""


class NotPlainValue(CodecError):
    """More is asked of an opaque value than that it exists."""


class Opaque:
    """A value that is not plain: it exists, is not None, may be known to be true, and that is all."""

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


def dumps(value: object) -> str:
    """Encode one value; an instance of a subclass as the plain value that it is at its base."""
    return json.dumps(encode(value))


def loads(text: str | bytes) -> object:
    """Decode one value.

    Raises:
        CodecError: The text is no encoded value, or one that is deeper than MAX_DEPTH.

    """
    try:
        return decode(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise CodecError(str(error)) from None


def encode(value: Any, depth: int = 0) -> Any:
    """Turn a value into what `json.dumps` takes."""
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if -_SHORT < value < _SHORT else ["i", hex(value)]
    if depth >= MAX_DEPTH:
        return ["o", "a value nested too deeply", False]
    deeper = depth + 1
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        for tag, base in _BUILD.items():
            if isinstance(value, base):
                return [tag, *[encode(item, deeper) for item in base.__iter__(value)]]
    if isinstance(value, dict):
        tag = (
            "C"
            if isinstance(value, collections.Counter)
            else "O"
            if isinstance(value, collections.OrderedDict)
            else "d"
        )
        items = (
            collections.OrderedDict.items(value)
            if isinstance(value, collections.OrderedDict)
            else dict.items(value)
        )
        return [tag, *[encode(part, deeper) for item in items for part in item]]
    if kind in _VIEWS:
        return [_VIEWS[kind], *[encode(item, deeper) for item in value]]
    if isinstance(value, _ITERATORS):
        return ["g", *[encode(item, deeper) for item in value]]
    return _encode_scalar(value)


def _encode_scalar(value: Any) -> Any:
    for base, convert in _AT_THE_BASE:
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
    for tag, date in _ISO.items():
        if isinstance(value, date):
            return [tag, date.isoformat(value)]
    if isinstance(value, datetime.timedelta):
        return ["td", value.days, value.seconds, value.microseconds]
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return ["y", value.__name__]
    always_true = not (
        hasattr(type(value), "__bool__") or hasattr(type(value), "__len__")
    )  # a match, a function
    return ["o", str(type(value).__name__)[:80], always_true]


def decode(node: object, depth: int = 0) -> Any:
    """Build the value that `node` (parsed JSON) stands for; see `loads` for what it raises."""
    if not isinstance(node, list):
        if isinstance(node, dict):
            raise CodecError("a JSON object stands for no value")
        return node
    if depth > MAX_DEPTH or not node or not isinstance(node[0], str):
        raise CodecError("nested too deeply, or no tag")
    tag, *parts = node
    try:
        if tag in _BUILD:
            items = [decode(part, depth + 1) for part in parts]
            return _BUILD[tag](_hashable(items) if tag in "sz" else items)
        if tag in _PAIRS:
            items = [decode(part, depth + 1) for part in parts]
            if len(items) % 2:
                raise CodecError("a key without its value")
            return _PAIRS[tag](dict(zip(_hashable(items[::2]), items[1::2], strict=True)))
        if tag in "kvm" and tag:
            return _view(tag, [decode(part, depth + 1) for part in parts])
        return _decode_scalar(tag, parts)
    except (TypeError, ValueError, KeyError, ArithmeticError, MemoryError) as error:
        raise CodecError(f"malformed {tag!r}: {error}") from None


def _decode_scalar(tag: str, parts: list) -> Any:
    if tag == "i":
        return int(_one(parts, str), 16)
    if tag in ("b", "B"):
        data = bytes.fromhex(_one(parts, str))
        return data if tag == "b" else bytearray(data)
    if tag == "c":
        real, imag = parts
        return complex(float(real), float(imag))
    if tag == "r":
        start, stop, step = (decode(part) for part in parts)
        return range(start, stop, step)
    if tag == "D":
        return decimal.Decimal(_one(parts, str))
    if tag == "F":
        numerator, denominator = (decode(part) for part in parts)
        return fractions.Fraction(numerator, denominator)
    if tag in _ISO:
        return _ISO[tag].fromisoformat(_one(parts, str))
    if tag == "td":
        days, seconds, microseconds = parts
        return datetime.timedelta(days, seconds, microseconds)
    if tag == "y":
        return _TYPES[_one(parts, str)]
    if tag == "o":
        type_name, is_true = parts
        return Opaque(str(type_name)[:80], is_true is True)
    raise CodecError(f"unknown tag {tag!r}")


def _one(parts: list, kind: type) -> Any:
    [part] = parts
    if not isinstance(part, kind):
        raise CodecError("a part of the wrong type")
    return part


def _view(tag: str, items: list) -> object:
    if tag == "k":
        return dict.fromkeys(_hashable(items)).keys()
    if tag == "v":
        return dict(enumerate(items)).values()
    _hashable([key for key, _ in items])
    return dict(items).items()


def _hashable(items: list) -> list:
    """Refuse crafted collisions: a set of them would take the trusted side quadratic time."""
    if len(items) > 256 and len({hash(item) for item in items}) * 8 < len(items):
        raise CodecError("too many equal hashes")
    return items

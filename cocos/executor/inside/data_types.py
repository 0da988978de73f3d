"""Values that cross between processes by value.

Data are values of exact types from the tables below. Encoding and decoding call nothing of a program: no
attribute is looked up by name, no module imported, and no class called but those of the tables. An instance
of a subclass is no data, because its class could decide a comparison.

An atom is encoded as itself, any other value as a list of a tag and its parts. A *leaf* has only parts of
exact leaf types. The parts of a *container* are any values, the keys of a mapping before its values.
"""

import array
import builtins
import collections
import datetime
import decimal
import fractions
import functools
import gc
import importlib
import operator
import pathlib
import re
import sys
import types
from typing import Any


class CodecError(ValueError):
    """Error for what is not an encoded value."""


class OutputLimit(ValueError):
    """Error for a value whose encoding is too large."""


class NotPlainValue(ValueError):
    """Error for a value that has no encoding, or none that is as large. Its argument is the value."""


SHORT = 1 << 63
ATOMS = frozenset((type(None), bool, float, str))  # as themselves in JSON, like short integers
KEYS: Any = type({}.keys())
VALUES: Any = type({}.values())
ITEMS: Any = type({}.items())
_FORMATS = frozenset("BbcHhIiLlQqNnfdP?")  # of native numbers, one character each
_PATHS: tuple[Any, ...] = (pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath)


def _with_zone(kind: Any) -> tuple[Any, Any]:
    """Return how to take a datetime or a time apart, and how to put it together."""
    return (
        lambda v: (v.replace(tzinfo=None).isoformat(), v.tzinfo, v.fold),
        lambda text, zone, fold: kind.fromisoformat(text).replace(tzinfo=zone, fold=fold),
    )


def _view_parts(value: memoryview) -> tuple:
    """Return the parts of a view; of one that `memoryview.cast` cannot make, a part that is none."""
    is_flat = value.ndim == 1 and value.format in _FORMATS
    return value.tobytes(), value.format if is_flat else value.shape, value.readonly


def _view(data: bytes, form: Any, is_readonly: bool) -> memoryview:
    return memoryview(data if is_readonly else bytearray(data)).cast(form)


_bounds = operator.attrgetter("start", "stop", "step")
# Per class: its tag, the parts of a value, and the value of the parts.
_LEAVES: dict[type, tuple[str, Any, Any]] = {
    int: ("i", lambda v: (hex(v),), lambda digits: int(digits, 16)),
    bytes: ("b", lambda v: (v.hex(),), bytes.fromhex),
    memoryview: ("mv", _view_parts, _view),
    complex: ("c", lambda v: (v.real, v.imag), complex),
    decimal.Decimal: ("D", lambda v: (str(v),), decimal.Decimal),
    fractions.Fraction: ("F", lambda v: (v.numerator, v.denominator), fractions.Fraction),
    range: ("r", _bounds, range),
    slice: ("sl", _bounds, slice),
    re.Pattern: ("re", lambda v: (v.pattern, v.flags), re.compile),
    datetime.timedelta: ("td", lambda v: (v.days, v.seconds, v.microseconds), datetime.timedelta),
    datetime.timezone: ("tz", lambda v: v.__getinitargs__(), datetime.timezone),
    datetime.date: ("da", lambda v: (v.isoformat(),), datetime.date.fromisoformat),
    datetime.datetime: ("dt", *_with_zone(datetime.datetime)),
    datetime.time: ("ti", *_with_zone(datetime.time)),
    type(...): ("...", lambda v: (), lambda: ...),
    type(NotImplemented): ("ni", lambda v: (), lambda: NotImplemented),
    **{kind: (f"P{number}", lambda v: (str(v),), kind) for number, kind in enumerate(_PATHS)},
}
_BUILDERS = {tag: build for tag, _, build in _LEAVES.values()}
# Classes in Python, whose instances may have been changed to something that their parts do not make.
_CHANGED = frozenset((fractions.Fraction, *_PATHS))
_ZONE = "zoneinfo.ZoneInfo"
# Types and tags of the parts of leaves. A zone of another class would answer questions of the driver.
_PARTS = ATOMS | {int, bytes, datetime.timedelta, datetime.timezone}
_PART_TAGS = frozenset(("i", "b", "td", "tz", "tx"))
# Classes of modules that are rarely used and slow to import, with what gives a value's text.
_TEXTS: dict[str, Any] = {
    **{f"ipaddress.IPv{n}{kind}": str for n in (4, 6) for kind in ("Address", "Network", "Interface")},
    **{"uuid.UUID": str, _ZONE: operator.attrgetter("key")},
}

_SEQUENCES: dict[type, str] = {
    **{list: "l", set: "s", collections.deque: "q", bytearray: "B", array.array: "a"},
    **{tuple: "t", frozenset: "z", KEYS: "k", VALUES: "v", ITEMS: "m"},
}
_MAPPINGS: dict[type, str] = {
    **{dict: "d", collections.Counter: "C", collections.OrderedDict: "O", collections.defaultdict: "f"},
    **{types.MappingProxyType: "p", types.SimpleNamespace: "n"},
}
# Their methods are Python, and any other attribute could replace one that compares. They have only this one.
_WRAPPED: dict[str, tuple[str, type]] = {
    **{"ud": ("data", dict), "ul": ("data", list), "us": ("data", str), "h": ("maps", list)}
}
_TAGS: dict[type, str] = {
    **{**_SEQUENCES, **_MAPPINGS, collections.UserDict: "ud", collections.UserList: "ul"},
    **{collections.UserString: "us", collections.ChainMap: "h"},
}
_CLASSES: dict[str, Any] = {tag: cls for cls, tag in _TAGS.items()}
ARRAY = "N"  # tag of an array of numpy
_ARRAY_TYPE = re.compile(r"[<>|=]([biufcSU]\d+|[mM]8(\[\w+\])?)")  # numbers, strings, dates, as `dtype.str`
IMMUTABLE, HASHING = frozenset("tzkvmp"), frozenset("sdCOf")
CONTAINERS = frozenset((*_TAGS.values(), ARRAY))
# Of data, what the trusted process decodes: nothing that needs more memory or time than its encoding.
PLAIN_CONTAINERS = frozenset("ltszqdCOfB")
PLAIN_LEAVES = frozenset(("i", "b", "c", "dt", "da", "ti", "td", "y", "..."))
MAX_DEPTH = 100
MAX_INT_BITS = 1 << 16
# Classes whose values are data. Their subclasses are not, but have such a value.
DATA_CLASSES = frozenset((*_TAGS, int, float, str, bytes, complex, decimal.Decimal))

# Functions that cross by name. None of them runs code, opens files or shows the names of a process.
_FUNCTIONS = """ abs all any ascii bin callable chr divmod format hash hex isinstance issubclass iter len max
min next oct ord pow repr round sorted sum
"""
FUNCTIONS: dict[str, Any] = {name: getattr(builtins, name) for name in _FUNCTIONS.split()}
_MORE_TYPES = (types.GeneratorType, types.FunctionType, types.ModuleType, type(None))
# Classes that cross by name. `TYPES[name]` is the only way from a name to a class.
TYPES: dict[str, Any] = {
    **{name: value for name, value in vars(builtins).items() if isinstance(value, type)},
    **{cls.__name__: cls for cls in (*_TAGS, *_LEAVES, *_MORE_TYPES)},
}
_TYPE_NAMES = {cls: name for name, cls in TYPES.items() if name == cls.__name__}


def data_base(cls: type) -> Any:
    """Return the first base whose values are data, or None."""
    return next((base for base in cls.__mro__ if base in DATA_CLASSES), None)


def is_atom(value: Any) -> bool:
    """Return whether a value is encoded as itself."""
    kind = type(value)
    return kind in ATOMS or (kind is int and -SHORT < value < SHORT)


def encode_leaf(value: Any) -> list | None:
    """Encode a leaf, a class or a function of the tables; return None for any other value."""
    kind: Any = type(value)
    if (found := _LEAVES.get(kind)) is not None:
        tag, take_apart, build = found
        parts = take_apart(value)
        if any(type(part) not in _PARTS and not _is_zone(part) for part in parts):
            return None
        if kind in _CHANGED and build(*parts) != value:
            return None
        return [tag, *[part if is_atom(part) else encode_leaf(part) for part in parts]]
    if issubclass(kind, type):
        return ["y", name] if (name := _TYPE_NAMES.get(value)) else None
    if kind is types.BuiltinFunctionType and FUNCTIONS.get(name := str(value.__name__)) is value:
        return ["fn", name]
    if kind is types.GenericAlias or kind is types.UnionType:
        origin = getattr(value, "__origin__", None)
        nested = [encode_leaf(part) for part in (*([origin] if origin else []), *value.__args__)]
        return ["ga" if origin else "un", *nested] if all(nested) else None
    if name := _name_in_texts(kind):
        text = _TEXTS[name](value)
        is_whole = type(text) is str  # a zone from a file has no key
        return ["tx", name, text] if is_whole and (name == _ZONE or kind(text) == value) else None
    if kind.__module__ == "numpy" and (numpy := sys.modules.get("numpy")) and issubclass(kind, numpy.generic):
        is_own = getattr(numpy, str(kind.__name__), None) is kind and _ARRAY_TYPE.fullmatch(value.dtype.str)
        return ["np", value.dtype.str, value.tobytes().hex()] if is_own else None
    return None


def _name_in_texts(kind: type) -> str:
    """Return the name of a class that crosses as a text, or "" for any other class."""
    name = f"{kind.__module__}.{kind.__name__}"
    module, _, attribute = name.partition(".")
    is_own = name in _TEXTS and vars(sys.modules.get(module, builtins)).get(attribute) is kind
    return name if is_own else ""


def _is_zone(value: Any) -> bool:
    """Return whether a value is a time zone with a name."""
    return (encode_leaf(value) or [])[:2] == ["tx", _ZONE]


def decode_leaf(node: list) -> Any:
    """Return the value of a node.

    Raises:
        ValueError, TypeError, LookupError, ArithmeticError: It is malformed.

    """
    tag, *parts = node
    if (build := _BUILDERS.get(tag)) is not None:
        for number, part in enumerate(parts):
            if type(part) is list:
                if part[0] not in _PART_TAGS:
                    raise CodecError("a part of another type")
                parts[number] = decode_leaf(part)
        return build(*parts)
    match node:
        case ["y", str(name)]:
            return TYPES[name]
        case ["fn", str(name)]:
            return FUNCTIONS[name]
        case ["ga", origin, *args]:
            return decode_leaf(origin)[tuple(map(decode_leaf, args))]
        case ["un", *args]:
            return functools.reduce(operator.or_, map(decode_leaf, args))
        case ["tx", str(name), str(text)] if name in _TEXTS:
            module, _, kind = name.partition(".")
            return vars(importlib.import_module(module))[kind](text)
        case ["np", str(dtype), str(digits)]:
            [scalar] = sys.modules["numpy"].frombuffer(bytes.fromhex(digits), _checked(dtype))
            return scalar
    raise CodecError("an unknown tag")


def tag_of(value: Any) -> str:
    """Return the tag of a container, or "" for any other value."""
    cls = type(value)
    tag = _TAGS.get(cls, "")
    if tag == "n":
        # A function among the attributes could stand for a method; then the namespace is an object.
        parts = vars(value).values()
        return tag if all(map(is_data, parts)) and not any(map(callable, parts)) else ""
    if tag in ("C", "O"):
        return "" if vars(value) else tag  # an attribute could stand for a method
    if tag in _WRAPPED:
        attribute, kind = _WRAPPED[tag]
        return tag if vars(value).keys() == {attribute} and type(vars(value)[attribute]) is kind else ""
    if not tag and cls.__name__ == "ndarray" and cls is getattr(sys.modules.get("numpy"), "ndarray", None):
        return ARRAY if _ARRAY_TYPE.fullmatch(value.dtype.str) else ""
    return tag


def is_data(value: Any) -> bool:
    """Return whether a value crosses by value."""
    return is_atom(value) or encode_leaf(value) is not None or bool(tag_of(value))


def content(tag: str, value: Any) -> tuple:
    """Return the parts of a container, flat; for a mapping first all keys."""
    if tag in "dCOfnx":
        mapping = vars(value) if tag in "nx" else value
        return (*mapping.keys(), *mapping.values())
    if tag in _WRAPPED:
        return (vars(value)[_WRAPPED[tag][0]],)
    if tag in "kvmp":  # a view; its dictionary crosses, so that it stays one
        [mapping, *_] = gc.get_referents(value)
        is_of_class = tag == "p" and "__module__" in mapping  # and would change it
        return (mapping if tag_of(mapping) in ("d", "C", "f") and not is_of_class else dict(mapping),)
    if tag == "a":
        return (value.tobytes(),)
    return (value.tobytes(), *value.shape) if tag == ARRAY else tuple(value)


def detail(tag: str, value: Any) -> Any:
    """Return what `new` needs besides the content, as JSON."""
    if tag == "q":
        return value.maxlen
    return value.typecode if tag == "a" else value.dtype.str if tag == ARRAY else None


def new(tag: str, detail: Any) -> Any:
    """Return an empty mutable container."""
    match tag:
        case "q":
            return collections.deque(maxlen=detail)
        case "a":
            return array.array(detail)
        case "N":
            return sys.modules["numpy"].empty(0, _checked(detail))
        case "us":
            return collections.UserString("")
    return _CLASSES[tag]()


def fill(tag: str, value: Any, items: list) -> None:
    """Replace the content of a mutable container in place."""
    if tag == ARRAY:
        _fill_array(value, items[0], items[1:])
    elif tag in _WRAPPED:
        [vars(value)[_WRAPPED[tag][0]]] = items
    elif tag == "a":
        value[:] = array.array(value.typecode, *items)
    elif tag in "lBq" and len(value) == len(items):  # a loop over it may be under way
        for number, item in enumerate(items):
            value[number] = item
    elif tag in "lB":
        del value[:]
        value.extend(items)
    elif tag in "sq":
        value.clear()
        (value.update if tag == "s" else value.extend)(items)
    elif _has_keys(mapping := vars(value) if tag in "nx" else value, items):
        for key, item in _pairs(items):
            (collections.OrderedDict if tag == "O" else dict).__setitem__(mapping, key, item)
    else:
        mapping.clear()
        # Not Counter.update, which adds. OrderedDict keeps an order of its own.
        (collections.OrderedDict if tag == "O" else dict).update(mapping, _pairs(items))
    if tag != "x" and tag_of(value) != tag:
        raise CodecError("parts that such a container never has")


def _has_keys(mapping: Any, items: list) -> bool:
    """Return whether a mapping has the keys of its new content already, in this order."""
    keys = items[: len(items) // 2]
    return len(mapping) == len(keys) and all(map(_is_key, mapping, keys))


def _is_key(key: Any, other: Any) -> bool:
    return key is other or (type(key) is type(other) and is_atom(key) and key == other)


def build(tag: str, items: list) -> Any:
    """Return a tuple, a frozenset, a view of a dict or a mapping proxy."""
    match tag:
        case "k" | "v" | "m" | "p":
            [mapping] = items
            view: Any = {"k": dict.keys, "v": dict.values, "m": dict.items, "p": types.MappingProxyType}[tag]
            return view(mapping)
    return _CLASSES[tag](items)


def _pairs(items: list) -> list[tuple]:
    half = len(items) // 2
    return list(zip(items[:half], items[half:], strict=True))


def _fill_array(value: Any, elements: bytes, shape: list[int]) -> None:
    new = sys.modules["numpy"].frombuffer(elements, value.dtype).reshape(shape)
    if value.shape != new.shape:
        # A view of the array would keep the memory that a resize frees. An empty array has none.
        if value.size and value.size != new.size:
            raise CodecError("an array that has changed its number of elements in place")
        value.resize(new.shape, refcheck=False)
    value[...] = new


def _checked(dtype: str) -> str:
    if not _ARRAY_TYPE.fullmatch(dtype):
        raise CodecError("no type of elements")
    return dtype


def encode_plain(value: Any, left: list[int], depth: int = 0) -> Any:
    """Encode a value that needs no more memory or time than its encoding, whoever decodes it.

    Args:
        value: The value.
        left: A list with the number of bytes that the encoding may still take, about.
        depth: Number of containers around the value.

    Raises:
        NotPlainValue: The value, or a part of it, is of another type or nested too deeply.
        OutputLimit: The encoding is too large.

    """
    left[0] -= len(value) if isinstance(value, (str, bytes)) else 4
    if left[0] < 0:
        raise OutputLimit("more than output_kb")
    if is_atom(value):
        return value
    tag = tag_of(value)
    if tag in PLAIN_CONTAINERS and depth < MAX_DEPTH:
        parts = [encode_plain(part, left, depth + 1) for part in content(tag, value)]
        return [tag, detail(tag, value), *parts]
    leaf = None if tag else encode_leaf(value)
    is_huge = type(value) is int and value.bit_length() > MAX_INT_BITS
    if leaf is None or leaf[0] not in PLAIN_LEAVES or is_huge:
        raise NotPlainValue(value)
    return leaf


def decode_plain(node: Any) -> Any:
    """Return the value that `encode_plain` has encoded."""
    if type(node) is not list:
        return node
    tag, *parts = node
    if tag not in PLAIN_CONTAINERS:
        return decode_leaf(node)
    items = list(map(decode_plain, parts[1:]))
    if tag in IMMUTABLE:
        return build(tag, items)
    value = new(tag, parts[0])
    fill(tag, value, items)
    return value

"""Values that cross by value, and their encoding: between the candidate's process and the judge, and from the
candidate's process to the trusted one.

Data are values of exact types from one table. Decoding looks up no attribute, imports nothing and calls no
class but those of the table. A value of a subclass is no data: its class could decide a comparison.

The candidate can change what its process sends, so encoded values are not trusted. Of all data, `decode`,
which the trusted process uses, builds only those that need no more memory or time than their encoding: that
process has no limits. The judge has limits, and decodes containers with its own table (`heap.py`).

Encoded values are JSON. None, bool, str, float and short int are encoded as themselves. Every other value is
a list of a tag and its parts; the keys of a mapping come before its values:

    [1, (2, 3)]      ["l", 1, ["t", 2, 3]]
    {"a": 2**70}     ["d", "a", ["i", "0x400000000000000000"]]

Imports the standard library only, because a sandbox loads this file as a top-level module.
"""

import array
import builtins
import collections
import datetime
import decimal
import fractions
import pathlib
import re
import sys
import types
from typing import Any


class CodecError(ValueError):
    """Error for data that is not an encoded value."""


MAX_DEPTH = 100
MAX_INT_BITS = 1 << 16
MAX_EQUAL_HASHES = 256
_MAX_HEX_DIGITS = MAX_INT_BITS // 4 + len("-0x")
_CONTAINERS = frozenset("ltszqdCOfkvmB")
_MAPPINGS = frozenset("dCOf")
_CHEAP_SCALARS = frozenset(("b", "c", "dt", "da", "ti", "td", "y", "..."))

# datetime comes before date, because it is a subclass of date.
_DATES: dict[str, Any] = {"dt": datetime.datetime, "da": datetime.date, "ti": datetime.time}
ATOMS = frozenset((type(None), bool, float, str))  # as themselves in JSON, like short integers
SHORT = 1 << 63
KEYS: Any = type({}.keys())
VALUES: Any = type({}.values())
ITEMS: Any = type({}.items())
_PATHS: tuple[Any, ...] = (pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath)
_CLASSES = (
    *(collections.ChainMap, collections.Counter, collections.OrderedDict, collections.UserDict),
    *(collections.UserList, collections.UserString, collections.defaultdict, collections.deque),
    *(*_DATES.values(), datetime.timedelta, datetime.timezone, decimal.Decimal, fractions.Fraction, *_PATHS),
    *(array.array, types.SimpleNamespace, types.GeneratorType, types.FunctionType, types.ModuleType),
    type(None),
)
# Functions that cross by name. None of them runs code, opens files or shows the names of a process.
_FUNCTIONS = """ abs all any ascii bin callable chr divmod format hash hex isinstance issubclass iter len max
min next oct ord pow repr round sorted sum
"""
FUNCTIONS: dict[str, Any] = {name: getattr(builtins, name) for name in _FUNCTIONS.split()}


class OutputLimit(Exception):
    """A value is too large for one message."""


# Classes that cross by name. `TYPES[name]` is the only way from a name to a class.
TYPES: dict[str, Any] = {
    **{name: value for name, value in vars(builtins).items() if isinstance(value, type)},
    **{cls.__name__: cls for cls in (*_CLASSES, OutputLimit)},
}
_TYPE_NAMES = {cls: name for name, cls in TYPES.items() if name == cls.__name__}
# Exceptions that are no builtins: module, names, and the builtin in their place if the module is not loaded.
_STANDARD_EXCEPTIONS = """
_csv Error Exception; _pickle PicklingError UnpicklingError Exception; _queue Empty Exception
argparse ArgumentError ArgumentTypeError Exception; queue Full Exception; copy Error Exception
asyncio.exceptions CancelledError BaseException; asyncio.exceptions InvalidStateError Exception
binascii Error ValueError; calendar IllegalMonthError IllegalWeekdayError ValueError; zlib error Exception
configparser Error NoSectionError NoOptionError DuplicateSectionError DuplicateOptionError Exception
dataclasses FrozenInstanceError AttributeError; getopt GetoptError Exception; graphlib CycleError ValueError
decimal DecimalException Clamped Inexact Overflow Rounded Subnormal Underflow ArithmeticError
decimal ConversionSyntax DivisionImpossible InvalidContext InvalidOperation ArithmeticError
decimal DivisionByZero DivisionUndefined ZeroDivisionError; decimal FloatOperation TypeError
gzip BadGzipFile OSError; io UnsupportedOperation OSError; struct error Exception; re error Exception
ipaddress AddressValueError NetmaskValueError ValueError; json.decoder JSONDecodeError ValueError
shutil Error SameFileError OSError; statistics StatisticsError ValueError; zipfile BadZipFile Exception
sqlite3 Warning Error InterfaceError DatabaseError DataError OperationalError IntegrityError Exception
tarfile ReadError TarError Exception; threading BrokenBarrierError RuntimeError; tokenize TokenError Exception
tomllib TOMLDecodeError ValueError; unittest.case SkipTest Exception; urllib.error HTTPError URLError OSError
xml.etree.ElementTree ParseError SyntaxError; xml.parsers.expat ExpatError Exception
zoneinfo._common ZoneInfoNotFoundError KeyError
numpy.exceptions AxisError ValueError; numpy.linalg LinAlgError ValueError
"""
_EXCEPTION_BASES: dict[str, str] = {
    f"{module} {name}": base
    for module, *names, base in map(str.split, re.findall("[^;\n]+", _STANDARD_EXCEPTIONS))
    for name in names
}
_FUNCTION: Any = type(len)
_ARRAY_TYPE = re.compile(
    r"[<>|=]([biufcSU]\d+|[mM]8(\[\w+\])?)"
)  # numbers, strings and dates, as `dtype.str`


def class_name(cls: type) -> str | None:
    """Return the name under which a class crosses, or None."""
    if (name := _TYPE_NAMES.get(cls)) is None and issubclass(cls, BaseException):
        name = f"{cls.__module__} {cls.__qualname__}"
        return name if name in _EXCEPTION_BASES else None
    return name


def class_of_name(name: str) -> Any:
    """Return the class of a name; raise KeyError for all others."""
    if name not in _EXCEPTION_BASES:
        return TYPES[name]
    module, name_there = name.split()
    found = vars(sys.modules[module]).get(name_there) if module in sys.modules else None
    return found if isinstance(found, type) else TYPES[_EXCEPTION_BASES[name]]


def _encode_date(value: Any) -> list | None:
    zone = getattr(value, "tzinfo", None)
    if zone is None:
        return [value.isoformat()]
    # An instance of another class of zones would answer questions of the judge.
    return (
        [value.replace(tzinfo=None).isoformat(), *_encode_zone(zone)]
        if type(zone) is datetime.timezone
        else None
    )


def _encode_zone(zone: datetime.timezone) -> list:
    offset = zone.utcoffset(None)
    return [offset.days, offset.seconds, offset.microseconds, zone.tzname(None)]


def _decode_zone(days: int, seconds: int, microseconds: int, name: str) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(days, seconds, microseconds), name)


def _decode_date(kind: Any):
    def decode(text: str, *zone: Any) -> Any:
        value = kind.fromisoformat(text)
        return value.replace(tzinfo=_decode_zone(*zone)) if zone else value

    return decode


def _hex(value: int | None) -> str | None:
    return value if value is None else hex(value)


def _encode_slice(value: slice) -> list | None:
    bounds = (value.start, value.stop, value.step)
    return list(map(_hex, bounds)) if all(b is None or type(b) is int for b in bounds) else None


def _numbers(*digits: str | None) -> list:
    return [digit if digit is None else int(digit, 16) for digit in digits]


def _fraction(*digits: str) -> fractions.Fraction:
    return fractions.Fraction(*_numbers(*digits))


# Per class: its tag, the parts of a value (None: it is no data after all), and the value of the parts.
_SCALARS: dict[type, tuple[str, Any, Any]] = {
    int: ("i", lambda v: [hex(v)], lambda digits: int(digits, 16)),
    bytes: ("b", lambda v: [v.hex()], bytes.fromhex),
    complex: ("c", lambda v: [v.real, v.imag], complex),
    decimal.Decimal: ("D", lambda v: [str(v)], decimal.Decimal),
    fractions.Fraction: ("F", lambda v: [hex(v.numerator), hex(v.denominator)], _fraction),
    range: ("r", lambda v: [hex(v.start), hex(v.stop), hex(v.step)], lambda *d: range(*_numbers(*d))),
    slice: ("sl", _encode_slice, lambda *d: slice(*_numbers(*d))),
    datetime.timedelta: ("td", lambda v: [v.days, v.seconds, v.microseconds], datetime.timedelta),
    datetime.timezone: ("tz", _encode_zone, _decode_zone),
    **{kind: (tag, _encode_date, _decode_date(kind)) for tag, kind in _DATES.items()},
    **{kind: (f"P{number}", lambda v: [str(v)], kind) for number, kind in enumerate(_PATHS)},
    memoryview: ("mv", lambda v: [v.tobytes().hex()], lambda digits: memoryview(bytes.fromhex(digits))),
    type(...): ("...", lambda v: [], lambda: ...),
    type(NotImplemented): ("ni", lambda v: [], lambda: NotImplemented),
}
_DECODERS = {tag: decode for tag, _, decode in _SCALARS.values()}


def encode_scalar(value: Any) -> list | None:
    """Encode a value without parts, or a class; return None for any other value."""
    kind: Any = type(value)
    if (found := _SCALARS.get(kind)) is not None:
        parts = found[1](value)
        return parts if parts is None else [found[0], *parts]
    if issubclass(kind, type):
        return ["y", name] if (name := class_name(value)) else None
    if kind is _FUNCTION and FUNCTIONS.get(name := str(value.__name__)) == value:
        return ["fn", name]
    if kind.__module__ == "uuid" and kind is getattr(sys.modules["uuid"], "UUID", None):
        return ["U", hex(value.int)]
    if kind.__module__ == "numpy" and (numpy := sys.modules.get("numpy")) and issubclass(kind, numpy.generic):
        is_own = getattr(numpy, str(kind.__name__), None) is kind and _ARRAY_TYPE.fullmatch(value.dtype.str)
        return ["np", value.dtype.str, value.tobytes().hex()] if is_own else None
    return None


def decode_scalar(node: list) -> Any:
    """Return the value of a node.

    Raises:
        ValueError, TypeError, LookupError, ArithmeticError: It is malformed.

    """
    tag, *parts = node
    if (decode := _DECODERS.get(tag)) is not None:
        return decode(*parts)
    match node:
        case ["y", str(name)]:
            return class_of_name(name)
        case ["fn", str(name)]:
            return FUNCTIONS[name]
        case ["U", str(digits)]:
            import uuid  # rarely used, and slow to import

            return uuid.UUID(int=int(digits, 16))
        case ["np", str(dtype), str(digits)]:
            [scalar] = sys.modules["numpy"].frombuffer(bytes.fromhex(digits), _checked(dtype))
            return scalar
    raise CodecError("an unknown tag")


_TAGS: dict[type, str] = {
    **{list: "l", tuple: "t", set: "s", frozenset: "z", dict: "d", bytearray: "B", array.array: "a"},
    **{collections.Counter: "C", collections.OrderedDict: "O", collections.defaultdict: "f"},
    **{collections.deque: "q", types.SimpleNamespace: "n", collections.ChainMap: "h", KEYS: "k", VALUES: "v"},
    **{collections.UserDict: "ud", collections.UserList: "ul", collections.UserString: "us", ITEMS: "m"},
    **{types.MappingProxyType: "p"},
}
_BASES: dict[str, Any] = {tag: base for base, tag in _TAGS.items()}
_DATA_OF_USER: dict[str, type] = {"ud": dict, "ul": list, "us": str}
_ARRAY = "N"  # an array of numpy
IMMUTABLE = frozenset("tzkvmp")
# Classes whose values are data. Their subclasses are not, but have such a value.
DATA_CLASSES = frozenset((*_TAGS, int, float, str, bytes, complex, decimal.Decimal))


_LOOKUPS = ("__getitem__", "__missing__")  # a test of several lines may index what it was given


def _method(cls: type, name: str) -> Any:
    """Return what a class has under a name, without asking its metaclass, or None."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def data_base(cls: type) -> Any:
    """Return the first base whose values are data, or None."""
    return next((base for base in cls.__mro__ if base in DATA_CLASSES), None)


def plain(value: Any) -> Any:
    """Return the data in an object of a class that derives from one of data, or None."""
    base = data_base(type(value))
    for scalar, convert in ((int, int.__index__), (float, float.__float__), (str, str.__str__)):
        if base is scalar:
            return convert(value)
    if base in (list, tuple, set, frozenset, collections.deque, bytearray):
        return base(base.__iter__(value))
    if base in (dict, collections.Counter, collections.OrderedDict, collections.defaultdict):
        copy = base()
        dict.update(copy, dict.items(value)) if base is not collections.OrderedDict else copy.update(
            base.items(value)
        )
        return copy
    if base in (bytes, complex, decimal.Decimal):
        return base(value)
    if base in (collections.UserDict, collections.UserList, collections.UserString):
        return base(vars(value).get("data"))
    return None


def tag_of(value: Any) -> str:
    """Return the tag of a container, or "" for any other value."""
    cls = type(value)
    tag = _TAGS.get(cls, "")
    if tag == "n":
        # A function among the attributes could stand for a method; then the namespace is an object.
        parts = vars(value).values()
        return tag if all(map(is_data, parts)) and not any(map(callable, parts)) else ""
    if tag in _DATA_OF_USER:  # their methods are Python: any other attribute could replace one that compares
        return tag if vars(value).keys() == {"data"} and type(value.data) is _DATA_OF_USER[tag] else ""
    if tag == "h":
        return tag if vars(value).keys() == {"maps"} and set(map(type, value.maps)) <= {dict} else ""
    if not tag and cls.__name__ == "ndarray" and cls is getattr(sys.modules.get("numpy"), "ndarray", None):
        return _ARRAY if _ARRAY_TYPE.fullmatch(value.dtype.str) else ""
    return tag


def is_data(value: Any) -> bool:
    """Return whether a value crosses by value."""
    kind = type(value)
    return kind in ATOMS or kind is int or encode_scalar(value) is not None or bool(tag_of(value))


def content(tag: str, value: Any) -> tuple:
    """Return the parts of a container, flat; for a mapping first all keys."""
    if tag in "dCOfp":
        return (*value.keys(), *value.values())
    if tag == "n":
        return (*vars(value).keys(), *vars(value).values())
    if tag in _DATA_OF_USER:
        return (value.data,)
    if tag == "m":
        return tuple(part for item in value for part in item)
    if tag == _ARRAY:
        return (value.tobytes(), *value.shape)
    return tuple(value.maps if tag == "h" else value)


def details(tag: str, value: Any) -> Any:
    """Return what `new` needs besides the content, as JSON."""
    match tag:
        case "q":
            return value.maxlen
        case "a":
            return value.typecode
        case "N":
            return value.dtype.str
    return None


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
    if tag in IMMUTABLE:
        raise CodecError("not mutable")
    return _BASES[tag]()


def new_immutable(tag: str, items: list) -> Any:
    """Return a tuple, a frozenset, a view of a dict or a mapping proxy."""
    match tag:
        case "k":
            return dict.fromkeys(items).keys()
        case "v":
            return dict(enumerate(items)).values()
        case "m":
            return dict(zip(items[::2], items[1::2], strict=True)).items()
        case "p":
            return types.MappingProxyType(dict(_pairs(items)))
    return (tuple if tag == "t" else frozenset)(items)


def fill(tag: str, value: Any, items: list) -> None:
    """Replace the content of a mutable container in place."""
    match tag:
        case "l" | "B" | "a":
            value[:] = (
                items if tag == "l" else bytes(items) if tag == "B" else array.array(value.typecode, items)
            )
        case "s" | "q":
            value.clear()
            value.extend(items) if tag == "q" else value.update(items)
        case "N":
            _fill_array(value, items[0], items[1:])
        case "ud" | "ul" | "us":
            [value.data] = items
        case "h":
            value.maps = items
        case "n":
            vars(value).clear()
            vars(value).update((str(key), item) for key, item in _pairs(items))
        case _:
            value.clear()
            dict.update(value, _pairs(items)) if tag != "O" else value.update(_pairs(items))
    if tag_of(value) != tag:
        raise CodecError("parts that such a container never has")


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


class NotPlainValue(CodecError):
    """Error for a value that is not plain, or costly to handle; the message says which."""


def encode(value: Any, depth: int = 0) -> Any:
    """Encode a value as data for `json.dumps`; an instance of a subclass as a value of its plain base class.

    Raises:
        NotPlainValue: The value, or a part of it, is of another type, looks its items up in its own way, is
            too large or is nested too deeply.

    """
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        if -SHORT < value < SHORT:
            return value
        if value.bit_length() > MAX_INT_BITS:
            raise NotPlainValue(f"returned an integer of {value.bit_length()} bits")
        return encode_scalar(value)
    if depth >= MAX_DEPTH:
        raise NotPlainValue("returned a value that is nested too deeply")
    if (tag := tag_of(value)) in _CONTAINERS:
        return [tag, *[encode(part, depth + 1) for part in content(tag, value)]]
    if (node := encode_scalar(value)) is not None and node[0] in _CHEAP_SCALARS:
        return node
    if type(base_value := plain(value)) is not kind and base_value is not None:
        base = type(base_value)
        if any(_method(kind, name) is not _method(base, name) for name in _LOOKUPS):
            raise NotPlainValue(
                f"returned {str(kind.__name__)[:80]}, which looks its items up in its own way"
            )
        return encode(base_value, depth)
    raise NotPlainValue(f"returned {str(kind.__name__)[:80]}, which is not a plain value")


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
        if tag in _CONTAINERS:
            return _decode_container(tag, [decode(part, depth + 1) for part in parts])
        if tag == "i":
            if len(parts[0]) > _MAX_HEX_DIGITS:
                raise NotPlainValue(f"returned an integer of {len(parts[0])} hexadecimal digits")
        elif tag not in _CHEAP_SCALARS:
            raise CodecError(f"unknown tag {tag!r}")
        return decode_scalar(node)
    except CodecError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
        raise CodecError(f"malformed {tag!r}: {error}") from None


def _decode_container(tag: str, parts: list) -> Any:
    keys = (
        parts
        if tag in "szk"
        else parts[::2]
        if tag == "m"
        else parts[: len(parts) // 2]
        if tag in _MAPPINGS
        else []
    )
    # A candidate can choose integers with equal hashes. A set of n of them takes about n**2 comparisons.
    if len(keys) > MAX_EQUAL_HASHES and max(collections.Counter(map(hash, keys)).values()) > MAX_EQUAL_HASHES:
        raise CodecError("too many equal hashes")
    if tag in IMMUTABLE:
        return new_immutable(tag, parts)
    value = new(tag, None)
    fill(tag, value, parts)
    return value

"""Containers, and subclasses of plain types, whose instances exist in both processes with the same content.

Knows what such a value consists of, how to make one and how to replace its content in place. Calls methods of
the plain base class (`list.__iter__(value)`), because a subclass of the candidate may have overridden them.
"""

import array
import collections
import decimal
import types
from typing import Any

import arrays
from value_codec import CodecError

KEYS: Any = type({}.keys())
_VALUES: Any = type({}.values())
_ITEMS: Any = type({}.items())
# The tag of each class.
TAGS: dict[type, str] = {
    **{list: "l", tuple: "t", set: "s", frozenset: "z", dict: "d", bytearray: "B", array.array: "a"},
    **{collections.Counter: "C", collections.OrderedDict: "O", collections.defaultdict: "f"},
    **{collections.deque: "q", types.SimpleNamespace: "n", collections.UserDict: "n"},
    **{collections.UserList: "n", collections.UserString: "n", KEYS: "k", _VALUES: "k", _ITEMS: "m"},
    **dict.fromkeys((int, float, str, bytes, complex, decimal.Decimal), "v"),
}
ARRAY = "N"  # the tag of numpy's arrays
MUTABLE = frozenset("lsdBaCOfqn" + ARRAY)
IMMUTABLE = frozenset("tzkm")
_BASES: dict[str, Any] = {tag: base for base, tag in TAGS.items() if tag not in "vnkm"}
_DATA_TYPES = {collections.UserDict: dict, collections.UserList: list, collections.UserString: str}
_DEFAULT_FACTORY: Any = vars(collections.defaultdict)["default_factory"]


def plain_base(cls: type) -> Any:
    """Return the first base whose instances exist in both processes, or None."""
    return next((base for base in cls.__mro__ if base in TAGS), None)


def tag_of(value: Any) -> str:
    """Return the tag of a value, or "" if it exists in one process only."""
    cls = type(value)
    base = cls if cls in TAGS else plain_base(cls)
    return TAGS[base] if base else ARRAY if arrays.is_array(value) else ""


def content(tag: str, value: Any) -> tuple:
    """Return the parts of a container, flat; for a mapping first all keys."""
    if tag in "dCOf":
        # dict.keys ignores the order that OrderedDict.move_to_end has set.
        base: Any = collections.OrderedDict if tag == "O" else dict
        return (*base.keys(value), *base.values(value))
    if tag == "n":
        state = _state(value)
        return (*state.keys(), *state.values())
    if tag == "m":
        return tuple(part for item in value for part in item)
    if tag == ARRAY:
        return arrays.content(value)
    return tuple(value if tag in "ka" else _BASES[tag].__iter__(value))


def details(tag: str, value: Any) -> Any:
    """Return what `new` needs besides the content, as JSON."""
    match tag:
        case "q":
            return value.maxlen
        case "a":
            return value.typecode
        case "k":
            return type(value) is KEYS
        case "N":
            return value.dtype.str
    return None


def new(tag: str, cls: type | None, detail: Any) -> Any:
    """Return an empty mutable container.

    Args:
        tag: Its tag.
        cls: Its class, which must have the base that the tag means; None for this base itself.
        detail: The result of `details`.

    """
    if tag == ARRAY:
        return arrays.new(detail)
    if tag == "n":
        return _base_of_kind("n", cls).__new__(cls)
    base = _base_for(tag, cls)
    if tag == "a":
        return base.__new__(cls or base, detail)
    value = base.__new__(cls or base)
    if tag == "q":
        collections.deque.__init__(value, (), detail)
    elif tag in "fO":
        base.__init__(value)
    return value


def new_immutable(tag: str, cls: type | None, detail: Any, items: list) -> Any:
    """Return a tuple, a frozenset or a view of a dict."""
    if tag == "k":
        return dict.fromkeys(items).keys() if detail else dict(enumerate(items)).values()
    if tag == "m":
        return dict(zip(items[::2], items[1::2], strict=True)).items()
    base = _base_for(tag, cls)
    return base.__new__(cls or base, items)


def new_scalar(cls: type | None, value: Any) -> Any:
    """Return a value of a subclass of int, str, ..."""
    return _base_of_kind("v", cls).__new__(cls, value)


def set_default_factory(value: Any, factory: Any) -> None:
    """Set the factory of a defaultdict, even where its class forwards assignments."""
    _DEFAULT_FACTORY.__set__(value, factory)


def fill(tag: str, value: Any, items: list) -> None:
    """Replace the content of a mutable container in place."""
    match tag:
        case "l":
            list.__setitem__(value, slice(None), items)
        case "s":
            set.clear(value)
            set.update(value, items)
        case "q":
            collections.deque.clear(value)
            collections.deque.extend(value, items)
        case "B":
            bytearray.__setitem__(value, slice(None), bytes(items))
        case "a":
            array.array.__setitem__(value, slice(None), array.array(value.typecode, items))
        case "N":
            arrays.fill(value, items[0], items[1:])
        case _:
            half = len(items) // 2
            _fill_mapping(tag, value, list(zip(items[:half], items[half:], strict=True)))


def _fill_mapping(tag: str, value: Any, pairs: list[tuple]) -> None:
    if tag == "n":
        new = {str(key): item for key, item in pairs}
        if kind := _data_type(value):
            # Their methods are Python: any other attribute could replace a method that compares.
            if new.keys() > {"data"} or not all(type(item) is kind for item in new.values()):
                raise CodecError("not the data of this class")
        elif any(key.startswith("__") for key in new):
            raise CodecError("a private attribute")
        state = vars(value)
        for key in _state(value).keys() - new.keys():
            del state[key]
        state.update(new)
    elif tag == "O":
        collections.OrderedDict.clear(value)
        for key, item in pairs:
            collections.OrderedDict.__setitem__(value, key, item)
    else:
        dict.clear(value)
        dict.update(value, pairs)


def _data_type(value: Any) -> type | None:
    """Return the exact type of `data` in a UserDict, UserList or UserString; None for other classes."""
    return _DATA_TYPES.get(plain_base(type(value)))


def _state(value: Any) -> dict[str, Any]:
    """Return the attributes that cross: of a SimpleNamespace all that are public, of the others `data`."""
    if kind := _data_type(value):
        return {"data": data} if type(data := vars(value).get("data")) is kind else {}
    return {key: item for key, item in vars(value).items() if not key.startswith("__")}


def _base_of_kind(tag: str, cls: type | None) -> Any:
    base = None if cls is None else plain_base(cls)
    if base is None or TAGS[base] != tag:
        raise CodecError("a class of another kind")
    return base


def _base_for(tag: str, cls: type | None) -> Any:
    base = _BASES.get(tag)
    if base is None or (cls is not None and plain_base(cls) is not base):
        raise CodecError("a class of another kind")
    return base

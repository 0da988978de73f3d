"""Handles: what stands in one process for an object that only the other process has.

There are sixteen classes of handles, made here once. A handle has no content and no operation of its own:
whatever is done with it is a request to the other process, which its end may refuse (`conversation.py`). The
class of an exception has a stand-in with the same bases, because `except` needs a class.
"""

from dataclasses import dataclass
from typing import Any

_words = str.split
COMPARISONS = frozenset(_words("__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__"))
_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
ARITHMETIC = frozenset(f"__{kind}{name}__" for name in _BINARY.split() for kind in ("", "r", "i"))
_CONVERSIONS = """ __bool__ __int__ __float__ __complex__ __index__ __neg__ __pos__ __abs__ __invert__
__round__ __trunc__ __floor__ __ceil__ """
DECIDING = COMPARISONS | ARITHMETIC | frozenset(_CONVERSIONS.split())
_OTHERS = """ __getitem__ __setitem__ __delitem__ __reversed__ __enter__ __exit__ __str__ __repr__ __format__
__instancecheck__ __subclasscheck__ __dir__ """
# Whether a class has one of these shows in `callable`, `iter` and the abstract classes of `collections.abc`.
SHOWN = ("__call__", "__iter__", "__next__", "__len__")
_COPIES = ("__copy__", "__deepcopy__")
_ALWAYS = DECIDING.union(_OTHERS.split())
OPERATIONS = _ALWAYS.union(SHOWN, _COPIES)
# Bits of `Facts.bits` after those of SHOWN: the class of an object defines its comparison, truth or
# membership, derives from a class whose values are data, or from one that the test names.
HAS_EQ, HAS_BOOL, HAS_CONTAINS, HAS_DATA, IS_NAMED = 16, 32, 64, 128, 256


@dataclass
class Facts:
    """Facts that the other process states about an object.

    Attributes:
        bits: One per name in SHOWN that its class has, then HAS_EQ to IS_NAMED.
        hash: Its hash, or None if it has none.
        name: Name of its class, for messages.
        kind: Class of this process that `isinstance` shall find, or None.
        length: Its length as it was told last, or None.
        origin: "name" for what the test names, ".x" for an attribute x of a value, otherwise "".

    """

    bits: int
    hash: int | None
    name: str
    kind: type | None
    origin: str = ""
    length: int | None = None


end: Any = None  # of the conversation; all handles of this process send their requests through it


def facts(handle: Any) -> Facts:
    """Return what the other process says about its object."""
    return _FACTS.__get__(handle)


def is_handle(value: Any) -> bool:
    """Return whether a value stands for an object of the other process."""
    return issubclass(type(value), _Handle)


def new(found: Facts, cls: type | None = None) -> Any:
    """Return a handle for an object of which these facts are known."""
    handle: Any = object.__new__(cls or _CLASSES[found.bits & 15])
    _FACTS.__set__(handle, found)
    return handle


def _forwarder(operation: str):
    def method(self, *args, **kwargs):
        return end.operate(operation, self, args, kwargs)

    method.__name__ = method.__qualname__ = operation
    return method


class _Handle:
    __slots__ = ("__weakref__", "_facts_of_handle")

    def __getattr__(self, name):
        return end.get_attribute(self, name)

    def __setattr__(self, name, value):
        end.request("setattr", self, (name, value))

    def __delattr__(self, name):
        end.request("delattr", self, (name,))

    def __hash__(self):
        if (found := facts(self)).hash is None:
            raise TypeError(f"unhashable type: {found.name!r}")
        return found.hash

    @property  # type: ignore[misc]
    def __class__(self):
        return facts(self).kind or type(self)


# For every class of handles: a class has a `__doc__` of its own.
EMPTY = {"__slots__": (), "__doc__": property(lambda self: end.get_attribute(self, "__doc__"))}
for _name in _ALWAYS:
    setattr(_Handle, _name, _forwarder(_name))
_FACTS: Any = vars(_Handle)["_facts_of_handle"]


def _make_class(bits: int) -> type:
    names = [name for number, name in enumerate(SHOWN) if bits >> number & 1]
    if "__next__" not in names:  # itertools.tee would copy an iterator
        names += _COPIES
    return type("Handle", (_Handle,), {**EMPTY, **{name: _forwarder(name) for name in names}})


_CLASSES = tuple(map(_make_class, range(1 << len(SHOWN))))


class ErrorClass(type):
    """Class of the stand-ins for the other process's classes of exceptions."""

    def __call__(cls, *args, **kwargs):
        # A class that derives from a stand-in is this process's own.
        return end.request("__call__", cls, args, kwargs) if end.is_foreign(cls) else super().__call__(*args)

    def __getattr__(cls, name):
        return end.request("getattr", cls, (name,))


class RemoteError(BaseException):
    """Base class of the stand-ins."""

    def __getattribute__(self, name):
        if name.startswith("__") or name in ("args", "add_note", "with_traceback"):
            return object.__getattribute__(self, name)
        return end.get_attribute(self, name)

    def __str__(self):
        return end.operate("__str__", self, (), {})

    def __repr__(self):
        return end.operate("__repr__", self, (), {})


def stand_in(name: str, bases: tuple[type, ...]) -> Any:
    """Return a stand-in for a class of exceptions with these bases."""
    root = () if any(issubclass(base, RemoteError) for base in bases) else (RemoteError,)
    try:
        return ErrorClass(name, (*root, *bases), {})
    except TypeError:  # their layouts do not combine
        return ErrorClass(name, (*root, bases[0]) if root else bases[:1], {})

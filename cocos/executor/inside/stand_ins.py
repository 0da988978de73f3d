"""Stand-ins in the driver for objects of the program.

Whatever a test does with one is an operation (`operations.py`). Classes of exceptions have a
stand-in with the same bases, because `except` needs a class.
"""

import collections
import functools
import itertools
import operator
import re
import types
from dataclasses import dataclass
from typing import Any

from . import data_types
from .marks import Mark, Reason

# What a test may ask of an object, and what does it in the process that has the object.
VERBS: dict[str, Any] = {
    **{"__call__": operator.call, "__iter__": iter, "__next__": next, "__len__": len, "__bool__": bool},
    **{"__getitem__": operator.getitem, "__setitem__": operator.setitem, "__delitem__": operator.delitem},
    **{"__str__": str, "__repr__": repr, "__format__": format},
    "__enter__": lambda value: value.__enter__(),
    "__exit__": lambda value, *error: value.__exit__(*error),
    **{"getattr": getattr, "setattr": setattr, "delattr": delattr},
}
_COMPARED = """ eq ne lt le gt ge contains hash abs int float complex index round trunc floor ceil sub rsub
truediv rtruediv mod rmod xor rxor """
EQUAL_TO_ITSELF = ("iterator", "function", "object")  # and to nothing else
_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
# What a test does with data. An object that a function returned in place of data is refused there.
OF_DATA = frozenset(f"__{name}__" for name in _COMPARED.split())
_OTHERS = "neg pos invert reversed dir copy deepcopy reduce_ex instancecheck subclasscheck"
# Whatever Python asks of an object by a special method.
OPERATIONS = {
    *OF_DATA,
    *(name for name in VERBS if name[:2] == "__"),
    *(f"__{name}__" for name in _OTHERS.split()),
    *(f"__{kind}{name}__" for name in _BINARY.split() for kind in ("", "r", "i")),
}
_CALLABLES = (
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType),
    *(functools.partial, type(functools.lru_cache(len))),
)
_ITERABLES: tuple[Any, ...] = (
    *([], (), {}, set(), "", b"", bytearray(), range(0), range(1 << 70)),
    *({}.values(), {}.items(), collections.deque()),
)
_ITERATORS = (
    *(kind for kind in vars(itertools).values() if hasattr(kind, "__next__")),
    *(map, filter, zip, enumerate, types.GeneratorType, type(iter(int, 1)), type(re.finditer("", ""))),
    *(type(iter(value)) for value in _ITERABLES),
    *(type(reversed(value)) for value in _ITERABLES if hasattr(value, "__reversed__")),
)
ITERATORS: dict[str, Any] = {cls.__name__: cls for cls in _ITERATORS}  # of the standard library
_DECIDING = OF_DATA - {"__hash__"} | {"__len__", "__iter__", "__getitem__", "__bool__"}
operations: Any = None  # of the job


@dataclass(slots=True, eq=False)
class Facts:
    """Knowledge of the driver about an object of the program.

    Attributes:
        name: Name of its class; of a class, its own.
        kind: What `kind_of` says of its class.
        is_known: The test names it, or it hangs below what the test names.
        is_returned: A call has given it after that, perhaps in place of data.

    """

    name: str
    kind: str
    is_known: bool = False
    is_returned: bool = False


class Object:
    """An object of the program."""

    __slots__ = ("_facts_of_object",)

    def __getattribute__(self, name: str) -> Any:
        return operations.get_attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        operations.operate("setattr", self, (name, value), {})

    def __delattr__(self, name: str) -> None:
        operations.operate("delattr", self, (name,), {})

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        # A function of the program among the attributes of a class of the test is a method.
        is_method = facts(self).kind == "function" and owner is not None
        return types.MethodType(self, owner) if is_method else self  # type: ignore[arg-type]


def _forwarder(operation: str) -> Any:
    def method(self, /, *args, **kwargs):
        return operations.operate(operation, self, args, kwargs)

    method.__name__ = method.__qualname__ = operation
    return method


for _name in OPERATIONS:
    setattr(Object, _name, _forwarder(_name))
_FACTS: Any = vars(Object)["_facts_of_object"]


def kind_of(cls: type) -> str:
    """Return what the objects of a class are.

    Returns:
        "iterator" for one of the standard library, "function", "data" if the class derives from one of data
        and changes nothing of what compares data, "other data" if it does, "object" for a class without an
        equality, or "".

    """
    if ITERATORS.get(cls.__name__) is cls:
        return "iterator"
    if cls in _CALLABLES:
        return "function"
    if (base := data_types.data_base(cls)) is None:
        is_equal_to_itself = cls.__eq__ is object.__eq__ and cls.__ne__ is object.__ne__
        return "object" if is_equal_to_itself else ""
    own = set().union(*map(vars, cls.__mro__[: cls.__mro__.index(base)]))
    is_python = base.__module__ == "collections" and base.__name__[:4] == "User"
    return "other data" if is_python or cls is base or own & _DECIDING else "data"


def is_object(value: Any) -> bool:
    """Return whether a value stands for an object of the program."""
    return type(value) is Object


def facts(value: Object) -> Facts:
    """Return what the driver knows about it."""
    return _FACTS.__get__(value)


def new(found: Facts) -> Object:
    """Return what stands for an object with these facts."""
    value = object.__new__(Object)
    _FACTS.__set__(value, found)
    return value


def local(function: Any, of_data: bool = False) -> Any:
    """Return a function that leaves a test to the program's process where it is asked of a stand-in.

    Args:
        function: A function that would find nothing in a stand-in.
        of_data: It tells how a process keeps data, too.

    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for value in filter(is_object, (*args, *kwargs.values())):
            operations.refuse_or_leave(function.__name__, facts(value), ())
        if of_data and any(map(operations.requests.is_foreign, args)):
            operations.requests.leave_undecided(Mark(Reason.MEMORY))
        return function(*args, **kwargs)

    return checked


LOCAL = {function.__name__: local(function) for function in (callable, hasattr, issubclass)}
type_of = local(type)


class ErrorClass(type):
    """Class of the stand-ins for the program's classes of exceptions."""

    def __call__(cls, /, *args, **kwargs):
        return operations.requests.request("__call__", cls, *args, **kwargs)

    def __getattr__(cls, name):
        return operations.get_attribute(cls, name)


def error_class(name: str, bases: tuple[type, ...]) -> Any:
    """Return a stand-in for a class of exceptions."""
    body = {
        "__getattr__": lambda self, name: operations.get_attribute(self, name),
        "__str__": lambda self: vars(self)["text of the program"],
    }
    try:
        return ErrorClass(name, bases, body)
    except TypeError:  # their layouts do not combine
        return ErrorClass(name, bases[:1], body)

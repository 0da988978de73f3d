"""Stand-ins in the driver for objects of the program.

Whatever a test does with one is asked of the program's process, by the driver (`driver.py`). Classes of
exceptions have a stand-in with the same bases, because `except` needs a class.
"""

import builtins
import copy
import functools
import math
import operator
import types
from dataclasses import dataclass, field
from typing import Any

from .marks import Mark, Reason

COMPARISONS = frozenset(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"])
_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
ARITHMETIC = frozenset(f"__{kind}{name}__" for name in _BINARY.split() for kind in ("", "r", "i"))
UNARY = frozenset(["__neg__", "__pos__", "__abs__", "__invert__"])
_NUMBERS = "int float complex index round trunc floor ceil"
CONVERSIONS = frozenset(f"__{name}__" for name in _NUMBERS.split())


def _operator(name: str) -> Any:
    """Return what does the work of a special method; for `__rsub__`, `a - b` with the sides swapped."""
    is_swapped = name[2] == "r" and name != "__rshift__"
    plain = f"__{name[3:]}" if is_swapped else name
    function: Any = {"__divmod__": divmod, "__pow__": pow}.get(plain) or vars(operator)[plain]
    return (lambda value, other: function(other, value)) if is_swapped else function


# What does the work of each operation, in the process that has the value.
FUNCTIONS: dict[str, Any] = {
    **{name: _operator(name) for name in ARITHMETIC - {"__idivmod__"}},
    **{
        f"__{name}__": vars(module)[name]
        for module, names in (
            (operator, "eq ne lt le gt ge contains getitem setitem delitem index neg pos invert"),
            (builtins, "bool int float complex abs round len iter next reversed str repr format dir"),
            (math, "trunc floor ceil"),
        )
        for name in names.split()
    },
    **{
        name: vars(builtins)[name]
        for name in ("getattr", "setattr", "delattr", "callable", "hasattr", "type")
    },
    "__enter__": lambda value: value.__enter__(),
    "__exit__": lambda value, *error: value.__exit__(*error),
    "__copy__": copy.copy,
    "__deepcopy__": lambda value, memo=None: copy.deepcopy(value),
    "__instancecheck__": lambda cls, value: isinstance(value, cls),
    "__subclasscheck__": lambda cls, value: issubclass(value, cls),
}
OPERATIONS = {"__call__", *(name for name in FUNCTIONS if name[:2] == "__")}
# Origins of objects that are the affair of a class that the test names.
NAMED = ("class", "named", "relative")
NO_DATA: Any = object()
driver: Any = None  # the driver's end of the conversation, which all objects ask


@dataclass(slots=True, eq=False)
class Facts:
    """Knowledge of the driver about an object of the program.

    Attributes:
        name: Name of its class.
        is_known: The class is one that the driver has under this name (`data_types.TYPES`).
        hash: Its hash, or None.
        own: Methods that its class defines in place of those of the class of data from which it derives;
            of another class, `__eq__` if it has one.
        data: Its data, if its class derives from one whose instances cannot change; else NO_DATA.
        has_data: Its class derives from one of data.
        answers: Its length, items and iterator, as they were told first; "end" if it had no next element.
        asked: What tests have asked of it: its length, iterator or truth.
        created: Number of requests when the driver got to know it.
        moment: Number of requests when `data` was asked for.
        origin: "class" for a name with a capital that the test reads, "named" for what such a call gives,
            "relative" for an object of its class that an attribute or method of it gives, ".x" for an
            attribute x of an object that a function returned, ".exception" for one of an exception, or "".
        is_member: The test has got it from what has a name.
        owner: Of what is an attribute of such an object: the name of its class.
        is_computed: The program has got data of the test by the arithmetic that gave it.
        is_own: It is a method in place of one of data, of a class that derives from one of data.
        is_answer: A method of an object that a function returned gave it, perhaps in place of True.

    """

    name: str
    is_known: bool
    hash: int | None
    own: frozenset
    has_data: bool
    data: Any
    created: int
    answers: dict = field(default_factory=dict)
    asked: frozenset = frozenset()
    is_member: bool = False
    is_computed: bool = False
    is_answer: bool = False
    is_own: bool = False
    owner: str = ""
    moment: int = -1
    origin: str = ""


class Object:
    """An object of the program."""

    __slots__ = ("__weakref__", "_facts_of_object")

    def __getattr__(self, name):
        return driver.get_attribute(self, name)

    def __setattr__(self, name, value):
        driver.request("setattr", self, name, value)

    def __delattr__(self, name):
        driver.request("delattr", self, name)

    def __hash__(self):
        found = facts(self)
        if found.hash is None:
            raise TypeError(f"unhashable type: {found.name!r}")
        return found.hash

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle {facts(self).name!r} object")

    def __get__(self, owner, cls=None):
        # A function of the program among the attributes of a class of the test is a method.
        is_function = facts(self).name == "function" and facts(self).is_known
        return types.MethodType(self, owner) if is_function and owner is not None else self  # type: ignore[arg-type]

    @property  # type: ignore[misc]
    def __class__(self):
        return driver.class_of(self)

    @property
    def __doc__(self):  # type: ignore[override]
        return driver.request("getattr", self, "__doc__")


def _forwarder(operation: str) -> Any:
    def method(self, /, *args, **kwargs):
        return driver.operate(operation, self, args, kwargs)

    method.__name__ = method.__qualname__ = operation
    return method


for _name in OPERATIONS:
    setattr(Object, _name, _forwarder(_name))
_FACTS: Any = vars(Object)["_facts_of_object"]


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
    """Return a function that leaves a test to the program's process where it is asked of what is there.

    Args:
        function: A function that would be asked of what stands for an object.
        of_data: It tells how a process keeps data, too.

    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = *args, *kwargs.values()
        if any(map(is_object, given)) or (of_data and any(map(driver.is_foreign, given))):
            driver.leave_undecided(Mark(Reason.ASKED_THERE.format(function.__name__)))
        return function(*args, **kwargs)

    return checked


class ErrorClass(type):
    """Class of the stand-ins for the program's classes of exceptions."""

    def __call__(cls, /, *args, **kwargs):
        return driver.request("call", cls, *args, **kwargs)

    def __getattr__(cls, name):
        return driver.get_attribute(cls, name)


def stand_in(name: str, bases: tuple[type, ...]) -> Any:
    """Return a stand-in for a class of exceptions."""
    body = {
        "__getattr__": lambda self, name: driver.get_attribute(self, name),
        "__str__": lambda self: vars(self)["text of the program"],
    }
    try:
        return ErrorClass(name, bases, body)
    except TypeError:  # their layouts do not combine
        return ErrorClass(name, bases[:1], body)

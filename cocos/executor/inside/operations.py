"""Requests of a test to objects and names of the program.

A test may ask seven things of an object that it names, of an instance of a class that it names, of what hangs
below these, and of an iterator of the standard library: call, attribute, iterate, length, item, text, truth.
It may call any function, and ask any object for its text and truth. Each of these is a request to the
program, as in plain Python. A test that asks anything else of an object runs in the program's process.
"""

import builtins
import sys
import types
from typing import Any, NoReturn

from . import data_types, stand_ins
from .marks import Mark, Reason
from .requests import Requests
from .stand_ins import EQUAL_TO_ITSELF, OF_DATA, VERBS, Facts, facts, is_object

_FOR_ALL = frozenset(("__bool__", "__str__", "__repr__", "__format__", "__enter__", "__exit__"))
# A test that asks for one of these, as in `f(3).isdigit()`, expects that its object is data.
_DATA_NAMES = frozenset().union(*map(dir, (str, bytes, float, list, dict, set))) - {"__doc__"}
_TEXTS = ("__name__", "__doc__")


class NotPlainValue(BaseException):
    """A value that the test compares with data is none."""


class Names(dict):
    """The builtins of the tests. A name that only the program has is looked up in its process.

    Functions and classes are looked up once, other values each time: the program may assign new ones.

    Args:
        operations: What the tests may do with values of the program.
        own: Names of builtins that the program has given to something else.
        helpers: Standard names that the program defines, and of which no test is a test. They decide what
            the test computes.

    """

    def __init__(self, operations: "Operations", own: set[str], helpers: set[str]) -> None:
        super().__init__(vars(builtins), **stand_ins.LOCAL, isinstance=operations.is_instance)
        self._operations, self._requests = operations, operations.requests
        self.own = {name for name in own if name in self and name[:1] != "_"} - self._requests.remote
        self.helpers = helpers
        operations.named, operations.helpers = set(self._requests.remote), helpers
        self._requests.remote |= self.own
        for name in self._requests.remote & self.keys():
            del self[name]

    def __missing__(self, name: str) -> Any:
        if name not in self._requests.remote:
            raise KeyError(name)
        value = self._requests.request("name", name)
        self._operations.note_name(value)
        if name in self.own or name in self.helpers:
            is_class = is_object(value) and facts(value).name == name and name not in sys.modules
            self._requests.marks.add(Reason.DECIDED.format(name), not is_class)
        elif callable(value):
            self[name] = value
        return value


class Operations:
    """Operations of the tests of a job on objects of the program.

    Attributes:
        requests: The driver's end of the conversation.
        named: Names that only the program defines.
        helpers: Standard names among these, of which no test is a test.

    """

    def __init__(self, requests: Requests) -> None:
        self.requests = requests
        self.named: set[str] = set()
        self.helpers: set[str] = set()

    def is_same(self, left: Any, right: Any) -> bool:
        """Return `left is right`."""
        if is_object(left) and is_object(right):
            self.refuse_or_leave("the identity", facts(left), (right,))
        if left is not right and _are_alike(left, right):  # perhaps one object in the program's process
            self.requests.leave_undecided(Mark(Reason.ASKS.format("the identity", type(left).__name__)))
        return left is right

    def is_instance(self, value: Any, classes: Any, /) -> bool:
        """Return `isinstance(value, classes)`."""
        if not is_object(value):
            return isinstance(value, classes)
        found = facts(value)
        if found.kind == "iterator" and found.name in stand_ins.ITERATORS:
            return issubclass(stand_ins.ITERATORS[found.name], classes)
        parts = classes.__args__ if type(classes) is types.UnionType else classes
        parts = parts if type(parts) is tuple else (parts,)
        is_of_data = any(type(cls) is type and cls in data_types.DATA_CLASSES for cls in parts)
        self.refuse_or_leave("isinstance" if is_of_data else "the class", found, parts)

    def may_ask(self, found: Facts) -> bool:
        """Return whether a test may ask seven things of an object with these facts."""
        return found.kind == "iterator" or self.is_named(found)

    def is_named(self, found: Facts) -> bool:
        """Return whether the tests name an object or its class, or it hangs below what they name."""
        return (found.is_known and not found.is_returned) or found.name in self.named

    def note_name(self, value: Any) -> None:
        """Note that the test has a value of the program by a name."""
        if is_object(value):
            facts(value).is_known = True

    def operate(self, operation: str, value: Any, args: tuple, kwargs: dict) -> Any:
        """Do what a special method of an object would do."""
        found = facts(value)
        if operation in ("__eq__", "__ne__") and not is_object(args[0]):
            if args[0] is None or found.kind in EQUAL_TO_ITSELF:
                return NotImplemented
        elif found.kind == "iterator":
            if operation == "__contains__":
                return any(item is args[0] or item == args[0] for item in value)
            # No iterator has these. `list` and `bytes` try the first ones.
            if operation in ("__len__", "__index__", "__getitem__", "__call__"):
                raise TypeError(f"{found.name!r} object has no {operation}")
        is_call = operation == "__call__"
        is_for_all = operation in _FOR_ALL or (is_call and (found.is_known or found.kind == "function"))
        if operation not in VERBS or not (is_for_all or self.may_ask(found)):
            self.refuse_or_leave(operation, found, args)
        if operation == "__exit__":
            return self._exit(value, found, args)
        result = self.requests.request(operation, value, *args, **kwargs)
        if is_object(result):
            # A function may return what the test names, in place of data.
            facts(result).is_returned |= is_call and facts(result).is_known
            facts(result).is_known |= not is_call and self.is_named(found)
        return result

    def _exit(self, value: Any, found: Facts, args: tuple) -> bool:
        """Leave a `with`; mark a test whose error the program swallows."""
        if not self.requests.request("__exit__", value, *args[:2], None) or args[0] is None:
            return False
        is_own = self.is_named(found) or found.name == "_GeneratorContextManager"
        self.requests.marks.add(
            Reason.DECIDED.format("__exit__"), not is_own or self.requests.is_foreign(args[1])
        )
        return not issubclass(args[0], AssertionError)  # a failed assert stays one

    def refuse_or_leave(self, operation: str, found: Facts, args: tuple) -> NoReturn:
        """Refuse what a function returned in place of data, or leave the test to the program's process.

        That is the program's choice unless the test may ask one of the sides, and does not take it for data.
        """
        others = [facts(arg) for arg in args if is_object(arg)]
        is_named = any(self.may_ask(side) and side.name not in self.helpers for side in (found, *others))
        asks_class = operation in ("isinstance", "type")
        is_as_data = (asks_class or operation in OF_DATA) and not others
        is_liar = found.kind == "other data" or (not asks_class and found.kind != "data")
        if is_as_data and is_liar and not (is_named or self.requests.is_decoding):
            text = f"returned {found.name}, which is not a plain value"
            self.requests.decide(["e", "NotPlainValue", text])
            raise NotPlainValue(text)
        self.requests.leave_undecided(
            Mark(Reason.ASKS.format(operation, found.name), is_as_data or not is_named)
        )

    def get_attribute(self, value: Any, name: str) -> Any:
        """Return an attribute of an object, of a stand-in for an exception, or of its class."""
        if not is_object(value):
            if name[:2] == "__" or id(value) not in self.requests.numbers:
                raise AttributeError(name)
            result = self.requests.request("getattr", value, name)
            if is_object(result) or callable(result):
                cls = value if isinstance(value, type) else type(value)
                mark = Mark(Reason.ASKS.format(name, cls.__name__), cls.__name__ not in self.named)
                self.requests.leave_undecided(mark)
            return result
        found = facts(value)
        if name == "__class__" and "data" not in found.kind:  # what the standard library asks
            return stand_ins.Object
        if found.kind == "iterator" and name not in _names_of_iterator(found.name):
            raise AttributeError(f"{found.name!r} object has no attribute {name!r}")
        # With a special attribute an object tells C code what to do: numpy would read at an address of its.
        is_special = name[:2] == "__" and name not in _TEXTS
        # What should return data may have returned its own function, with any attribute.
        is_of_data = name in _DATA_NAMES or name.startswith("__array")  # of numpy
        if is_special or (is_of_data and found.kind == "function") or not self.may_ask(found):
            self.requests.leave_undecided(Mark(Reason.ASKS.format(name, found.name), is_of_data))
        result = self.requests.request("getattr", value, name)
        if is_object(result):
            facts(result).is_known |= self.is_named(found)
        return result


def _names_of_iterator(name: str) -> list[str]:
    """Return the attributes of an iterator of the standard library: the program may send any name."""
    return dir(stand_ins.ITERATORS.get(name))


def _are_alike(left: Any, right: Any) -> bool:
    """Return whether two values of a class that cannot change are equal."""
    is_immutable = type(left) is type(right) and type(left) in (tuple, frozenset, str, bytes, int, float)
    return is_immutable and left == right

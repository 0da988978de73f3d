"""Operations of a test on objects and names of the program, and what of that marks the test.

Each operation is a request to the program. A test is marked where the answer decides it, because an object
could answer as the test expects, whatever it is.
"""

import builtins
import collections
import types
from contextlib import suppress
from typing import Any

from . import data_types, objects
from .driver_end import MALFORMED, DriverEnd
from .marks import Reason
from .objects import (
    ARITHMETIC,
    COMPARISONS,
    CONVERSIONS,
    FUNCTIONS,
    NAMED,
    NO_DATA,
    UNARY,
    Facts,
    facts,
    is_object,
)
from .trusted_code import MODULE

# Methods of data. A test that calls one, as in `f(3).isdigit()`, expects that its object is data.
_PLAIN_METHODS = frozenset().union(*map(dir, (str, bytes, float, list, dict, set)))
# Special attributes that a test may ask for. With others an object tells C code what to do.
_SPECIAL_WORDS = """
__name__ __qualname__ __module__ __dict__ __wrapped__ __annotations__ __defaults__ __kwdefaults__ __array__
__mro__ __bases__ __self__ __func__ __members__ __origin__ __args__ __cause__ __notes__ __slots__
__version__ __match_args__ __dataclass_fields__ """
_SPECIAL = frozenset(_SPECIAL_WORDS.split())


_DIFFERENCES = frozenset(
    f"__{kind}{name}__" for name in ("sub", "truediv", "mod", "xor") for kind in ("", "r", "i")
)
_REMEMBERED = frozenset(("__getitem__", "__reversed__", "__iter__", "__len__", "__next__", "__bool__"))


class NotPlainValue(BaseException):
    """A value that the test compares with data is none."""


class Names(dict):
    """The builtins of the tests. A name that only the program has is looked up in its process.

    Functions and classes are looked up once, other values each time: the program may assign new ones.

    Args:
        driver: The driver's end.
        own: Names of builtins that the program has given to something else.
        helpers: Standard names that the program defines, and of which no test is a test. They decide what
            the test computes.

    """

    def __init__(self, driver: "Operations", own: set[str], helpers: set[str]) -> None:
        super().__init__(vars(builtins))
        self._driver = driver
        self.own = {name for name in own if name in self and name[:1] != "_"} - driver.remote
        self.helpers = helpers
        driver.remote |= self.own
        self["callable"], self["hasattr"] = driver.is_callable, driver.has_attribute
        self["isinstance"], self["issubclass"] = driver.is_instance, driver.is_subclass
        self["id"] = objects.local(id, of_data=True)
        for name in driver.remote & self.keys():
            del self[name]

    def __missing__(self, name: str) -> Any:
        if name not in self._driver.remote:
            raise KeyError(name)
        value = self._driver.request("name", name)
        decides = name in self.own or name in self.helpers
        if decides:
            self._driver.marks.add(Reason.DECIDED.format(name), not is_class_named(value, name))
        else:
            self._driver.note_name(value, name)
        if callable(value) and not decides:
            self[name] = value
        return value


class Operations(DriverEnd):
    """The driver's end of the conversation, with what a test may do with objects of the program.

    Attributes:
        asked: What the test has asked of unnamed objects: their length, iterator or truth.

    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: frozenset[str] = frozenset()
        self._iterated = (0, 0)  # the object that was iterated over last, by id, and when

    def is_same(self, left: Any, right: Any) -> bool:
        """Return `left is right`. Which objects of the program are the same one, it says itself."""
        if is_object(left) and is_object(right):
            self.marks.add(Reason.DECIDED.format(f"the identity of {facts(left).name}"), False)
        if left is not right and _is_same(left, right):
            self.marks.add(Reason.DECIDED.format("the identity of data"))
            return True
        return left is right

    def type_of(self, value: Any) -> Any:
        """Return what `type(value)` is in the program's process."""
        if not is_object(value):
            return type(value)
        if facts(value).is_known:
            return self.class_of(value)
        found = self.request("type", value)
        if not is_object(found) and found.__module__ != MODULE:
            self.marks.add(Reason.DECIDED.format(f"the class of {facts(value).name}"))
        return found

    def is_callable(self, value: Any, /) -> bool:
        """Return what `callable(value)` is in the program's process."""
        return bool(self.request("callable", value)) if is_object(value) else callable(value)

    def is_instance(self, value: Any, classes: Any, /) -> bool:
        """Return `isinstance(value, classes)`. An object whose class derives from none of data is no data."""
        if not is_object(value) or facts(value).is_known:
            return isinstance(value, classes)
        return any(self._is_of("__instancecheck__", kind, value) for kind in _classes_in(classes))

    def is_subclass(self, cls: Any, classes: Any, /) -> bool:
        """Return `issubclass(cls, classes)`."""
        if not is_object(cls):
            return issubclass(cls, classes)
        return any(self._is_of("__subclasscheck__", kind, cls) for kind in _classes_in(classes))

    def _is_of(self, operation: str, kind: Any, value: Any) -> bool:
        """Return what the program says of an object and a class that is neither of data nor of the test."""
        if is_object(kind):
            return bool(self.operate(operation, kind, (value,), {}))
        if kind in data_types.DATA_CLASSES | data_types.ATOMS and operation == "__instancecheck__":
            return facts(value).has_data and isinstance(value, kind)
        if kind is object or (type(kind) is type and kind.__module__ == MODULE):
            return kind is object
        is_named = facts(value).origin in NAMED
        self.marks.add(Reason.DECIDED.format(f"the class of {facts(value).name}"), not is_named)
        return bool(self.request(operation, kind, value))

    def note_name(self, value: Any, name: str) -> None:
        """Note that the test names a class of the program. A function has another name of its class."""
        if is_class_named(value, name) and facts(value).created == self.moment:  # not got by other means
            facts(value).origin = "class"

    def has_attribute(self, value: Any, name: str, /) -> bool:
        """Return what `hasattr(value, name)` is in the program's process."""
        return bool(self.request("hasattr", value, name)) if is_object(value) else hasattr(value, name)

    def operate(self, operation: str, value: Any, args: tuple, kwargs: dict) -> Any:
        """Do what a special method of an object would do."""
        found = facts(value)
        if operation == "__exit__":
            return self._exit(value, found, args)
        if operation == "__deepcopy__":
            args = ()  # not all that has been copied before
        if found.has_data and operation != "__call__" and operation not in found.own:
            return self._with_data(operation, value, args)
        is_equality = operation in ("__eq__", "__ne__") and not is_object(args[0])
        if is_equality and (args[0] is None or found.own.isdisjoint(("__eq__", "__ne__"))):
            return NotImplemented
        if operation == "__contains__" and found.is_known:  # a generator, for example
            return any(item is args[0] or item == args[0] for item in value)
        if operation in COMPARISONS:
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        elif operation in ARITHMETIC or operation in UNARY:
            return self._compute(operation, value, found, args)
        elif operation == "__index__" and found.is_known:
            raise TypeError(f"{found.name!r} object cannot be interpreted as an integer")
        elif operation in CONVERSIONS or (found.is_computed and operation in ("__bool__", "__len__")):
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        elif operation in ("__instancecheck__", "__subclasscheck__"):
            self.marks.add(Reason.DECIDED.format(f"{operation} of {found.name}"), False, *args)
        elif operation in _REMEMBERED and found.origin not in ("class", "named"):
            return self._unnamed(operation, value, found, args)
        elif operation == "__call__":
            return self._call(value, found, args, kwargs)
        return self.request(operation, value, *args, **kwargs)

    def _compute(self, operation: str, value: Any, found: Facts, args: tuple) -> Any:
        """Do arithmetic. With data, such as `f(3) - 2.5`, the program gets what the test may expect."""
        others = [facts(arg) for arg in args if is_object(arg)]
        with_data = len(others) < len(args)
        is_named = found.origin in ("named", "relative")
        what = Reason.DECIDED.format(f"{operation} of {found.name}")
        is_difference = operation in _DIFFERENCES  # to what the test expects, perhaps
        tells = with_data and (is_difference or not is_named)
        if with_data and is_difference and not is_named:
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        if tells and found.origin != "named" and any(map(data_types.may_be_expected, args)):
            self.marks.add(what, True, *args)
        result = self.request(operation, value, *args)
        is_computed = tells or any(side.is_computed for side in (found, *others))
        if not is_object(result):
            if is_computed or not is_named:
                self.marks.add(what, found.origin != "named")
            return result
        if is_named and facts(result).name == found.name:
            facts(result).origin = found.origin
        facts(result).is_computed |= is_computed
        return result

    def _unnamed(self, operation: str, value: Any, found: Facts, args: tuple) -> Any:
        """Do an operation of an object that a function returned, which may tell each time something else."""
        key = operation, str(args)
        if operation == "__getitem__" and found.has_data:
            data = self.data(value)
            if not isinstance(data, (dict, collections.UserDict)) or args[0] in data:
                with suppress(LookupError, TypeError):
                    found.answers.setdefault(key, data[args[0]])
        is_keyed = operation == "__getitem__" and not _is_index(*args) and key not in found.answers
        is_by_program = found.origin != "relative"
        differs = found.has_data and operation != "__getitem__"
        if differs or is_keyed or (operation == "__bool__" and found.is_answer):
            # A key may be what the test expects.
            self.marks.add(Reason.DECIDED.format(f"{operation} of {found.name}"), is_by_program, *args)
        if operation != "__len__" or self._iterated != (id(value), self.moment):  # no hint for a list
            self._ask(operation, found)
        try:
            result = self.request(operation, value, *args)
        except StopIteration:
            found.answers["end"] = None
            raise
        if operation == "__iter__":
            self._iterated = id(value), self.moment
        if operation == "__next__":
            is_same = "end" not in found.answers
        else:
            is_same = _is_same(found.answers.setdefault(key, result), result)
        if not is_same:
            self.marks.add(Reason.DECIDED.format(f"{operation} of {found.name}"), is_by_program)
        return result

    def _ask(self, what: str, found: Facts) -> None:
        """Mark the test if it asks an unnamed object in two ways: a loop over nothing asserts nothing."""
        found.asked |= set() if found.is_known else {what} - {"__next__", "__getitem__"}
        self.asked |= found.asked
        if len(self.asked) > 1:
            reason = Reason.DECIDED.format(f"{' and '.join(sorted(self.asked))} of {found.name}")
            self.marks.add(reason, found.origin != "relative")

    def _exit(self, value: Any, found: Facts, args: tuple) -> bool:
        if not self.request("__exit__", value, *args[:2], None) or args[0] is None:
            return False
        is_by_program = found.origin not in NAMED and found.name != "_GeneratorContextManager"
        self.marks.add(Reason.DECIDED.format("__exit__"), is_by_program or self.is_foreign(args[1]))
        return not issubclass(args[0], AssertionError)  # a failed assert stays one

    def _call(self, value: Any, found: Facts, args: tuple, kwargs: dict) -> Any:
        call = self._call_method if found.origin[:1] == "." else self.request
        result = call("call", value, *args, **kwargs)
        # An instance of a class that the test names; another function with a capital gives any object.
        # If the program has given the class as a value too, the test may have it from there.
        if is_object(result) and found.origin == "class" and facts(result).name == found.name:
            is_repeated = self.numbers.get(id(value)) in self.repeated
            facts(result).origin = "relative" if is_repeated else "named"
        elif is_object(result) and facts(result).name == found.owner and facts(result).origin != "class":
            facts(result).origin = "relative"
        return result

    def _call_method(self, operation: str, value: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of an object that a function returned, or of an exception, which may decide."""
        found, told = facts(value), (*args, *kwargs.values())
        method = found.origin[1:]
        what = Reason.DECIDED.format(f"the method {method} of a value")
        is_plain = method == "exception" or (method in _PLAIN_METHODS and not found.is_member)
        if is_plain:
            self._tell(*told)
        result = self.request(operation, value, *args, **kwargs)
        if is_object(result):
            facts(result).is_answer = True
            return result
        is_array = data_types.tag_of(result) == "N"
        is_no = not (result is None or is_array or result)
        is_predicate = method[:2] == "is" or method in ("startswith", "endswith")
        says = result is not None and (told or is_no or type(result) is bool or found.is_own)
        if is_plain and (says or is_predicate):
            self.marks.add(what, not found.is_member, *told)
        elif type(result) is bool or (is_no and told and not found.is_member):
            self.marks.add(what, False, *told)
        return result

    def _refuse_or_mark(self, what: str, found: Facts, args: tuple) -> None:
        """Mark the test, unless an object that a function returned is compared with data."""
        sides = [found, *map(facts, filter(is_object, args))]
        is_named = any(side.origin in NAMED or (side.is_member and len(sides) > 1) for side in sides)
        if len(sides) == 1 and (found.origin == "relative" or (args and found.origin == "class")):
            is_named = False  # what should return data may have returned its object or class
        elif len(sides) == 1 and not is_named:
            text = f"returned {found.name}, which is not a plain value"
            self.decide(["e", "NotPlainValue", text])
            raise NotPlainValue(text)
        self.marks.add(Reason.DECIDED.format(what), not is_named, *args)

    def _with_data(self, operation: str, value: Any, args: tuple) -> Any:
        """Do an operation of an object whose class derives from one of data, with the data."""
        data = self.data(value)
        others = [self.data(other) if is_object(other) and facts(other).has_data else other for other in args]
        if facts(value).is_computed:
            what = Reason.DECIDED.format(f"the arithmetic of {facts(value).name}")
            self.marks.add(what, facts(value).origin != "named", *args)
        if operation in ("__str__", "__repr__", "__format__", "__enter__", "__next__"):
            return self.request(operation, value, *args)
        is_in_place = operation in ARITHMETIC and operation[2] == "i"
        changes = is_in_place or operation in ("__setitem__", "__delitem__")
        if is_in_place and hasattr(type(data), operation):
            self.marks.add(Reason.DECIDED.format(f"{operation} of {facts(value).name}"))
        if operation[-6:] == "copy__" or (changes and hasattr(type(data), operation)):
            return self.request(operation, value, *args)
        if operation == "__getitem__" and isinstance(data, collections.defaultdict) and args[0] not in data:
            return self.request(operation, value, *args)
        return FUNCTIONS[operation](data, *others)

    def data(self, value: Any) -> Any:
        """Return the data of an object whose class derives from one of data, as they are now."""
        found = facts(value)
        if found.data is NO_DATA or (found.moment >= 0 and found.moment != self.moment):
            found.data = self.request("data", value)
            found.moment = self.moment
            if type(found.data) not in data_types.CHANGEABLE:
                self.leave(MALFORMED)
        return found.data

    def get_attribute(self, value: Any, name: str) -> Any:
        """Return an attribute of an object, of a stand-in for an exception, or of its class."""
        if name[:2] == "__" and name not in _SPECIAL:
            raise AttributeError(name)
        if not is_object(value):
            if id(value) not in self.numbers:
                raise AttributeError(name)
            result = self.request("getattr", value, name)
            cls = value if isinstance(value, type) else type(value)
            is_named = self.names.get(cls.__name__) is cls
            if is_object(result):
                facts(result).origin, facts(result).is_member = ".exception", is_named
            elif callable(result):
                self.marks.add(Reason.DECIDED.format("a method of an exception"), not is_named)
            return result
        found = facts(value)
        is_constant = found.has_data and found.moment < 0 and found.data is not NO_DATA
        if is_constant and found.origin not in NAMED and name not in found.own and hasattr(found.data, name):
            return getattr(found.data, name)
        result = self.request("getattr", value, name)
        is_new = is_object(result) and facts(result).created == self.moment
        if is_object(result) and found.origin in NAMED:
            facts(result).is_member, facts(result).owner = True, found.name
            if is_new and is_class_named(result, name):
                facts(result).origin = "class"
            elif is_new and facts(result).name == found.name:
                facts(result).origin = "relative"
            elif found.origin == "relative" and name in _PLAIN_METHODS:
                facts(result).origin = f".{name}"
        elif is_object(result) and found.has_data and name not in found.own:
            is_method = facts(result).name == "builtin_function_or_method"  # of its data
            facts(result).origin = "" if is_method else f".{name}"
        elif is_object(result) and found.has_data:
            facts(result).origin, facts(result).is_own = f".{name}", True
        elif is_new or (is_object(result) and facts(result).origin in ("", f".{name}")):
            facts(result).origin = f".{name}"
        elif _is_function(result) and found.origin not in NAMED:
            self.marks.add(Reason.DECIDED.format("a method of a value"))  # `ascii`, say, in place of a method
        return result

    def class_of(self, value: Any) -> Any:
        """Return what `isinstance` finds as the class of an object."""
        found = facts(value)
        if found.has_data:
            return type(self.data(value))
        cls = data_types.TYPES.get(found.name) if found.is_known else objects.Object
        if found.is_known and self.has_name(value):
            return cls
        # No data are iterators.
        is_by_program = not (found.origin in NAMED or (found.is_known and hasattr(cls, "__next__")))
        self.marks.add(Reason.DECIDED.format(f"the class of {found.name}"), is_by_program)
        return cls


def _classes_in(classes: Any) -> list:
    """Return the classes in the second argument of `isinstance` or `issubclass`."""
    parts = classes.__args__ if type(classes) is types.UnionType else classes
    return [inner for part in parts for inner in _classes_in(part)] if type(parts) is tuple else [parts]


def is_class_named(value: Any, name: str) -> bool:
    """Return whether a value of the program is a class with this name, as far as the program says."""
    return is_object(value) and name[:1].isupper() and facts(value).name == name


def _is_function(value: Any) -> bool:
    """Return whether a value is a function or class, as far as is known."""
    return facts(value).is_known or facts(value).origin == "class" if is_object(value) else callable(value)


def _is_same(left: Any, right: Any) -> bool:
    """Return whether two answers are the same, as far as a test can see."""
    is_immutable = type(left) is type(right) and type(left) in (tuple, frozenset, str, bytes, int, float)
    return left is right or (is_immutable and left == right)


def _is_index(key: Any) -> bool:
    """Return whether a key is a number or a class, as in `x[1:2]` and `List[int]`."""
    return all(type(part) in (int, slice, type) for part in (key if type(key) is tuple else (key,)))

"""The candidate's end of the conversation with the judge.

It gives the judge access to the candidate's objects, and the candidate access to those that a test passes.
Nothing here is trusted.
"""

import builtins
import collections
import decimal
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import data_types
import handles
from conversation import MEMBERS, End

FRAMES_PER_REQUEST = 40  # that a request of the judge adds to the candidate's stack
FRAMES_OF_VALUES = 5000  # for values that are nested deeply
_BUILTINS = {name: value for name, value in vars(builtins).items() if name[:1] != "_"}


class Candidate(End):
    """The end of one test.

    Args:
        namespace: The names that the program has defined.

    """

    def __init__(self, namespace: dict) -> None:
        super().__init__(first_id=1)
        self.namespace = namespace

    def serve(self) -> None:
        """Answer the judge's requests until its test has ended."""
        self.send("ready", (own_builtins(self.namespace),))
        while True:
            with self._turn:
                kind, values, names = self.receive()
            if kind == "next":
                return
            self.answer(values, names)

    def answer(self, values: list, names: list) -> None:
        with _more_frames(FRAMES_PER_REQUEST):
            super().answer(values, names)

    def get_attribute(self, handle: Any, name: str) -> Any:
        if name == "__signature__":
            return _signature(self.request("parameters", handle))
        return super().get_attribute(handle, name)

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        match operation:
            case "name":
                [name] = args
                if name in self.namespace:
                    return self.namespace[name]
                if hasattr(builtins, name):
                    return getattr(builtins, name)
                raise NameError(f"name {name!r} is not defined")
            case "start":
                of_setup, capitals = ({name: self.namespace.get(name) for name in names} for names in args)
                self.setup_classes = {name: cls for name, cls in of_setup.items() if isinstance(cls, type)}
                self.named = [cls for cls in capitals.values() if isinstance(cls, type)]
                return None
            case "type":
                return type(target)
            case "data":
                base = data_types.data_base(type(target))
                classes = type(target).__mro__[: type(target).__mro__.index(base)]
                is_own = args[0] and any(args[0] in vars(cls) for cls in classes)
                return None if is_own else plain(target)
        return super().perform(operation, target, args, kwargs)

    def attributes_of(self, error: BaseException) -> dict[str, Any]:
        found = dict(BaseException.__dict__["__dict__"].__get__(error))
        for base in type(error).__mro__[: type(error).__mro__.index(BaseException)]:
            for name, member in vars(base).items():
                if isinstance(member, MEMBERS) and name not in ("args", "obj"):
                    with suppress(AttributeError, TypeError):
                        found[name] = member.__get__(error)
        attributes = {
            name: value
            for name, value in found.items()
            if name[:1] != "_" and value is not None and data_types.is_data(value) and not callable(value)
        }
        for name in ("__cause__", "__notes__"):
            if (value := getattr(error, name, None)) is not None:
                attributes[name] = value
        return attributes

    def decode_by_name(self, node: list) -> Any:
        match node:
            case ["global", str(module), str(name)]:
                value: Any = importlib.import_module(module)
                for part in name.split("."):
                    value = getattr(value, part)
                return value
        return super().decode_by_name(node)

    def handle(self, facts: handles.Facts) -> Any:
        known = handles.new(facts)
        cls = type(facts.name, (type(known),), handles.EMPTY)  # programs show the names of classes
        return handles.new(facts, cls)

    def sweep(self, first_new: int) -> list[int]:
        return []  # an object that the program has forgotten may still be of use to the test

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        with self._turn, _more_frames(FRAMES_OF_VALUES):
            try:
                super().send(kind, values, names)
            except (data_types.OutputLimit, MemoryError, RecursionError) as error:
                if kind == "q":
                    raise
                super().send("e", (type(error)(str(error) or "while a value was encoded"),))

    def receive(self) -> tuple[str, list, list]:
        with _more_frames(FRAMES_OF_VALUES):
            return super().receive()


@contextmanager
def _more_frames(number: int) -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + number)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def own_builtins(namespace: dict) -> list[str]:
    """Return the names of builtins that the program has given to something else."""
    # Not the builtins one by one: touching each of them costs a copy of its page.
    return [name for name in _BUILTINS.keys() & namespace if namespace[name] is not _BUILTINS[name]]


def plain(value: Any) -> Any:
    """Return the data in an object of a class that derives from one of data, or None."""
    base = data_types.data_base(type(value))
    for scalar, convert in ((int, int.__index__), (float, float.__float__), (str, str.__str__)):
        if base is scalar:
            return convert(value)
    if base in (list, tuple, set, frozenset, collections.deque, bytearray):
        return base(base.__iter__(value))
    if base in (dict, collections.Counter, collections.OrderedDict, collections.defaultdict):
        copy = base()
        # Not Counter.update, which adds. OrderedDict keeps an order of its own.
        update = collections.OrderedDict.update if base is collections.OrderedDict else dict.update
        update(copy, base.items(value))
        return copy
    if base in (bytes, complex, decimal.Decimal):
        return base(value)
    if base in (collections.UserDict, collections.UserList, collections.UserString):
        return base(vars(value).get("data"))
    return None


def _signature(parameters: list[tuple]) -> Any:
    """Return the signature of a function of the test; the values of its defaults stay unknown."""
    import inspect  # slow to import

    no_default = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, inspect._ParameterKind(kind), default=... if has_default else no_default)
            for name, kind, has_default in parameters
        ]
    )


def serve(namespace: dict) -> None:
    """Answer the judge's requests during one test."""
    Candidate(namespace).serve()

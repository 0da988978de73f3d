"""The candidate's end of the conversation with the judge.

It gives the judge access to the candidate's objects, and the candidate access to those that a test passes.
Nothing here is trusted.
"""

import builtins
import importlib
import sys
import types
from typing import Any

import handles
import value_codec
from conversation import End, MessageTooLarge

FRAMES_PER_REQUEST = 40  # that a request of the judge adds to the candidate's stack


class Candidate(End):
    """The end of one test.

    Args:
        namespace: The names that the program has defined.

    """

    def __init__(self, namespace: dict) -> None:
        super().__init__(first_id=1)
        self.namespace = namespace
        self._setup_classes: dict[str, Any] = {}  # that the judge has too, by name
        self._named_errors: dict[type, str] = {}  # exceptions for which the judge has a stand-in

    def serve(self) -> None:
        """Answer the judge's requests until its test has ended."""
        self.send("ready", ())
        while True:
            with self._turn:
                kind, values, names = self.receive()
            if kind == "next":
                return
            self.answer(values, names)

    def answer(self, values: list, names: list) -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + FRAMES_PER_REQUEST)
        try:
            super().answer(values, names)
        finally:
            sys.setrecursionlimit(limit)

    def operate(self, operation: str, handle: Any, args: tuple, kwargs: dict) -> Any:
        if self._is_made_here(handle):
            return getattr(Exception, operation)(handle, *args)
        return super().operate(operation, handle, args, kwargs)

    def _is_made_here(self, handle: Any) -> bool:
        """Return whether this is an exception of a class of the test that the program itself has made."""
        return isinstance(handle, handles.RemoteError) and self.ids.get(id(handle), 1) % 2 == self.parity

    def get_attribute(self, handle: Any, name: str) -> Any:
        if self._is_made_here(handle):
            return object.__getattribute__(handle, name)
        if name in ("__signature__", "__code__"):
            parameters = self.request("parameters", handle)
            return _signature(parameters) if name == "__signature__" else _code(parameters)
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
                return self._start(*args)
            case "type":
                return type(target)
            case "data":
                base = value_codec.data_base(type(target))
                classes = type(target).__mro__[: type(target).__mro__.index(base)]
                is_own = args[0] and any(args[0] in vars(cls) for cls in classes)
                return None if is_own else value_codec.plain(target)
        return super().perform(operation, target, args, kwargs)

    def _start(self, setup_classes: list[str], names: list[str]) -> list[tuple]:
        """Return name and parents of each exception among the names, parents first."""
        found = {name: self.namespace.get(name) for name in setup_classes}
        self._setup_classes = {name: value for name, value in found.items() if isinstance(value, type)}
        values = {name: self.namespace.get(name) for name in names}
        errors = [
            (name, value)
            for name, value in values.items()
            if isinstance(value, type) and issubclass(value, BaseException)
        ]
        rows = []
        for name, value in sorted(errors, key=lambda error: len(error[1].__mro__)):
            if not value_codec.class_name(value) and value not in self._named_errors:
                rows.append((name, self._known_classes(value)))
                self._named_errors[value] = name
        return rows

    def _known_classes(self, cls: type) -> list[str]:
        """Return the classes that the judge knows, or has stand-ins for ("=Name"), nearest first."""
        found: dict[type, str] = {}
        for base in cls.__mro__[1:]:
            name = (
                f"={self._named_errors[base]}" if base in self._named_errors else value_codec.class_name(base)
            )
            if name and base is not object and not any(issubclass(other, base) for other in found):
                found[base] = name
        return list(found.values())

    def encode_object(self, value: Any) -> list | None:
        if isinstance(value, type) and value in self._named_errors:
            return ["x", self._named_errors[value]]
        cls = type(value)
        members = getattr(cls, "__members__", None)
        if self._setup_classes.get(cls.__name__) is cls and isinstance(members, types.MappingProxyType):
            return ["E", cls.__name__, value.name]
        return None

    def decode_special(self, node: list) -> Any:
        match node:
            case ["x", str(name)]:
                return self.namespace[name]
            case ["E", str(enum), str(name)]:
                return self._setup_classes[enum][name]
            case ["n", str(module), str(name)]:
                value: Any = importlib.import_module(module)
                for part in name.split("."):
                    value = getattr(value, part)
                return value
        return super().decode_special(node)

    def kind_of(self, value: Any) -> str:
        name = type(value).__name__
        return f"setup:{name}" if self._setup_classes.get(name) is type(value) else super().kind_of(value)

    def kind_of_name(self, name: str) -> Any:
        if name.startswith("setup:"):
            kind = self.namespace.get(name.removeprefix("setup:"))
            return kind if isinstance(kind, type) else None
        return super().kind_of_name(name)

    def represent(self, tag: str, detail: Any, parts: list | None = None) -> Any:
        if tag == "o" and detail[2].startswith("error:"):  # `except` needs a class
            return type(
                detail[3],
                (handles.RemoteError, value_codec.class_of_name(detail[2].removeprefix("error:"))),
                {},
            )
        handle = super().represent(tag, detail, parts)
        if tag != "o":
            return handle
        cls = type(detail[3], (type(handle),), handles.EMPTY)  # programs show the names of classes
        return handles.new(handles.facts(handle), cls)

    def form_of_error(self, cls: type) -> list:
        if name := value_codec.class_name(cls):
            return ["standard", name]
        if cls in self._named_errors:
            return ["named", self._named_errors[cls]]
        if self._setup_classes.get(cls.__name__) is cls:
            return ["setup", cls.__name__]
        if id(cls) in self.ids:
            return ["test", [self.ids[id(cls)]]]
        return ["derived", self._known_classes(cls)]

    def error_class(self, form: str, name: Any) -> Any:
        return self.decode(name) if form == "test" else super().error_class(form, name)

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        with self._turn:
            try:
                super().send(kind, values, names)
            except MessageTooLarge as error:
                if kind == "q":
                    raise
                super().send("e", (value_codec.OutputLimit(str(error)),))
            except (MemoryError, RecursionError) as error:
                if kind == "q":
                    raise
                super().send("e", (type(error)("while a value was encoded"),))


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


def _code(parameters: list[tuple]) -> types.SimpleNamespace:
    """Return what programs read of the code object of a function."""
    positional = [name for name, kind, _ in parameters if kind < 2]
    return types.SimpleNamespace(
        co_argcount=len(positional), co_varnames=tuple(name for name, *_ in parameters)
    )


def serve(namespace: dict) -> None:
    """Answer the judge's requests during one test."""
    Candidate(namespace).serve()

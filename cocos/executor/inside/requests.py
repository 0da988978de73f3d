"""Requests of the driver to the program, and what crosses beside data.

Nothing that a program sends is run or looked up here, but for classes of exceptions of the standard library.
"""

import builtins
import json
import sys
import types
from contextlib import suppress
from typing import Any, NoReturn

from . import data_types, exchange, stand_ins
from .data_types import CodecError
from .marks import Mark, Marks, Reason, may_be_expected
from .stand_ins import Facts, is_object
from .trusted_code import MODULE
from .wire_format import MESSAGE_CHARS

_GLOBAL_TYPES = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


MALFORMED = ("MalformedEvidence", "the program sent no well-formed message")


class CannotCross(BaseException):
    """The program would get something of the test that cannot leave this process."""


class ProgramGone(BaseException):
    """The program's process has ended, or sent what is no message."""


class ProgramStopIteration(Exception):
    """StopIteration from a call. As itself it would end a loop of the test: `zip(map(f, xs), wants)`."""


class Requests(exchange.End):
    """The driver's end of the conversation.

    Attributes:
        namespace: The names of the tests.
        names: The builtins of the tests, and the names of the program that are known.
        remote: Names that are the program's.
        marks: Marks of the test.
        sources: Of the functions of tests that can cross: source, names from elsewhere, and whether it has a
            constant that a test may expect.
        final: An outcome that the test cannot change any more, or None.
        source: Source of the test.
        is_decoding: What is asked of an object now, is asked by a set or a dict that has it.
        is_gone: The program's process has ended, or sends malformed messages.
        error_at_end: Error type and message in the second case.

    """

    def __init__(self) -> None:
        super().__init__(first_number=1)
        self.namespace: dict[str, Any] = {}
        self.sources: dict[types.CodeType, tuple[str, str, bool]] = {}
        self.final: list | None = None
        self.source = ""
        self.is_gone = self.is_decoding = False
        self.error_at_end: tuple[str, str] | None = None
        self.names: dict[str, Any] = {}
        self.remote: set[str] = set()
        self.marks = Marks()
        self._captured: dict[int, tuple[dict, dict]] = {}
        self._error_classes: dict[str, Any] = {}

    def request(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        """Have the program do something and return the result, or raise its exception."""
        if self.is_gone:
            raise ProgramGone
        first = self.next_number
        try:
            captured = self._changed_names()
            values = [self.encode(value) for value in (*args, *kwargs.values())]
            self.send([operation, values, list(kwargs), self.changes(), self.sweep(), captured])
        except OSError:
            self.leave()
        except (CannotCross, OverflowError, RecursionError, CodecError) as error:
            self.forget_from(first)
            if isinstance(error, CannotCross):
                self.leave_undecided(Mark(str(error)))
            # Data that the program may have made.
            reason = "more data than one message takes, or nested too deeply"
            self.decide(["e", "OutputLimit", reason])
            raise CannotCross(reason) from None
        answer = self.receive()
        self.is_decoding = True
        try:
            kind, node, changes, rebound, dropped = answer
            value = self.decode(node)
            self.apply(changes)
            self.forget([number for number in dropped if number % 2 == self._parity])
            for name in self.remote.intersection(map(str, rebound)):
                self.names.pop(name, None)  # it is looked up again
        except (MemoryError, ProgramGone, CannotCross):  # the last: an object is the key of a dict
            raise
        except BaseException:
            self.leave(MALFORMED)
        finally:
            self.is_decoding = False
        if kind == "v":
            return value
        if kind != "e" or not isinstance(value, BaseException):
            self.leave(MALFORMED)
        if (
            isinstance(value, StopIteration)
            and operation != "__next__"
            and "StopIteration" not in self.source
        ):
            raise ProgramStopIteration(f"StopIteration: {value}")
        raise value

    def receive(self) -> list:
        """Read one message of the program."""
        try:
            data = exchange.receive()
        except (EOFError, OSError):
            self.leave()
        try:
            message = exchange.parsed(data)
        except (ValueError, RecursionError, StopIteration):
            self.leave(MALFORMED)
        if type(message) is not list:
            self.leave(MALFORMED)
        return message

    def leave_undecided(self, mark: Mark) -> NoReturn:
        """End the test: only the program's process can run it."""
        self.marks.add(*mark)
        self.decide(["undecided", mark.reason])
        raise CannotCross(mark.reason) from None

    def leave(self, error: tuple[str, str] | None = None) -> Any:
        """End the job: the program's process has ended, or sends malformed messages."""
        self.is_gone, self.error_at_end = True, error
        raise ProgramGone

    # What crosses beside data.

    def encode_error(self, error: BaseException, depth: int = 0) -> list:
        cls = type(error)
        if isinstance(cls, stand_ins.ErrorClass) or (
            cls.__module__ == MODULE and cls not in self.classes.values()
        ):
            raise CannotCross(Reason.GETS.format("an exception of the test"))
        if isinstance(error, AssertionError) and id(error) not in self.numbers:
            # Its message may contain an expected value.
            return ["error", self.register(error), ["builtins", "AssertionError"], None, "", [], [], []]
        return super().encode_error(error, depth)

    def encode_foreign(self, value: Any) -> Any:
        if is_object(value):
            raise CannotCross(Reason.LOST_OBJECT)
        if isinstance(value, types.ModuleType):
            return ["global", value.__name__, ""]
        if isinstance(value, _GLOBAL_TYPES):
            owner = value if isinstance(value, type) else getattr(value, "__objclass__", value)
            module, name = str(owner.__module__), str(value.__qualname__)
            found: Any = sys.modules.get(module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is value and module != MODULE:
                return ["global", module, name]
        if isinstance(value, types.BuiltinMethodType) and data_types.is_data(value.__self__):
            if id(value.__self__) not in self.numbers:
                self._tell(value.__self__)
            return ["method", self.encode(value.__self__), value.__name__]
        if isinstance(value, types.FunctionType):
            return self._encode_function(value)
        raise CannotCross(Reason.GETS.format(f"{type(value).__name__} of the test")[:MESSAGE_CHARS])

    def _encode_function(self, function: types.FunctionType) -> list:
        source, names, has_constant = self.sources.get(function.__code__, ("", "", False))
        if not source or vars(function):
            raise CannotCross(Reason.GETS.format("a function of the test that asserts or assigns"))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        used = names.split()
        values = {name: self.namespace[name] for name in used if name in self.namespace}
        values |= {name: cells[name].cell_contents for name in used if name in cells}
        values |= {name: self.names[name] for name in {*used} & self.remote & self.names.keys() - {*values}}
        if not values.keys() | vars(builtins).keys() >= set(used):
            raise CannotCross(Reason.GETS.format("a function of the test that calls it"))
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        self._tell(*values.values(), *defaults, *([source] if has_constant else []))
        number = self.register(function)
        self._captured[number] = cells, values
        return [
            *("function", number, function.__name__, source, list(values)),
            self.encode(function.__defaults__),
            self.encode(function.__kwdefaults__),
            *map(self.encode, values.values()),
        ]

    def note_source(self, source: str, names: str, has_constant: bool) -> Any:
        """Return a decorator that notes in which source a function can cross."""

        def noted(function: types.FunctionType) -> types.FunctionType:
            self.sources[function.__code__] = source, names, has_constant
            return function

        return noted

    def _tell(self, *values: Any) -> None:
        """Mark this test and all later ones, if the program gets one of these that a test may expect."""
        if any(map(may_be_expected, values)):
            self.marks.add(Reason.GETS_VALUE, False, *values)

    def decide(self, outcome: list) -> None:
        """Note an outcome that the test cannot change any more, whatever it catches."""
        self.final = self.final or outcome

    def forget_from(self, first: int) -> None:
        super().forget_from(first)
        self._captured = {number: known for number, known in self._captured.items() if number < first}

    def _changed_names(self) -> list:
        """Return the names in functions that the program has got which stand for another value now."""
        changed = []
        for number, (cells, values) in list(self._captured.items()):
            for name, value in values.items():
                try:
                    now = cells[name].cell_contents if name in cells else self.namespace.get(name)
                except ValueError:  # it is empty
                    continue
                if now is not value:
                    self._tell(now)
                    values[name] = now
                    changed.append([number, name, self.encode(now)])
        return changed

    def _fill(self, number: int, tag: str, parts: list) -> None:
        super()._fill(number, tag, parts)
        if tag == "x":
            value = self.objects[number]
            for name in vars(value):
                if callable(getattr(type(value), name, None)):  # it stands for a method, in later tests too
                    self.marks.add(Reason.DECIDED.format(name), True, value)

    def decode_foreign(self, node: list) -> Any:
        match node:
            case ["object", number, str(name), str(kind)]:
                value: Any = stand_ins.new(Facts(name[:80], kind))
                self.add(number, value)
                return value
            case ["error class", number, list(described)]:
                value = self._error_class(described)
                self.add(number, value)
                return value
            case ["error", number, list(cls), args, str(text), list(attributes), list(causes), list(members)]:
                decoded = {name: self.decode(value) for name, value in attributes if type(name) is str}
                found = {n: v for n, v in decoded.items() if data_types.is_data(v) and not callable(v)}
                arguments = self.decode(args) if args is not None else (text,) if text else ()
                error = self._error(self._error_class(cls), tuple(arguments), text, found, members)
                self.add(number, error)
                self._add_causes(error, causes)
                return error
        return data_types.decode_leaf(node)

    def _error(self, cls: Any, args: tuple, text: str, attributes: dict, members: list) -> BaseException:
        builtin = next(base for base in cls.__mro__ if base.__module__ == "builtins")
        if issubclass(cls, BaseExceptionGroup):
            return builtin.__new__(cls, str(attributes.get("message")), [*map(self.decode, members)])
        try:
            error = builtin.__new__(cls, *args)
            if not issubclass(cls, UnicodeError):  # which reads at the places that its arguments give
                builtin.__init__(error, *args)
        except (TypeError, ValueError):
            error = builtin.__new__(cls)
        BaseException.__dict__["args"].__set__(error, args)
        if issubclass(cls, UnicodeError) and not _is_sound(cls, attributes):
            attributes = {}
        for name, value in attributes.items():
            if isinstance(member := getattr(builtin, name, None), exchange.MEMBERS):
                with suppress(AttributeError, TypeError):
                    member.__set__(error, value)
            elif (name[:1] != "_" or name == "__notes__") and not hasattr(BaseException, name):
                vars(error)[name] = value
        if isinstance(cls, stand_ins.ErrorClass):
            vars(error)["text of the program"] = text
        return error

    def _error_class(self, described: list) -> Any:
        """Return the class of exceptions with this name and bases: this process's own, or a stand-in."""
        module, name, *bases = described
        if module == "setup":
            return self.classes[name]
        package = module.split(".")[0]
        # With an exception of `unittest` a program would end a test without a failure.
        if package in exchange.SHARED_MODULES and package != "unittest" and module in sys.modules:
            found = vars(sys.modules[module]).get(name)
            if isinstance(found, type) and issubclass(found, BaseException):
                return found
        key = json.dumps(described)
        if key not in self._error_classes:
            known = tuple(map(self._error_class, bases)) or (Exception,)
            self._error_classes[key] = stand_ins.error_class(str(name)[:80], known)
        return self._error_classes[key]


def _is_sound(cls: type, attributes: dict) -> bool:
    """Return whether the text of a UnicodeError with these attributes reads inside of its object only."""
    kind = bytes if issubclass(cls, UnicodeDecodeError) else str
    match attributes:
        case {"start": start, "end": end, "object": text}:
            return type(start) is type(end) is int and type(text) is kind and 0 <= start <= end <= len(text)
    return False

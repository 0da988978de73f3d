"""The driver's view of the program: values that stay there, requests, and exceptions that it raised."""

import builtins
import contextlib
from typing import Any

import data_codec
import program_end

OBJECT: Any = object()  # in place of data: the value is an object of the program
_UNKNOWN: Any = object()


class ProgramGone(BaseException):
    """The program's process has ended, or sent what is no message."""


class CannotCross(BaseException):
    """A value of the test that the program needs is no data, so only its process can run the test."""


class Theirs:
    """A value in the program's process.

    Attributes:
        source: An expression that gives it there.
        is_named: It comes from a name or a class that the test names, not from what a function returned.
        data: It as data, at a moment; OBJECT if it is none.
        is_exact: Its class is one of data, not a subclass.

    """

    __slots__ = ("class_name", "data", "is_exact", "is_named", "moment", "source")

    def __init__(self, source: str, is_named: bool = False) -> None:
        self.source, self.is_named = source, is_named
        self.data, self.moment = _UNKNOWN, -1
        self.is_exact, self.class_name = True, ""


class Program:
    """The program's process."""

    def __init__(self) -> None:
        self._moment = 0  # number of requests: what was sent back is as it was at the last one
        self._classes: dict[tuple, type] = {}

    def own_builtins(self) -> set[str]:
        """Return the names of builtins that the program has given to something else."""
        [names] = self._receive()
        return set(map(str, names))

    def get(self, bindings: list, *sources: str) -> list[Theirs]:
        """Evaluate expressions there, after the bindings, and return the values."""
        _, *items = self._request("get", bindings, sources)
        values = []
        for kind, number, content in items:
            values.append(Theirs(f"{program_end.KEPT}[{int(number)}]"))
            values[-1].data = OBJECT if kind == "o" else data_codec.decode(content)
            values[-1].is_exact = kind == "d"
            values[-1].class_name = str(content) if kind == "o" else ""
            values[-1].moment = self._moment
        if len(values) != len(sources):
            raise ProgramGone
        return values

    def do(self, bindings: list, *sources: str) -> None:
        """Run statements there."""
        self._request("do", bindings, sources)

    def fetch(self, values: list[Theirs]) -> list:
        """Return the data of values as they are at one moment; OBJECT for what is no data."""
        if any(value.moment != self._moment for value in values):
            for value, now in zip(values, self.get([], *[v.source for v in values]), strict=True):
                value.data, value.is_exact, value.class_name = now.data, now.is_exact, now.class_name
                value.moment = self._moment
        return [value.data for value in values]

    def end(self) -> None:
        """Tell the program's process that the test has ended."""
        with contextlib.suppress(OSError):
            program_end.send(["end"])

    def _request(self, operation: str, bindings: list, sources: tuple) -> list:
        self._moment += 1
        try:
            program_end.send([operation, bindings, sources])
        except OSError:
            raise ProgramGone from None
        except OverflowError:
            raise CannotCross("more data than one message takes") from None
        answer = self._receive()
        match answer:
            case ["v", *_]:
                return answer
            case ["e", int(number), list(names), str(text), args, list(attributes)]:
                raise self._error(number, tuple(map(str, names)), text, args, attributes)
        raise ProgramGone

    def _receive(self) -> list:
        try:
            message = program_end.receive()
        except (OSError, EOFError, ValueError, RecursionError):
            raise ProgramGone from None
        if type(message) is not list:
            raise ProgramGone
        return message

    def _error(
        self, number: int, names: tuple[str, ...], text: str, args: list | None, attributes: list
    ) -> BaseException:
        """Return an exception like the one that the program raised.

        Its class is the builtin one, or derives from the first builtin base.
        """
        if names not in self._classes:
            known = [vars(builtins)[n[9:]] for n in names if n[:9] == "builtins." and n[9:] in vars(builtins)]
            base = next(filter(_is_error, known), Exception)
            is_builtin = names[:1] == (f"builtins.{base.__name__}",)
            name = names[0].rpartition(".")[2] if names else "Exception"
            self._classes[names] = base if is_builtin else type(name, (base,), {})
        cls: Any = self._classes[names]
        arguments = data_codec.decode(args) if args is not None else ((text,) if text else ())
        if issubclass(cls, BaseExceptionGroup):
            error = cls.__new__(cls, text, [Exception()])
        elif issubclass(cls, UnicodeError):  # which reads at the places that its arguments give
            error = cls.__new__(cls)
        else:
            try:
                error = cls(*arguments)
            except Exception:
                error = cls.__new__(cls)
        BaseException.__dict__["args"].__set__(error, arguments)
        for name, node in attributes:
            if type(name) is str and name[:1] != "_" and not hasattr(BaseException, name):
                vars(error)[name] = data_codec.decode(node)
        error.names = frozenset(names)
        error.theirs = Theirs(f"{program_end.KEPT}[{number}]")
        return error


def catches(kind: Any, error: BaseException) -> bool:
    """Return whether `except kind` catches an exception, which may be the program's."""
    if isinstance(kind, tuple):
        return any(catches(each, error) for each in kind)
    if isinstance(kind, Theirs):
        name = kind.source.rpartition(".")[2]
        return any(n.rpartition(".")[2] == name for n in getattr(error, "names", ()))
    if isinstance(error, kind):
        return True
    full = f"{kind.__module__}.{kind.__qualname__}"
    return kind.__module__ != "builtins" and full in getattr(error, "names", ())


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)

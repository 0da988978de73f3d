"""The candidate's end of the conversation with the judge.

It gives the judge access to the candidate's objects, and the candidate access to those that a test passes.
Nothing here is trusted.
"""

import builtins
import importlib
import sys
import types
from typing import Any

from conversation import Conversation
from judge_channel import MessageTooLarge
from scalars import by_name

FRAMES_PER_REQUEST = 40  # that a request of the judge adds to the candidate's stack


class OutputLimit(Exception):
    """A value is too large to be judged."""


class Candidate(Conversation):
    """The end of one test."""

    def __init__(self, namespace: dict) -> None:
        super().__init__(first_id=1)
        self.namespace = namespace

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

    def forward(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        if operation == "getattr" and args[0] in ("__signature__", "__code__"):
            parameters = self.request("parameters", target)
            return _signature(parameters) if args[0] == "__signature__" else _code(parameters)
        return super().forward(operation, target, args, kwargs)

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        if operation == "name":
            [name] = args
            if name in self.namespace:
                return self.namespace[name]
            if hasattr(builtins, name):
                return getattr(builtins, name)
            raise NameError(f"name {name!r} is not defined")
        if operation == "twins":
            found = {name: self.namespace.get(name) for name in args}
            self.twins = {name: value for name, value in found.items() if isinstance(value, type)}
            return None
        return super().perform(operation, target, args, kwargs)

    def find(self, module: str, name: str) -> Any:
        importlib.import_module(module)
        return by_name(module, name)

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        with self._turn:
            try:
                super().send(kind, values, names)
            except MessageTooLarge as error:
                if kind == "q":
                    raise
                super().send("e", (OutputLimit(str(error)),))
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
    """Answer the judge's requests during one test.

    Args:
        namespace: The names that the program has defined.

    """
    Candidate(namespace).serve()

"""Child process that runs the judged tests of a job. The candidate cannot reach it.

A test runs here with the setup. What the candidate's functions return is data, decoded from one table of
exact types (`value_codec.py`), or a handle (`handles.py`). Nothing that the candidate chooses is built,
looked up or called here. It never receives an expected value, and this process decides. With one exception,
which the outcome tells: two objects of the candidate are compared by their class. Such an object is not
compared with data, because its class could say that it is equal, unless the test names a class of the
candidate.
"""

import _thread  # not `threading`: its hook in every fork touches 130 pages that are shared with the zygote
import builtins
import json
import operator
import os
import random
import sys
import time
import types
from contextlib import suppress
from typing import Any, NoReturn

import handles
import value_codec
from conversation import End
from handles import ARITHMETIC, COMPARISONS, DECIDING, HAS_BOOL, HAS_CONTAINS, HAS_DATA, HAS_EQ, is_handle
from permissions import MODULE, global_name, is_permitted, parameters
from wire_format import EVIDENCE_FD, MESSAGE_CHARS

MAIN_THREAD = _thread.get_ident()  # the fork keeps it
RECURSION_LIMIT = 5000  # each call from one process to the other takes several frames
_OPERATORS: dict[str, Any] = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "is": operator.is_, "is not": operator.is_not},
    **{"in": lambda a, b: a in b, "not in": lambda a, b: a not in b},
    "within": lambda a, b, tolerance: abs(a - b) < tolerance,
}


class CandidateError(Exception):
    """StopIteration from a call. As itself it would end a loop of the test: `zip(map(f, xs), wants)`."""


class NotPlainValue(BaseException):
    """A value that the test compares with data is none."""


class Undecided(BaseException):
    """The test does what handles do not support."""


class ErrorClass(type):
    """Class of the classes that stand for exceptions which the test names and the candidate defines."""

    def __call__(cls, *args, **kwargs):
        return handles.end().request("__call__", cls, args, kwargs)

    def __getattr__(cls, name):
        return handles.end().request("getattr", cls, (name,))


def run_judge(job: bytes, max_bytes: int) -> None:
    """Run the judged tests in order, write evidence as each ends, and end the process.

    The job is JSON: {"key": ..., "tests": [{"number", "source", "setup", "remote"}, ...]}. `setup` is source
    to run first, and `remote` lists the names that only the candidate's process has. Evidence is one JSON
    line per test: [key, number, seconds, outcome]. The key shows that the judge wrote the line: a test that
    writes the candidate's text to a file could have been led to the evidence by a link. An outcome is one of

        ["passed"]
        ["passed", reason]                                     passed, but code of the candidate has decided
        ["e", error type, message]                             the test raised
        ["e", "AssertionError", "", text]                      this condition is false
        ["e", "AssertionError", "", operator, left, right]     this comparison is false; perhaps a tolerance
        ["undecided", reason]                                  only the candidate's process can run the test

    Messages per test, between the candidate's process (C) and the judge (J):

        C  ["ready"]
        J  requests, which C answers; while it does so, C may send requests, which J answers
        J  ["next"]
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    parsed = json.loads(job)
    for test in parsed["tests"]:
        judge = Judge()
        if judge.receive()[0] != "ready":
            break
        random.seed(test["source"])  # the candidate knows the seed of its own `random`
        start = time.perf_counter()
        outcome = judge.run(test["source"], test["setup"], test["remote"])
        row = [parsed["key"], test["number"], time.perf_counter() - start, outcome]
        os.write(EVIDENCE_FD, json.dumps(row).encode() + b"\n")
        judge.send("next", ())
    os._exit(0)


class Names(dict):
    """The namespace of a test. A name that only the candidate has is looked up in its process.

    Functions and classes are looked up once, other values each time: the program may assign new ones.
    """

    def __init__(self, judge: "Judge", remote: list[str]) -> None:
        super().__init__(__name__=MODULE, __builtins__=builtins)
        self.update(__compare__=judge.compare, __true__=judge.is_true, __type__=judge.type_of)
        self._judge, self._remote = judge, frozenset(remote)

    def __missing__(self, name: str) -> Any:
        if name in self._judge.errors:
            return self._judge.errors[name]
        if name not in self._remote:
            raise KeyError(name)
        value = self._judge.request("name", None, (name,))
        if is_handle(value):
            handles.set_origin(value, "name")
            self._judge.names_class |= handles.facts(value).kind is type and name[:1].isupper()
        if callable(value):
            self[name] = value
        return value


class Judge(End):
    """The judge's end of the conversation, and one test."""

    may_sweep = True

    def __init__(self) -> None:
        super().__init__(first_id=2)
        self.twins: dict[str, type] = {}  # classes of the setup, by name: both processes have run the setup
        self.errors: dict[str, Any] = {}  # stand-ins for the candidate's exceptions that the test names
        self._derived: dict[tuple, Any] = {}  # stand-ins for those that it does not name
        self.names_class = False  # the test names a class of the candidate, which may then decide
        self._decided_by: dict[str, None] = {}  # code of the candidate that has decided, without duplicates
        self._final: list[str] | None = None  # an outcome that the test cannot change any more
        self._false: list[str] = []  # operator and sides, or the text, of the assert that failed last
        self._answer: Any = object()  # of the method of a value that was called last
        self._expects_stop_iteration = False

    def run(self, source: str, setup: str, remote: list[str]) -> list:
        """Run the test and return its outcome."""
        self._expects_stop_iteration = "StopIteration" in source
        namespace = Names(self, remote)
        error: BaseException | None = None
        try:
            exec(compile(setup, "<setup>", "exec", 0, True), namespace)
            self._start(namespace, [name for name in remote if name[:1].isupper()])
            exec(compile(source, "<test>", "exec", 0, True), namespace)
        except BaseException as raised:
            error = raised
        if self._final:
            return self._final
        if error is None:
            reasons = ", ".join(self._decided_by)[:MESSAGE_CHARS]
            return ["passed", reasons] if reasons else ["passed"]
        name = "StopIteration" if isinstance(error, CandidateError) else type(error).__name__
        if isinstance(error, AssertionError) and not error.args and self._false:
            return ["e", name, "", *self._false]
        return ["e", name, _text(error, str)]

    def _start(self, namespace: dict, capitals: list[str]) -> None:
        """Make stand-ins for the candidate's exceptions, and tell it which classes of the setup exist
        here.
        """
        for name, value in namespace.items():
            if issubclass(type(value), type) and value.__module__ == MODULE and value.__name__ == name:
                self.twins[name] = value
        if self.twins or capitals:
            for name, parents in self.request("start", None, (list(self.twins), capitals)):
                if name in capitals:
                    self.errors[name] = self._make_error(name, parents)

    def _make_error(self, name: str, parents: list) -> Any:
        """Make a stand-in for a class of exceptions from classes of the table and from other stand-ins."""
        bases = tuple(
            self.errors[parent[1:]] if parent[:1] == "=" else value_codec.class_of_name(parent)
            for parent in parents
        )
        if not all(
            issubclass(base, BaseException) and not issubclass(base, BaseExceptionGroup) for base in bases
        ):
            _exit_without_candidate()
        root = () if issubclass(bases[0], handles.RemoteError) else (handles.RemoteError,)
        with suppress(TypeError):  # their layouts do not combine
            return ErrorClass(name, root + bases, {})
        return ErrorClass(name, root + bases[:1], {})

    # What the test's source calls: the plan has put these calls in.

    def compare(self, symbol: str, *sides: Any) -> bool:
        """Return whether a comparison holds; note what it compared if it does not."""
        if _OPERATORS[symbol.removeprefix("~")](*sides):
            return True
        texts = [_text(side, repr) for side in sides]
        self._false = [symbol, *texts]
        return False

    def is_true(self, text: str, value: Any) -> bool:
        """Return the truth of a condition; note its text if it is false."""
        self._false = [] if value else [text]
        if value is self._answer and type(value) is not bool:
            self._mark("a method of a value")
        return not self._false

    def type_of(self, value: Any) -> Any:
        """Return what `type(value)` is in the candidate's process."""
        is_remote = is_handle(value) or isinstance(value, handles.RemoteError)
        return self.request("type", value) if is_remote else type(value)

    # What a test does with a handle.

    def operate(self, operation: str, handle: Any, args: tuple, kwargs: dict) -> Any:
        if not is_handle(handle):  # an exception
            return self.request(operation, handle, args, kwargs)
        found = handles.facts(handle)
        if found.kind in self.twins.values() and operation not in ("__repr__", "__str__", "__format__"):
            method = getattr(found.kind, operation, None)
            if method is not None and method is not getattr(object, operation, None):
                return method(handle, *args, **kwargs)
        if operation in DECIDING:
            return self._decide(operation, handle, args)
        if found.bits & HAS_DATA and not self.names_class and operation in ("__len__", "__iter__"):
            value = self._data(handle)
            return getattr(type(value), operation)(value, *args)
        if operation == "__exit__":
            swallows = self.request(operation, handle, (*args[:2], None))
            # A failed assert cannot be withdrawn.
            return bool(swallows) and not (isinstance(args[0], type) and issubclass(args[0], AssertionError))
        result = self.request(operation, handle, args, kwargs)
        decides = handles.origin(handle) == "method" and (
            args or kwargs or found.name in ("builtin", "method-wrapper")
        )
        if decides and not self.names_class:
            self._answer = result
            if type(result) is bool:
                self._mark("a method of a value")
        return result

    def get_attribute(self, handle: Any, name: str) -> Any:
        # With these an object tells C code what to do, or at which address to read. `__array__` remains,
        # which returns an array.
        if name in ("__buffer__", "_as_parameter_") or (name[:8] == "__array_" and name != "__array__"):
            raise AttributeError(name)
        if not is_handle(handle):
            return self.request("getattr", handle, (name,))
        kind = handles.facts(handle).kind
        for cls in kind.__mro__ if kind in self.twins.values() and name[:2] != "__" else ():
            if name in vars(cls) and hasattr(type(vars(cls)[name]), "__get__"):
                return vars(cls)[name].__get__(handle, kind)
        value = self.request("getattr", handle, (name,))
        if (
            callable(value)
            and not is_handle(value)
            and handles.origin(handle) != "name"
            and not self.names_class
        ):
            self._mark("a method of a value")  # `ascii`, say, in place of a method
        if is_handle(value) and handles.origin(value) != "name":
            handles.set_origin(value, "name" if handles.origin(handle) == "name" else "method")
        return value

    def _decide(self, operation: str, handle: Any, args: tuple) -> Any:
        """Answer an operation that decides, or computes, what the test compares."""
        found = handles.facts(handle)
        other = args[0] if args else None
        is_binary = operation in COMPARISONS | ARITHMETIC
        if operation in ("__eq__", "__ne__") and (other is None or isinstance(other, type)):
            return NotImplemented
        if found.bits & HAS_DATA and (value := self._data(handle, operation)) is not None:
            others = tuple(
                self._data(arg) if is_handle(arg) and handles.facts(arg).bits & HAS_DATA else arg
                for arg in args
            )
            method = bool if operation == "__bool__" else getattr(type(value), operation, None)
            return method(value, *others) if method else NotImplemented
        if operation == "__bool__" and not found.bits & HAS_BOOL:
            if hasattr(type(handle), "__len__"):
                self._mark(f"__len__ of {found.name}")
            return super().operate(operation, handle, args, {})
        if operation == "__contains__" and not found.bits & HAS_CONTAINS:
            return super().operate(operation, handle, args, {})
        with_data = is_binary and not is_handle(other)
        if (not is_binary or with_data) and not self.names_class:
            self._refuse(found.name)
        if (operation not in ARITHMETIC or with_data) and (
            found.bits & HAS_EQ or operation not in ("__eq__", "__ne__")
        ):
            self._mark(f"{operation} of {found.name}")
        return super().operate(operation, handle, args, {})

    def _data(self, handle: Any, operation: str = "") -> Any:
        """Return the data of an object whose class derives from one of data.

        None if the class has this operation of its own, and may have it, because the test names a class.
        """
        value = self.request("data", handle, (operation if self.names_class else "",))
        if value is not None and not value_codec.is_data(value):
            _exit_without_candidate()
        return value

    def _refuse(self, name: str) -> NoReturn:
        message = f"returned {name}, which is not a plain value"
        self._final = self._final or ["e", "NotPlainValue", message]
        raise NotPlainValue(message)

    def _mark(self, reason: str) -> None:
        self._decided_by[f"decided by {reason} of the program"] = None

    def error_to_raise(self, operation: str, error: Any) -> BaseException:
        if not isinstance(error, BaseException):
            _exit_without_candidate()
        ends_a_loop = (
            isinstance(error, StopIteration) and operation != "__next__" and not self._expects_stop_iteration
        )
        return CandidateError(f"StopIteration: {error}") if ends_a_loop else error

    # What the candidate does with an object of the test.

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        number = self.ids.get(id(target))
        if number not in self.lent or not all(type(name) is str for name in kwargs):
            _exit_without_candidate()  # the test has not given this object to the candidate
        if operation == "parameters" and isinstance(target, (types.FunctionType, types.MethodType)):
            return parameters(target)
        if (operation, *args) == ("getattr", "__dict__") and type(target).__module__ == MODULE:
            return {name: value for name, value in vars(target).items() if name[:1] != "_"}
        if not is_permitted(operation, target, args):
            if operation in ("__repr__", "__str__", "__format__"):
                return f"<{type(target).__name__} object>"
            raise AttributeError(f"{type(target).__name__!r} object: {operation} is not available here")
        return super().perform(operation, target, args, kwargs)

    # What crosses beside data.

    def encode_object(self, value: Any) -> list | None:
        if type(value) is ErrorClass:
            return ["x", value.__name__]
        cls = type(value)
        if self.twins.get(cls.__name__) is cls and isinstance(
            getattr(cls, "__members__", None), types.MappingProxyType
        ):
            return ["E", cls.__name__, value.name]
        name = global_name(value)
        return name and ["n", *name]

    def describe(self, value: Any) -> tuple[str, Any, list]:
        if isinstance(value, AssertionError):
            return "e", ["standard", "AssertionError", []], []  # its message may contain an expected value
        return super().describe(value)

    def kind_of(self, value: Any) -> str:
        if isinstance(value, type) and issubclass(value, BaseException):
            return f"error:{next(filter(None, map(value_codec.class_name, value.__mro__)))}"
        return f"setup:{type(value).__name__}" if type(value).__module__ == MODULE else super().kind_of(value)

    def factory(self, value: Any) -> Any:
        if value is not None and not is_handle(value) and value not in value_codec.DATA_CLASSES:
            _exit_without_candidate()
        return value

    def form_of_error(self, cls: type) -> list:
        name = value_codec.class_name(cls)
        return ["standard", name] if name else ["test", self.encode(cls)]

    def decode_special(self, node: list) -> Any:
        match node:
            case ["x", str(name)]:
                return self.errors[name]
            case ["E", str(enum), str(name)]:
                return vars(self.twins[enum])["_member_map_"][name]
        return super().decode_special(node)

    def kind_of_name(self, name: str) -> Any:
        return (
            self.twins[name.removeprefix("setup:")]
            if name.startswith("setup:")
            else super().kind_of_name(name)
        )

    def error_class(self, form: str, name: Any) -> Any:
        match form:
            case "named":
                return self.errors[name]
            case "derived":
                key = tuple(name)
                if key not in self._derived:
                    self._derived[key] = self._make_error("RemoteError", name)
                return self._derived[key]
            case "setup":
                return self.twins[name]
            case "test" if (
                number := self.ids.get(id(cls := self.decode(name)))
            ) in self.lent and number is not None:
                return cls
        return super().error_class(form, name)

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        if _thread.get_ident() != MAIN_THREAD:
            self._final = self._final or ["undecided", "calls the program in a thread"]
        try:
            super().send(kind, values, names)
        except BaseException:
            _exit_without_candidate()

    def receive(self) -> tuple[str, list, list]:
        try:
            kind, values, names = super().receive()
        except BaseException:
            _exit_without_candidate()
        if kind not in ("ready", "v", "e", "q") or len(values) < (2 if kind == "q" else kind in "ve"):
            _exit_without_candidate()
        return kind, values, names


def _text(value: Any, convert: Any) -> str:
    """Return `convert(value)`, truncated, even if it raises."""
    try:
        return convert(value)[:MESSAGE_CHARS]
    except BaseException as worse:
        return f"<{type(worse).__name__} in __{convert.__name__}__>"


def _exit_without_candidate() -> NoReturn:
    """Exit because the candidate's process has ended or sends malformed messages.

    Do not raise instead: a test that expects an exception would catch it and pass. Without evidence the test
    cannot pass.
    """
    os._exit(0)

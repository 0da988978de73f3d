"""Child process that runs the judged tests of a job. The candidate cannot reach it.

A test runs here with the setup. What the candidate's functions return is data, decoded from one table of
exact types (`data_types.py`), or a handle (`handles.py`). Nothing that the candidate chooses is built,
looked up or called here. It never receives an expected value, and this process decides. With one exception,
which the outcome tells: two objects of the candidate are compared by their class. Such an object is not
compared with data, because its class could say that it is equal, unless the test names a class of the
candidate.
"""

import _thread  # not `threading`: its hook in every fork touches 130 pages that are shared with the zygote
import builtins
import collections
import json
import opcode
import operator
import os
import random
import sys
import time
import types
from collections.abc import Iterator
from typing import Any, NoReturn

import data_types
import handles
from conversation import End
from handles import (
    ARITHMETIC,
    COMPARISONS,
    DECIDING,
    HAS_BOOL,
    HAS_CONTAINS,
    HAS_DATA,
    HAS_EQ,
    IS_NAMED,
    is_handle,
)
from permissions import MODULE, global_name, is_permitted, parameters
from wire_format import EVIDENCE_FD, MESSAGE_CHARS

MAIN_THREAD = _thread.get_ident()  # the fork keeps it
RECURSION_LIMIT = 5000  # each call from one process to the other takes several frames
_OPERATORS: dict[str, Any] = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "is": operator.is_, "is not": operator.is_not},
    **{"in": lambda a, b: a in b, "not in": lambda a, b: a not in b},
    "within": lambda a, b, tolerance, absolute: absolute(a - b) < tolerance,
}
# Methods of data. A test that calls one, as in `f(3).isdigit()`, expects that its object is data.
_PLAIN_METHODS = frozenset().union(*map(dir, (str, bytes, float, list, dict, set)))
_METHODS = (types.FunctionType, property, classmethod, staticmethod)
_RAISE = opcode.opmap["RAISE_VARARGS"]
_SHOWING = ("__repr__", "__str__", "__format__")


class CandidateError(Exception):
    """StopIteration from a call. As itself it would end a loop of the test: `zip(map(f, xs), wants)`."""


class NotPlainValue(BaseException):
    """A value that the test compares with data is none."""


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

        C  ["ready", names of builtins that the program has given to something else]
        J  requests, which C answers; while it does so, C may send requests, which J answers
        J  ["next"]
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    parsed = json.loads(job)
    for test in parsed["tests"]:
        judge = Judge()
        kind, [own, *_], _ = judge.receive()
        if kind != "ready" or type(own) is not list:
            break
        random.seed(test["source"])  # the candidate knows the seed of its own `random`
        start = time.perf_counter()
        outcome = judge.run(test["source"], test["setup"], test["remote"], own)
        row = [parsed["key"], test["number"], time.perf_counter() - start, outcome]
        os.write(EVIDENCE_FD, json.dumps(row).encode() + b"\n")
        judge.send("next", ())
    os._exit(0)


class Names(dict):
    """The builtins of a test. A name that only the candidate has is looked up in its process.

    Functions and classes are looked up once, other values each time: the program may assign new ones.
    """

    def __init__(self, judge: "Judge", remote: list[str], own: list) -> None:
        super().__init__(vars(builtins))
        self._judge = judge
        self.own = {
            name for name in own if type(name) is str and name in self and name[:1] != "_"
        }.difference(remote)
        self._remote = self.own.union(remote)
        for name in self._remote & self.keys():
            del self[name]

    def __missing__(self, name: str) -> Any:
        if name not in self._remote:
            raise KeyError(name)
        if name in self.own:
            self._judge.mark(name)
        value = self._judge.request("name", None, (name,))
        if is_handle(value):
            handles.facts(value).origin = "name"
        if callable(value):
            self[name] = value
        return value


class Judge(End):
    """The judge's end of the conversation, and one test."""

    def __init__(self) -> None:
        super().__init__(first_id=2)
        self._decided_by: dict[str, None] = {}  # code of the candidate that has decided, without duplicates
        self._final: list[str] | None = None  # an outcome that the test cannot change any more
        self._false: list[str] = []  # operator and sides, or the text, of the assert that failed last
        self._answer: Any = object()  # of the method of a value that was called last
        self._caught: dict[int, Any] = {}  # errors of functions of the test that the candidate has not raised
        self._expects_stop_iteration = False

    def run(self, source: str, setup: str, remote: list[str], own: list) -> list:
        """Run the test and return its outcome."""
        self._expects_stop_iteration = "StopIteration" in source
        names = Names(self, remote, own)
        namespace: dict[str, Any] = {"__name__": MODULE, "__builtins__": names}
        if "type" in names.own and "__type__" in source:
            self.mark("type")
        namespace.update(__compare__=self.compare, __true__=self.is_true, __type__=self.type_of)
        error: BaseException | None = None
        try:
            exec(compile(setup, "<setup>", "exec", 0, True), namespace)
            for name, value in namespace.items():
                if issubclass(type(value), type) and value.__module__ == MODULE and value.__name__ == name:
                    self.setup_classes[name] = value
            # Classes of the candidate that the test names may decide.
            if (capitals := [name for name in remote if name[:1].isupper()]) or self.setup_classes:
                self.request("start", None, (list(self.setup_classes), capitals))
            exec(compile(source, "<test>", "exec", 0, True), namespace)
        except BaseException as raised:
            error = raised
        if self._final:
            return self._final
        if self._caught:
            self.mark("an error of the test that it caught")
        if error is None:
            reasons = ", ".join(self._decided_by)[:MESSAGE_CHARS]
            return ["passed", reasons] if reasons else ["passed"]
        name = "StopIteration" if isinstance(error, CandidateError) else type(error).__name__
        if isinstance(error, AssertionError) and not error.args and self._false:
            return ["e", name, "", *self._false]
        return ["e", name, _text(error, str)]

    # What the test's source calls: the plan has put these calls in.

    def compare(self, symbol: str, *sides: Any) -> bool:
        """Return whether a comparison holds; note what it compared if it does not."""
        if _OPERATORS[symbol.removeprefix("~")](*sides):
            return True
        self._false = [symbol, *[_text(side, repr) for side in sides[:3]]]
        return False

    def is_true(self, text: str, value: Any) -> bool:
        """Return the truth of a condition; note its text if it is false."""
        self._false = [] if value else [text]
        if value is self._answer and type(value) is not bool:
            self.mark("a method of a value")
        return not self._false

    def type_of(self, value: Any) -> Any:
        """Return what `type(value)` is in the candidate's process."""
        is_remote = is_handle(value) or isinstance(value, handles.RemoteError)
        return self.request("type", value) if is_remote else type(value)

    # What a test does with a handle.

    def operate(self, operation: str, handle: Any, args: tuple, kwargs: dict) -> Any:
        if not is_handle(handle):  # an exception
            return self.request(operation, handle, args, kwargs)
        if operation not in _SHOWING and (method := self._method_of_setup(handle, operation)) is not None:
            return method(*args, **kwargs)
        found = handles.facts(handle)
        if operation in DECIDING:
            return self._decide(operation, handle, args)
        if found.bits & HAS_DATA and not found.bits & IS_NAMED and operation in ("__len__", "__iter__"):
            value = self._data(handle)
            return getattr(type(value), operation)(value, *args)
        if operation == "__exit__":
            if swallows := self.request(operation, handle, (*args[:2], None)) and args[0] is not None:
                if not found.bits & IS_NAMED:
                    self.mark(f"__exit__ of {found.name}")
                return not issubclass(args[0], AssertionError)  # a failed assert cannot be withdrawn
            return swallows
        is_keyed = operation == "__getitem__" and not found.bits & IS_NAMED and not _is_index(*args)
        if is_keyed and found.bits & HAS_DATA:
            value = self._data(handle, operation)
            if isinstance(value, (dict, collections.UserDict)) and args[0] in value:
                return value[args[0]]
        if is_keyed:  # the key may be what the test expects
            self.mark(f"__getitem__ of {found.name}")
        result = self.request(operation, handle, args, kwargs)
        if not found.bits & IS_NAMED:
            self._note_answer(operation, found, args or tuple(kwargs.values()), result)
        return result

    def _note_answer(self, operation: str, found: handles.Facts, arguments: tuple, result: Any) -> None:
        """Mark the test if this answer of an object that a function returned decides it."""
        method = found.origin.partition(".")[2]
        is_plain = method in _PLAIN_METHODS
        if method and (arguments or is_plain):
            self._answer = result
            if type(result) is bool or (arguments and is_plain and result is not None):
                self.mark(f"the method {method} of a value")
        if operation == "__iter__" and found.length is not None:
            self.mark(f"__len__ and __iter__ of {found.name}")  # a loop over nothing asserts nothing
        if operation == "__len__":
            if found.length not in (None, result):
                self.mark(f"__len__ of {found.name}")
            found.length = result

    def get_attribute(self, handle: Any, name: str) -> Any:
        # With these an object tells C code what to do, or at which address to read. `__array__` remains,
        # which returns an array.
        if name in ("__buffer__", "_as_parameter_") or (name[:8] == "__array_" and name != "__array__"):
            raise AttributeError(name)
        is_error = not is_handle(handle)
        if not is_error and name[:2] != "__" and (method := self._method_of_setup(handle, name)) is not None:
            return method
        value = self.request("getattr", handle, (name,))
        found = handles.Facts(0, None, "", None) if is_error else handles.facts(handle)
        is_named = found.origin == "name"
        if is_handle(value):
            if handles.facts(value).origin != "name":
                # A method of an instance of a class that the test names is that class's affair.
                is_own = found.bits & IS_NAMED
                handles.facts(value).origin = "name" if is_named else "" if is_own else f".{name}"
        elif callable(value) and not is_named and not found.bits & IS_NAMED:
            self.mark("a method of a value")  # `ascii`, say, in place of a method
        return value

    def _method_of_setup(self, handle: Any, name: str) -> Any:
        """Return the method or property of a class of the setup, which is the judge's own, or None."""
        kind: Any = handles.facts(handle).kind
        if kind in self.setup_classes.values():
            for cls in kind.__mro__[:-1]:
                if isinstance(method := vars(cls).get(name), _METHODS):
                    return method.__get__(handle, kind)
        return None

    def _decide(self, operation: str, handle: Any, args: tuple) -> Any:
        """Answer an operation that decides, or computes, what the test compares."""
        found = handles.facts(handle)
        other = args[0] if args else None
        if operation in ("__eq__", "__ne__") and (other is None or isinstance(other, type)):
            return NotImplemented
        if found.bits & HAS_DATA and (value := self._data(handle, operation)) is not None:
            others = [
                self._data(arg) if is_handle(arg) and handles.facts(arg).bits & HAS_DATA else arg
                for arg in args
            ]
            method = bool if operation == "__bool__" else getattr(type(value), operation, None)
            if method is None and (operation == "__contains__" or not args):
                raise TypeError(f"{found.name!r} object has no {operation}")
            return method(value, *others) if method else NotImplemented
        if operation in ("__eq__", "__ne__") and not found.bits & HAS_EQ:
            return NotImplemented
        if operation == "__bool__" and not found.bits & HAS_BOOL:
            return True
        if operation == "__contains__" and not found.bits & HAS_CONTAINS:
            return any(item is other or item == other for item in handle)
        with_handle = operation in COMPARISONS | ARITHMETIC and is_handle(other)
        if not with_handle and not found.bits & IS_NAMED:
            message = f"returned {found.name}, which is not a plain value"
            self._final = self._final or ["e", "NotPlainValue", message]
            raise NotPlainValue(message)
        if not with_handle or operation not in ARITHMETIC:
            self.mark(f"{operation} of {found.name}")
        return self.request(operation, handle, args)

    def _data(self, handle: Any, operation: str = "") -> Any:
        """Return the data of an object whose class derives from one of data.

        None if the class has this operation of its own, and may have it.
        """
        may_have_own = handles.facts(handle).bits & IS_NAMED or operation == "__getitem__"
        value = self.request("data", handle, (operation if may_have_own else "",))
        if value is not None and not data_types.is_data(value):
            _exit_without_candidate()
        return value

    def mark(self, reason: str) -> None:
        """Note that code of the candidate has decided."""
        self._decided_by[f"decided by {reason} of the program"] = None

    def error_to_raise(self, operation: str, error: Any) -> BaseException:
        if not issubclass(type(error), BaseException):
            _exit_without_candidate()
        if operation in ("__call__", "__next__"):
            for raised in _chain(error):
                self._caught.pop(id(raised), None)
        ends_a_loop = (
            isinstance(error, StopIteration) and operation != "__next__" and not self._expects_stop_iteration
        )
        return CandidateError(f"StopIteration: {error}") if ends_a_loop else error

    # What the candidate does with an object of the test.

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        if self.ids.get(id(target)) not in self.lent or not all(type(name) is str for name in kwargs):
            _exit_without_candidate()  # the test has not given this object to the candidate
        if operation == "parameters" and isinstance(target, (types.FunctionType, types.MethodType)):
            return parameters(target)
        if (operation, *args) == ("getattr", "__dict__") and type(target).__module__ == MODULE:
            return {name: value for name, value in vars(target).items() if name[:1] != "_"}
        if not is_permitted(operation, target, args):
            if operation in _SHOWING:
                return f"<{type(target).__name__} object>"
            raise AttributeError(f"{type(target).__name__!r} object: {operation} is not available here")
        try:
            return super().perform(operation, target, args, kwargs)
        except BaseException as error:
            if operation == "__call__" and _is_unforeseen(error):
                self._caught[id(error)] = error
            raise

    # What crosses beside data.

    def encode_by_name(self, value: Any) -> list | None:
        if (node := super().encode_by_name(value)) is None and (name := global_name(value)):
            return ["global", *name]
        return node

    def describe(self, value: Any) -> tuple[str, Any, tuple]:
        if isinstance(value, AssertionError):
            return "error", [], (AssertionError,)  # its message may contain an expected value
        return super().describe(value)

    def factory(self, value: Any) -> Any:
        if value is not None and not is_handle(value) and value not in data_types.DATA_CLASSES:
            _exit_without_candidate()
        return value

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
        if kind not in ("ready", "v", "e", "q") or len(values) < 1 + (kind == "q"):
            _exit_without_candidate()
        return kind, values, names


def _text(value: Any, convert: Any) -> str:
    """Return `convert(value)`, truncated, even if it raises."""
    try:
        return convert(value)[:MESSAGE_CHARS]
    except BaseException as worse:
        return f"<{type(worse).__name__} in __{convert.__name__}__>"


def _chain(error: Any) -> Iterator[Any]:
    """Yield an exception, its causes, and the members of groups among them."""
    while error is not None:
        yield error
        for member in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _chain(member)
        error = BaseException.__dict__["__cause__"].__get__(error)


def _is_index(key: Any) -> bool:
    """Return whether a key is a number or a class, as in `x[1:2]` and `List[int]`."""
    parts = key if type(key) is tuple else (key,)
    return all(type(part) in (int, slice, type) for part in parts)


def _is_unforeseen(error: BaseException) -> bool:
    """Return whether this is a failed assert, or an error that no `raise` of test or setup has raised."""
    trace: Any = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    has_raised = code.co_filename in ("<test>", "<setup>") and code.co_code[trace.tb_lasti] == _RAISE
    return isinstance(error, AssertionError) or not has_raised


def _exit_without_candidate() -> NoReturn:
    """Exit because the candidate's process has ended or sends malformed messages.

    Do not raise instead: a test that expects an exception would catch it and pass. Without evidence the test
    cannot pass.
    """
    os._exit(0)

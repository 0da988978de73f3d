"""Child process that runs the judged tests of a job. The candidate cannot reach it.

A test runs here with the setup. The candidate's functions, classes and objects stay in its process; here they
are proxies (`conversation.py`). So the candidate never receives an expected value, and this process decides.
With one exception, which the outcome tells: two objects of the candidate are compared by their class. A
comparison of such an object with a plain value ends the test, because its class could say that it is equal.
"""

import _thread  # not `threading`: its hook in every fork touches 130 pages that are shared with the zygote
import json
import os
import sys
import time
import types
from typing import Any, NoReturn

import scalars
import shared_names
from containers import plain_base
from conversation import Conversation
from operations import ARITHMETIC, DECIDING_OPERATIONS, ITERATION
from permissions import MODULE, is_permitted, parameters
from remote_classes import RemoteObject, RemoteType
from remote_names import RemoteNames
from wire_format import EVIDENCE_FD, MESSAGE_CHARS

MAIN_THREAD = _thread.get_ident()  # the fork keeps it
RECURSION_LIMIT = 5000  # each call from one process to the other takes several frames


class CandidateError(Exception):
    """StopIteration from a call. As itself it would end a loop of the test: `zip(map(f, xs), wants)`."""


class NotPlainValue(BaseException):
    """A value that the test compares with a plain value is none."""


class Undecided(BaseException):
    """The test does what proxies do not support."""


def run_judge(job: bytes, max_bytes: int) -> None:
    """Run the judged tests in order, write evidence as each ends, and end the process.

    The job is a JSON list of {"number", "source", "setup", "remote"}, one per test: `setup` is source to run
    first, and `remote` lists the names that only the candidate's process has. Evidence is one JSON line per
    test: [number, seconds, outcome]. An outcome is one of

        ["passed"]
        ["passed", reason]           passed, but code of the candidate has decided; the reason says which
        ["e", error type, message]
        ["undecided", reason]        the test does what can be done in the candidate's process only

    Messages per test, between the candidate's process (C) and the judge (J):

        C  ["ready"]
        J  requests, which C answers; while it does so, C may send requests, which J answers
        J  ["next"]
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    for test in json.loads(job):
        judge = Judge()
        if judge.receive()[0] != "ready":
            break
        start = time.perf_counter()
        outcome = judge.run(test["source"], test["setup"], test["remote"])
        row = [test["number"], time.perf_counter() - start, outcome]
        os.write(EVIDENCE_FD, json.dumps(row).encode() + b"\n")
        judge.send("next", ())
    os._exit(0)


class Judge(Conversation):
    """The judge's end of the conversation, and one test."""

    may_sweep = True

    def __init__(self) -> None:
        super().__init__(first_id=2)
        self.named: list[type] = []  # the candidate's classes that the test names
        self.decided_by: dict[str, None] = {}  # code of the candidate that has decided, without duplicates
        self.end: list[str] | None = None  # an outcome that the test cannot change any more
        self.expects_stop_iteration = False

    def run(self, source: str, setup: str, remote: list[str]) -> list:
        """Run the test and return its outcome."""
        self.expects_stop_iteration = "StopIteration" in source
        namespace = RemoteNames(remote, self.resolve)
        error: BaseException | None = None
        try:
            exec(compile(setup, "<setup>", "exec", 0, True), namespace)
            self._share_twins(namespace)
            exec(compile(source, "<test>", "exec", 0, True), namespace)
        except BaseException as raised:
            error = raised
        if self.end:
            return self.end
        if error is not None:
            return ["e", *_describe(error)]
        return ["passed", ", ".join(self.decided_by)[:MESSAGE_CHARS]] if self.decided_by else ["passed"]

    def _share_twins(self, namespace: dict) -> None:
        """Tell the candidate's process which classes of the setup exist here too."""
        for name, value in namespace.items():
            if isinstance(value, type) and value.__module__ == MODULE and value.__name__ == name:
                self.twins[name] = value
        if self.twins:
            self.request("twins", None, tuple(self.twins))

    def resolve(self, name: str) -> Any:
        """Return the candidate's object of this name."""
        value = self.request("name", None, (name,))
        if isinstance(value, RemoteType) and name[:1].isupper():
            self.named.append(value)
        return value

    def forward(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        if operation in DECIDING_OPERATIONS:
            if operation in ("__eq__", "__ne__") and args[0] is None:
                return NotImplemented
            cls = target if isinstance(target, RemoteType) else type(target)
            # An object may decide alone if the test names its class. An object that a function has returned
            # may not: it would pass `assert f(3) == 6`.
            if not any(base is named for base in cls.__mro__ for named in self.named):
                if cls is not target and (base := plain_base(cls)) is not None:
                    method = getattr(base, operation, None)
                    return method(target, *args) if method else NotImplemented
                if operation != "__hash__" and (not args or _is_plain(args[0])):
                    self._refuse(target)
            if operation not in ARITHMETIC or _is_plain(args[0]):
                self._mark(f"{operation} of {cls.__name__}")
        return self.request(operation, target, args, kwargs)

    def compare_identity(self, proxy: Any, other: Any) -> Any:
        if other is None or isinstance(other, type) or not _is_plain(other):
            return NotImplemented
        self._refuse(proxy)

    def truth_of_length(self, proxy: Any) -> bool:
        self._mark(f"__len__ of {type(proxy).__name__}")
        return len(proxy) != 0

    def cannot(self, action: str) -> NoReturn:
        self.end = self.end or ["undecided", action]
        raise Undecided(action)

    def returned(self, operation: str, error: Any) -> BaseException:
        if not isinstance(error, BaseException):
            _exit_without_candidate()
        ends_a_loop = isinstance(error, StopIteration) and operation not in ITERATION
        if ends_a_loop and not self.expects_stop_iteration:
            return CandidateError(f"StopIteration: {error}")
        return error

    def _refuse(self, proxy: Any) -> NoReturn:
        message = f"returned {type(proxy).__name__}, which is not a plain value"
        self.end = self.end or ["e", "NotPlainValue", message]
        raise NotPlainValue(message)

    def _mark(self, reason: str) -> None:
        self.decided_by[f"decided by {reason} of the program"] = None

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        if isinstance(target, (RemoteObject, RemoteType)) or not all(type(name) is str for name in kwargs):
            _exit_without_candidate()
        number = self.ids.get(id(target))
        if number is None or number % 2 != self._parity or self.objects.get(number) is not target:
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

    def name_of(self, value: Any) -> tuple[str, str] | None:
        return scalars.global_name(value)

    def find(self, module: str, name: str) -> Any:
        value = shared_names.find(module, name)
        if value is None:
            raise ValueError(f"{module}.{name} may not be used")
        return value

    def describe_exception(self, error: BaseException) -> tuple[tuple, dict[str, Any]]:
        if isinstance(error, AssertionError):
            return (), {}  # its message may contain an expected value
        return super().describe_exception(error)

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        if _thread.get_ident() != MAIN_THREAD:
            self.end = self.end or ["undecided", "calls the program in a thread"]
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


def _is_plain(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, bool)
        or plain_base(type(value)) is not None
        or (scalars.encode(value) is not None)
    )


def _describe(error: BaseException) -> tuple[str, str]:
    name = type(error).__name__
    if isinstance(error, CandidateError):
        name = "StopIteration"
    try:
        text = str(error)[:MESSAGE_CHARS]
    except BaseException as worse:
        text = f"<{type(worse).__name__} in __str__>"
    return name, text


def _exit_without_candidate() -> NoReturn:
    """Exit because the candidate's process has ended or sends malformed messages.

    Do not raise instead: a test that expects an exception would catch it and pass. Without evidence the test
    cannot pass.
    """
    os._exit(0)

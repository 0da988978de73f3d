"""Child process that runs the judged tests of a job. The candidate cannot reach it.

In a test, each function of the candidate is replaced by a stub. A call of the stub sends the arguments to the
candidate's process by value and decodes the result that comes back. So the candidate never receives an
expected value, and a test compares plain values only. If the candidate changes a list, dict or set argument
in place, the stub changes the test's object in the same way.
"""

import builtins
import json
import os
import time
from typing import Any, NoReturn

import value_codec
from judge_channel import receive, send
from wire_format import EVIDENCE_FD, MESSAGE_CHARS


class CandidateError(Exception):
    """An exception of the candidate that `_exception` does not rebuild as a builtin exception."""


def run_judge(job: bytes, max_bytes: int) -> None:
    """Run the judged tests in order, write evidence as each ends, and end the process.

    The job is a JSON list of {"number", "source", "imports", "remote"}, one per test; `remote` lists the
    names that become stubs. Evidence is one JSON line per test: [number, seconds, outcome], where the outcome
    is ["passed"] or ["e", error type, message].

    Messages per test, between the candidate's process (C) and the judge (J). The judge may send any number of
    calls, and the candidate's process answers each of them:

        C  ["ready"]
        J  ["call", name, args, kwargs]
        C  ["v", result, [[index of a changed argument, its new value], ...]]  or  ["e", error type, message]
        J  ["next"]
    """
    for test in json.loads(job):
        if _receive() != ["ready"]:
            break
        start = time.perf_counter()
        outcome = _run_test(test)
        _report([test["number"], time.perf_counter() - start, outcome])
        _send(["next"])
    os._exit(0)


def _run_test(test: dict) -> list:
    """Run one test and return its outcome."""
    namespace: dict = {"__name__": "test", **{name: _stub(name) for name in test["remote"]}}
    try:
        exec(test["imports"], namespace)
        exec(compile(test["source"], "<test>", "exec", 0, True), namespace)
    except BaseException as error:
        name = error.args[0] if isinstance(error, CandidateError) else type(error).__name__
        return ["e", name, str(error.args[-1] if error.args else "")[:MESSAGE_CHARS]]
    return ["passed"]


def _stub(name: str):
    """Return a function that calls the candidate's function of this name in its own process."""

    def call(*args: object, **kwargs: object) -> object:
        encoded_kwargs = {key: value_codec.encode(value) for key, value in kwargs.items()}
        _send(["call", name, [value_codec.encode(value) for value in args], encoded_kwargs])
        kind, *rest = _receive()
        if kind != "v":
            raise _exception(*map(str, rest))
        result, changes = rest
        for index, encoded in changes:
            _change_in_place(args[index], value_codec.decode(encoded))
        return value_codec.decode(result)

    call.__name__ = name
    return call


def _send(message: list) -> None:
    try:
        send(json.dumps(message))
    except OSError:
        _exit_without_candidate()


def _receive() -> list:
    try:
        return json.loads(receive())
    except (OSError, EOFError, ValueError, RecursionError):
        _exit_without_candidate()


def _exit_without_candidate() -> NoReturn:
    """Exit because the candidate's process has ended or sends malformed messages.

    Do not raise instead: a test that expects an exception would catch it and pass. Without evidence the test
    cannot pass.
    """
    os._exit(0)


def _exception(type_name: str, message: str) -> Exception:
    """Return the builtin exception of this name, or a CandidateError."""
    kind = getattr(builtins, type_name, None)
    if (
        isinstance(kind, type)
        and issubclass(kind, Exception)
        # Most subclasses of UnicodeError cannot be built from a message alone. OSError and EOFError become a
        # CandidateError too, so `except OSError` in a test does not catch them.
        and not issubclass(kind, (OSError, EOFError, UnicodeError))
    ):
        return kind(message)
    return CandidateError(type_name, message)


def _change_in_place(old: Any, new: Any) -> None:
    if type(old) is not type(new):
        return
    if isinstance(old, list):
        old[:] = new
    elif isinstance(old, (dict, set)):
        old.clear()
        old.update(new)


def _report(row: list) -> None:
    os.write(EVIDENCE_FD, json.dumps(row).encode() + b"\n")

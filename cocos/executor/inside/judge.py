"""The child that runs the tests of several statements, in a process that the candidate cannot reach. Never
returns.

A name that the test takes from the candidate is a stub here: its arguments go to the candidate's process by
value, its result comes back through the strict codec. A list, dict or set that the candidate changed in place
is changed here too.
"""

import builtins
import json
import os
import time
from typing import Any

import codec
from candidate import EVIDENCE_FD, MESSAGE_CHARS
from peer import receive, send


class CandidateError(Exception):
    """An exception of a kind that only the candidate knows."""


def run_judge(job: bytes, cap: int) -> None:
    """Run the judged tests in order, write [number, seconds, outcome] as each ends, and end the process."""
    tests = json.loads(job)
    for test in tests:
        if _ask(None) != ["ready"]:
            break
        started = time.perf_counter()
        outcome = _judge(test)
        _say([test["number"], time.perf_counter() - started, outcome])
        _tell(["next"])
    os._exit(0)


def _judge(test: dict) -> list:
    space: dict = {"__name__": "test", **{name: _stub(name) for name in test["remote"]}}
    try:
        exec(test["imports"], space)
        exec(compile(test["source"], "<test>", "exec", 0, True), space)
    except BaseException as error:
        name = error.args[0] if isinstance(error, CandidateError) else type(error).__name__
        return ["e", name, str(error.args[-1] if error.args else "")[:MESSAGE_CHARS]]
    return ["passed"]


def _stub(name: str):
    def call(*args: object, **kwargs: object) -> object:
        packed = {key: codec.encode(value) for key, value in kwargs.items()}
        kind, *rest = _ask(["call", name, [codec.encode(value) for value in args], packed])
        if kind != "v":
            raise _exception(*map(str, rest))
        value, changes = rest
        for number, node in changes:
            _replace(args[number], codec.decode(node))
        return codec.decode(value)

    call.__name__ = name
    return call


def _tell(message: list) -> None:
    try:
        send(json.dumps(message))
    except OSError:
        os._exit(0)  # the candidate has gone: not for the test to catch, and no evidence


def _ask(message: list | None) -> list:
    if message:
        _tell(message)
    try:
        return json.loads(receive())
    except (OSError, EOFError, ValueError, RecursionError):
        os._exit(0)


def _exception(type_name: str, message: str) -> Exception:
    kind = getattr(builtins, type_name, None)
    if (
        isinstance(kind, type)
        and issubclass(kind, Exception)
        and not issubclass(kind, (OSError, EOFError, UnicodeError))
    ):
        return kind(message)
    return CandidateError(type_name, message)


def _replace(old: Any, new: Any) -> None:
    if type(old) is not type(new):
        return
    if isinstance(old, list):
        old[:] = new
    elif isinstance(old, (dict, set)):
        old.clear()
        old.update(new)


def _say(row: object) -> None:
    os.write(EVIDENCE_FD, json.dumps(row).encode() + b"\n")

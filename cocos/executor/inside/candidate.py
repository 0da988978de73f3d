"""The child that runs one candidate: code, setup, then what each test needs of it. Ends the process; never returns.

What the candidate could replace is bound to local names before its code runs. That is courtesy, not security: the candidate owns
this process and may write what it likes to the evidence file, so nothing here knows what a right answer is.
"""

import gc
import importlib
import json
import os
import random
import resource
import sys
import time
import types

import codec

# What candidates import most: loaded once, here, and shared with every child by fork.
COMMON_MODULES = (
    "array bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator re statistics "
    "string textwrap typing"
)
for name in COMMON_MODULES.split():
    importlib.import_module(name)

EVIDENCE_FD, PEER_FD = 3, 4
MESSAGE_CHARS = 300


def run_candidate(job: bytes, cap: int) -> None:
    """Run one job, write at most `cap` bytes of evidence, and end the process.

    The job is {"code", "setup", "tests"}; a test is {"atoms": [source]}, {"source": source} for one that runs here, or {} for one
    that the judge runs. Evidence is JSON lines: "loaded" or ["program", error], then per test [number, seconds, outcome].
    """
    spec = json.loads(job)
    say = _reporter(cap, os.write)
    clock, end, spare, describe, catch = (
        time.perf_counter,
        os._exit,
        _use_spare_memory,
        _describe,
        BaseException,
    )
    runners = {"atoms": _atoms_runner(), "source": _source_runner(), "judge": _judge_runner()}
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    space = module.__dict__
    run, make = exec, compile
    gc.enable()
    random.seed(0)  # a verdict must not depend on luck
    try:
        for part in ("code", "setup"):
            if spec[part]:
                run(make(spec[part], f"<{part}>", "exec", 0, True), space)
    except catch as error:
        spare()
        say(["program", *describe(error)])
        end(0)
    say("loaded")
    for index, test in enumerate(spec["tests"]):
        [(kind, content)] = test.items()
        started = clock()
        try:
            outcome = runners[kind](content, space)
        except catch as error:
            spare()
            outcome = ["e", *describe(error)]
        say([index, clock() - started, outcome])
    end(0)


def _atoms_runner():
    """Evaluates each atom to ["v", encoded value] or ["e", error type, message]."""
    encode, evaluate, make, describe, catch = codec.encode, eval, compile, _describe, BaseException

    def run(atoms: list[str], space: dict) -> list:
        outcomes = []
        for atom in atoms:
            try:
                outcomes.append(["v", encode(evaluate(make(atom, "<test>", "eval", 0, True), space))])
            except catch as error:
                outcomes.append(["e", *describe(error)])
        return outcomes

    return run


def _source_runner():
    run, make = exec, compile

    def run_source(source: str, space: dict) -> list:
        run(make(source, "<test>", "exec", 0, True), space)
        return ["passed"]

    return run_source


def _judge_runner():
    """Serves the judge's calls until it says that its test is over."""
    encode, decode, describe, catch = codec.encode, codec.decode, _describe, BaseException
    dumps, loads, hear, speak = json.dumps, json.loads, receive, send

    def call(space: dict, name: str, args: list, kwargs: dict) -> list:
        try:
            values = [decode(arg) for arg in args]
            function = space[name] if name in space else NameError
            if function is NameError:
                raise NameError(f"name {name!r} is not defined")
            result = encode(function(*values, **{key: decode(value) for key, value in kwargs.items()}))
            after = [encode(value) for value in values]
            return [
                "v",
                result,
                [[i, new] for i, (old, new) in enumerate(zip(args, after, strict=True)) if old != new],
            ]
        except catch as error:
            return ["e", *describe(error)]

    def serve(_: object, space: dict) -> list:
        speak(dumps(["ready"]))
        while (request := loads(hear()))[0] != "next":
            speak(dumps(call(space, *request[1:])))
        return []

    return serve


def send(text: str) -> None:
    """Write one message, with its length before it, to the process at the other end of PEER_FD."""
    data = text.encode()
    view = memoryview(len(data).to_bytes(4, "big") + data)
    while view:
        view = view[os.write(PEER_FD, view) :]


def receive() -> bytes:
    """Read one message; EOFError where the other end has gone."""
    return _read(int.from_bytes(_read(4), "big"))


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(PEER_FD, min(size, 1 << 16))
        if not part:
            raise EOFError("the other end has gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _reporter(cap: int, write):
    dumps, left = json.dumps, cap - 1000

    def say(row: object) -> None:
        nonlocal left
        data = dumps(row).encode() + b"\n"
        if len(data) > left:
            data = (
                dumps([row[0], 0.0, ["e", "OutputLimit", "more than output_kb came back"]]).encode() + b"\n"
            )
        left -= len(data)
        while data:
            data = data[write(EVIDENCE_FD, data) :]

    return say


def _describe(error: BaseException) -> tuple[str, str]:
    """Class name and text of an exception, whatever its __str__ does."""
    try:
        text = str(error)[:MESSAGE_CHARS]
    except BaseException as worse:
        text = f"<{type(worse).__name__} in __str__>"
    return str(type(error).__name__), str(text)


def _use_spare_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

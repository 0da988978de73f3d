"""The child that runs one candidate: code, setup, then what each test needs of it. Ends the process; never
returns.

What the candidate could replace is bound to names of ours before its code runs. That is courtesy, not
security: the candidate owns this process and may write what it likes to the evidence file, so nothing here
knows what a right answer is. Whatever can be made before the fork is made at import, in the zygote: a page
that a child need not touch is a page not copied.
"""

import gc
import importlib
import json
import marshal
import os
import resource
import sys
import time
import types

import codec
import peer

# What candidates import most: loaded once, here, and shared with every child by fork.
COMMON_MODULES = (
    "array bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator "
    "re statistics string textwrap typing"
)
EVIDENCE_FD = 3  # as in zygote.py
MESSAGE_CHARS = 300

_fork = os.fork
del os.fork  # or `random` would reseed itself in every child: a verdict must not depend on luck
import random  # noqa: E402

os.fork = _fork
for _name in COMMON_MODULES.split():
    importlib.import_module(_name)
random.seed(0)


def run_candidate(job: bytes, cap: int) -> None:
    """Run one job, write at most `cap` bytes of evidence, and end the process.

    The job is (code, setup, tests); a test is ("atoms", source of a tuple of functions, their number),
    ("source", source) for one that runs here, or ("judge",) for one that the judge runs. Evidence is JSON
    lines: "loaded" or ["program", error type, message], then per test [number, seconds, outcome].
    """
    _run(*marshal.loads(job), cap, _SPACE)


def _bind_everything():
    """Make `_run`, whose tools are variables of its own: assigning to a module does not rebind them."""
    clock, end, write, dumps = time.perf_counter, os._exit, os.write, json.JSONEncoder().encode
    execute, make, evaluate, catch, loads = exec, compile, eval, BaseException, json.loads
    encode, decode, hear, speak, enable = codec.encode, codec.decode, peer.receive, peer.send, gc.enable
    describe, spare, as_list, number_of = _describe, _use_spare_memory, list, len

    def run(code: str, setup: str, tests: tuple, cap: int, space: dict) -> None:
        left = cap - 1000

        def say(row) -> None:
            nonlocal left
            data = dumps(row).encode() + b"\n"
            if number_of(data) > left:
                data = (
                    dumps([row[0], 0.0, ["e", "OutputLimit", "more than output_kb came back"]]).encode()
                    + b"\n"
                )
            left -= number_of(data)
            while data:
                data = data[write(EVIDENCE_FD, data) :]

        enable()
        try:
            execute(make(code, "<code>", "exec", 0, True), space)
            if setup:
                execute(make(setup, "<setup>", "exec", 0, True), space)
        except catch as error:
            spare()
            say(["program", *describe(error)])
            end(0)
        say("loaded")
        for index, (kind, *content) in enumerate(tests):
            began = clock()
            try:
                if kind == "atoms":
                    outcome = atoms(content[0], space)
                elif kind == "source":
                    execute(make(content[0], "<test>", "exec", 0, True), space)
                    outcome = ["passed"]
                else:
                    outcome = serve(space)
            except catch as error:
                spare()
                outcome = ["e", *describe(error)]
            say([index, clock() - began, outcome])
        end(0)

    def atoms(source: str, space: dict) -> list:
        outcomes = []
        for function in evaluate(make(source, "<test>", "eval", 0, True), space):
            try:
                outcomes.append(["v", encode(function())])
            except catch as error:
                outcomes.append(["e", *describe(error)])
        return outcomes

    def serve(space: dict) -> list:
        speak('["ready"]')
        while (request := loads(hear()))[0] != "next":
            speak(dumps(call(space, *request[1:])))
        return []

    def call(space: dict, name: str, args: list, kwargs: dict) -> list:
        try:
            values = [decode(arg) for arg in args]
            if name not in space:
                raise NameError(f"name {name!r} is not defined")
            result = encode(space[name](*values, **{key: decode(value) for key, value in kwargs.items()}))
            after = as_list(map(encode, values))
            return ["v", result, [[i, new] for i, new in enumerate(after) if args[i] != new]]
        except catch as error:
            return ["e", *describe(error)]

    return run


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


_MODULE = sys.modules["candidate_program"] = types.ModuleType("candidate_program")
_SPACE = _MODULE.__dict__
_run = _bind_everything()

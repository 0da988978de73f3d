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

    The job is (code, setup, atoms, tests). `atoms` is the source of a tuple of tuples of functions; a test is
    the index of one such tuple, or the source of a test that runs here, or None for one that the judge runs.
    Evidence is JSON lines: "loaded" or ["program", error type, message], then per test
    [number, seconds, outcome].
    """
    _run(*marshal.loads(job), cap, _SPACE)


def _bind_everything():
    """Make `_run`, whose tools are variables of its own: assigning to a module does not rebind them."""
    clock, end, write, dumps = time.perf_counter, os._exit, os.write, json.JSONEncoder().encode
    execute, make, evaluate, catch, loads = exec, compile, eval, BaseException, json.loads
    encode, decode, hear, speak, enable = codec.encode, codec.decode, peer.receive, peer.send, gc.enable
    describe, spare, as_list, number_of, type_of, text = _describe, _use_spare_memory, list, len, type, str

    def run(code: str, setup: str, atoms: str, tests: tuple, cap: int, space: dict) -> None:
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
        functions = evaluate(make(atoms, "<test>", "eval", 0, True), space)
        say("loaded")
        for index, test in enumerate(tests):
            began = clock()
            try:
                if test is None:
                    outcome = serve(space)
                elif type_of(test) is text:
                    execute(make(test, "<test>", "exec", 0, True), space)
                    outcome = ["passed"]
                else:
                    outcome = as_list(map(value_of, functions[test]))
            except catch as error:
                spare()
                outcome = ["e", *describe(error)]
            say([index, clock() - began, outcome])
        end(0)

    def value_of(function) -> list:
        try:
            return ["v", encode(function())]
        except catch as error:
            return ["e", *describe(error)]

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

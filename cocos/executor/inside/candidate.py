"""Child process that runs one candidate: its code, the setup, then its part of each test.

The candidate controls this process and can write to the evidence file itself. So nothing that this module
writes is trusted, and it receives no expected value, except in a test that can only run here. It keeps its
own references to the functions it needs, so that an honest program which redefines `len` or `json.dumps`
still gets the right verdict.

Everything that does not depend on the job is built at import, in the zygote. Children share these memory
pages until they write to them.
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

import fixed_world
import plain_encoding
import program_end
import program_input
from wire_format import ASK_FD, EVIDENCE_FD, MESSAGE_CHARS, SIZE, TESTS_FD

# The modules that candidates import most. The zygote imports them once, and every child inherits them.
COMMON_MODULES = (
    "array bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator "
    "re statistics string textwrap typing"
)
RESERVED_BYTES = 1000  # of the evidence, so that the report of an error in code or setup always fits
RESERVED_BYTES_PER_TEST = 160  # so that every test can report at least that its values are too large

fixed_world.install()  # before the modules below bind the functions that it replaces
for _name in COMMON_MODULES.split():
    importlib.import_module(_name)


def run_candidate(job: bytes, max_bytes: int) -> None:
    """Run one job, write at most `max_bytes` of evidence, and end the process.

    The job is marshalled (code, setup, stdin, files, number of tests, first batch). The candidate asks the
    zygote for each further batch. A batch is marshalled (atoms, tests). Atoms is the source of a tuple with
    a tuple of functions for each split test. A test is one of

        int     split test: its place among the atoms; call each function and write its value
        str     source of a test that runs in this process
        None    driven test: do what the driver asks until it sends "end"

    Evidence is JSON lines. The first is ["loaded", 0, names of builtins that the program has given to
    something else], or ["program", error type, message] if code or setup raised. Then follows one line per
    test: [index, seconds, outcome]. An outcome is one of

        [item, ...]                  split test; per atom ["v", encoded value], ["e", error type, message], or
                                     ["n", reason] for a value that is not plain
        ["n", reason]                split test whose values are too large
        ["passed"]                   a test that ran in this process
        []                           driven test; the driver's evidence has its outcome
        ["e", error type, message]   the test raised
    """
    _run(*marshal.loads(job), max_bytes, _NAMESPACE)


def _make_run():
    """Return the function that runs a job.

    The functions it needs are local variables of this closure, so a candidate that assigns to a module or to
    `builtins` does not replace them.
    """
    clock, exit_process, write, dumps = time.perf_counter, os._exit, os.write, json.JSONEncoder().encode
    execute, make, evaluate, base_exception = exec, compile, eval, BaseException
    encode, not_plain, enable_gc = plain_encoding.encode, plain_encoding.NotPlainValue, gc.enable
    serve, ask, get, loads, from_bytes = program_end.serve, os.write, os.read, marshal.loads, int.from_bytes
    get_at = os.pread
    describe, use_spare_memory, as_list, length = _describe, _use_spare_memory, list, len
    type_of, text, own_builtins = type, str, program_end.own_builtins

    def run(
        code: str,
        setup: str,
        stdin: str,
        files: tuple,
        num_tests: int,
        batch: bytes,
        max_bytes: int,
        namespace: dict,
    ) -> None:
        left = max_bytes - RESERVED_BYTES - RESERVED_BYTES_PER_TEST * num_tests

        def report(row) -> None:
            nonlocal left
            data = dumps(row).encode() + b"\n"
            if length(data) > RESERVED_BYTES_PER_TEST:
                if length(data) > left:
                    data = dumps([*row[:2], too_large(row[2])]).encode() + b"\n"
                else:
                    left -= length(data)
            while data:
                data = data[write(EVIDENCE_FD, data) :]

        enable_gc()
        try:
            if stdin or files:
                program_input.provide(stdin, files)
            execute(make(code, "<code>", "exec", 0, True), namespace)
            if setup:
                execute(make(setup, "<setup>", "exec", 0, True), namespace)
        except base_exception as error:
            use_spare_memory()
            report(["program", *describe(error)])
            exit_process(0)
        report(["loaded", 0, own_builtins(namespace)])
        outcome: list
        index = start_of_batch = 0
        while True:
            atoms, tests = loads(batch)
            functions = evaluate(make(atoms, "<test>", "eval", 0, True), namespace)
            for test in tests:
                start = clock()
                try:
                    if test is None:
                        serve(namespace)
                        outcome = []
                    elif type_of(test) is text:
                        execute(make(test, "<test>", "exec", 0, True), namespace)
                        outcome = ["passed"]
                    else:
                        outcome = as_list(map(outcome_of, functions[test]))
                except base_exception as error:
                    use_spare_memory()
                    outcome = ["e", *describe(error)]
                report([index, clock() - start, outcome])
                index += 1
            if index == num_tests:
                break
            ask(ASK_FD, b".")
            size = from_bytes(get(ASK_FD, SIZE.size), "big")
            batch = get_at(TESTS_FD, size, start_of_batch)
            start_of_batch += size
        exit_process(0)  # without the candidate's atexit handlers

    def outcome_of(function) -> list:
        try:
            value = function()
        except base_exception as error:
            return ["e", *describe(error)]
        try:
            return ["v", encode(value)]
        except not_plain as reason:
            return ["n", text(reason)]
        except base_exception as error:
            return ["e", *describe(error)]

    def too_large(outcome: list) -> list:
        if outcome[0] == "e":
            return ["e", "OutputLimit", "more evidence than output_kb"]
        return ["n", "larger than output_kb"]

    return run


def warm_up() -> None:
    """Run often what all children run.

    The interpreter rewrites code that it has run a few times. A child that does so copies each such page.
    """
    dumps = json.JSONEncoder().encode
    for value in (1, [1, "a", (2.5,)]) * 64:
        dumps([0, 0.5, [["v", plain_encoding.encode(value)]]])
        program_end.own_builtins({"f": value})


def _describe(error: BaseException) -> tuple[str, str]:
    """Return the class name and the text of an exception, even if its __str__ raises."""
    try:
        text = str(error)[:MESSAGE_CHARS]
    except BaseException as worse:
        text = f"<{type(worse).__name__} in __str__>"
    return str(type(error).__name__), str(text)


def _use_spare_memory() -> None:
    """Raise the memory limit to the hard limit, so that a MemoryError can be reported."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


# Some modules, such as dataclasses and pickle, look up the module of a class in `sys.modules`.
_MODULE = sys.modules["candidate_program"] = types.ModuleType("candidate_program")
_NAMESPACE = _MODULE.__dict__
_run = _make_run()

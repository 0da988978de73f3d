"""The child that runs one candidate: code, setup, tests, and a line of evidence after each. Ends the process; never returns.

Everything the candidate could replace (builtins, json, os) is bound to local names before its code runs. That is courtesy, not
security: the candidate owns this process, and what it may claim is decided outside.
"""

import json
import os
import resource
import sys
import time
import types

# The modules that candidates import most, loaded once here and shared with every child by fork.
import bisect, collections, copy, datetime, decimal, fractions, functools, heapq, itertools  # noqa: E401, F401
import math, operator, random, re, statistics, string, typing  # noqa: E401, F401

MESSAGE_CHARS = 300
SPARE_MB = 64  # kept back below the hard limit, so that running out of memory can still be reported


def run_job(job: bytes, fd: int, cpu_s: int, memory_mb: int, file_mb: int, processes: int, open_files: int) -> None:
    """Run one job within its limits, write evidence to `fd` and end the process."""
    spec = json.loads(job)
    _set_limits(cpu_s, memory_mb, file_mb, processes, open_files)
    say = _reporter(fd, json.dumps, os.write)
    clock, end, spare = time.perf_counter, os._exit, _use_spare_memory
    catch, kind = BaseException, type
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    space = module.__dict__
    run, make = exec, compile
    try:
        for part in ("code", "setup"):
            run(make(spec[part], f"<{part}>", "exec", dont_inherit=True), space)
    except catch as error:
        spare()
        say(["program", *_describe(error)])
        end(0)
    say(["program"])
    for index, test in enumerate(spec["tests"]):
        started = clock()
        try:
            run(make(test, f"<test {index}>", "exec", dont_inherit=True), space)
            say([index, clock() - started])
        except catch as error:
            spare()
            say([index, clock() - started, *_describe(error)])
    end(0)


def _reporter(fd: int, dumps, write):
    def say(row: list) -> None:
        data = dumps(row).encode() + b"\n"
        while data:
            data = data[write(fd, data) :]

    return say


def _describe(error: BaseException) -> tuple[str, str]:
    """Class name and text of an exception, whatever its __str__ does."""
    try:
        text = str(error)
    except BaseException as worse:
        text = f"<{type(worse).__name__} in __str__>"
    return type(error).__name__, text[:MESSAGE_CHARS]


def _set_limits(cpu_s: int, memory_mb: int, file_mb: int, processes: int, open_files: int) -> None:
    def limit(name: int, soft: int, hard: int) -> None:
        ceiling = resource.getrlimit(name)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(name, (soft, hard))

    limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    limit(resource.RLIMIT_AS, memory_mb << 20, (memory_mb + SPARE_MB) << 20)
    limit(resource.RLIMIT_FSIZE, file_mb << 20, file_mb << 20)
    limit(resource.RLIMIT_NPROC, processes, processes)
    limit(resource.RLIMIT_NOFILE, open_files, open_files)
    limit(resource.RLIMIT_CORE, 0, 0)


def _use_spare_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

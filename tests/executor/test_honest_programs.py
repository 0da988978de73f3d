"""Honest programs of unusual shapes: what plain Python passes, the executor passes."""

import json
import subprocess
import sys

import pytest

from cocos.executor import Executor, Program
from tests.executor.honest import (
    Honest,
    arguments,
    classes,
    exceptions,
    features,
    functions,
    in_place,
    iterators,
    scenes,
    solutions,
    values,
)
from tests.support.executor import offered

MODULES = (
    arguments,
    classes,
    exceptions,
    features,
    functions,
    in_place,
    iterators,
    scenes,
    solutions,
    values,
)
PROGRAMS: list[Honest] = [program for module in MODULES for program in module.PROGRAMS]
# Refused although plain Python passes them.
REFUSED = {
    "an object from a function is compared with a number": "its class could say that it equals every number; "
    "allowed, and marked, where the test names a class",
    "arithmetic of an object from a function with a number": "so could `f(3) - 2.5`",
}
# Marked although their own code does not decide alone: a length with a loop, and a method with the name of one of data.
MARKED = {"reversed and len of a class", "a queue of the standard library"}
PLAIN = """
import io, json, os, sys, tempfile
failed = []
os.chdir(tempfile.mkdtemp())
for name, code, tests, setup, stdin in json.load(sys.stdin):
    sys.stdin = io.StringIO(stdin)
    import types
    module = sys.modules["candidate_program"] = types.ModuleType("candidate_program")
    stdout, sys.stdout = sys.stdout, io.StringIO()
    try:
        for source in (code, setup, *tests):
            exec(source, module.__dict__)
    except BaseException as error:
        failed.append([name, repr(error)])
    sys.stdout = stdout
print(json.dumps(failed))
"""


def test_the_corpus_is_large_and_every_name_is_used_once():
    names = [program.name for program in PROGRAMS]
    assert len(names) >= 150 and len(set(names)) == len(names) and set(names) >= REFUSED.keys()
    assert len(REFUSED) <= 0.03 * len(names)


def test_plain_python_passes_every_program():
    rows = [[p.name, p.code, p.tests, p.setup, p.stdin] for p in PROGRAMS]
    run = subprocess.run(
        [sys.executable, "-c", PLAIN], input=json.dumps(rows), capture_output=True, text=True
    )
    assert json.loads(run.stdout) == [], run.stderr


@pytest.mark.processes
def test_the_executor_passes_every_program_but_the_refused_ones():
    with Executor(num_workers=2, sandbox=offered("namespaces", "seccomp") or "rlimits") as executor:
        results = executor.run([Program(p.code, p.tests, p.setup, stdin=p.stdin) for p in PROGRAMS])
    by_program = list(zip(PROGRAMS, results, strict=True))
    failed = {p.name: result.verdicts for p, result in by_program if not result.all_passed}
    assert failed.keys() == REFUSED.keys(), {name: failed[name] for name in failed.keys() - REFUSED.keys()}
    marked = {
        p.name
        for p, result in by_program
        for verdict in result.verdicts
        # An object or a function of the test that the program gets is the test's choice.
        if verdict.in_child and not (verdict.in_child_reason or "").startswith("the program gets")
    }
    assert marked <= {p.name for p in PROGRAMS if p.is_marked} | MARKED

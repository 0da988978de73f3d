"""Honest programs of unusual shapes: what plain Python passes, the executor passes.

Each line of honest_programs.jsonl is a program: a name, which says what is unusual about it, code, tests, setup, standard
input, and whether a verdict is marked, because its own code decides or the test runs in its process.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cocos.executor import Executor, Program
from tests.support.executor import offered

PROGRAMS = [
    {"setup": "", "stdin": "", "is_marked": False} | json.loads(line)
    for line in Path(__file__).with_name("honest_programs.jsonl").read_text().splitlines()
]
# Refused although plain Python passes them.
REFUSED = {
    "an object from a function is compared with a number": "its class could say that it equals every number; "
    "allowed, and marked, where the test names a class"
}
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
    names = [program["name"] for program in PROGRAMS]
    assert len(names) >= 150 and len(set(names)) == len(names) and set(names) >= REFUSED.keys()
    assert len(REFUSED) <= 0.03 * len(names)


def test_plain_python_passes_every_program():
    rows = [[p[key] for key in ("name", "code", "tests", "setup", "stdin")] for p in PROGRAMS]
    run = subprocess.run(
        [sys.executable, "-c", PLAIN], input=json.dumps(rows), capture_output=True, text=True
    )
    assert json.loads(run.stdout) == [], run.stderr


@pytest.mark.processes
def test_the_executor_passes_every_program_but_the_refused_ones():
    with Executor(num_workers=2, sandbox=offered("namespaces", "seccomp") or "rlimits") as executor:
        results = executor.run(
            [Program(p["code"], tuple(p["tests"]), p["setup"], stdin=p["stdin"]) for p in PROGRAMS]
        )
    by_program = list(zip(PROGRAMS, results, strict=True))
    failed = {p["name"]: result.verdicts for p, result in by_program if not result.all_passed}
    assert failed.keys() == REFUSED.keys(), {name: failed[name] for name in failed.keys() - REFUSED.keys()}
    marked = {p["name"] for p, result in by_program if any(verdict.in_child for verdict in result.verdicts)}
    assert marked == {p["name"] for p in PROGRAMS if p["is_marked"]}

"""Programs per second: reference solutions at each isolation level.

Rates depend on the machine, so every round also measures two baselines. The first is the rate of empty forks:
one process per worker, with the zygote's modules loaded, forks children that exit at once. The second is the
rate with a fresh `python -I` per program. All figures are medians over the rounds. Programs that take longer
than 0.5 s are left out, because their own time would hide that of the executor. Whole programs with ten
inputs are compared with programs with ten asserts.
"""

import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench import medians

from cocos.executor import Executor, Program, StdoutTest
from cocos.executor.sandboxes.interpreter import FLAGS, INSIDE, INTERPRETER
from cocos.executor.sandboxes.levels import LEVELS
from cocos.problems import load_problems

DATA = ("data/public/mbpp/test.jsonl", "data/toy/boost.jsonl")  # the first one that exists
ROUNDS, WORKERS = 5, 2
FORKS = 3000
FRESH_PROGRAMS = 150  # programs that run with one `python -I` each
SLOW_S = 0.5
SCRIPTS = 100  # whole programs, and as many with asserts
EMPTY_FORKS = f"""
import gc, os, sys, time
sys.path.insert(0, {str(INSIDE.parent)!r})
from inside import fixed_world, confinement, program, zygote
gc.collect(); gc.freeze(); gc.disable()
def forks(count):
    for _ in range(count):
        child = os.fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
forks(200)
print("ready", flush=True)
sys.stdin.readline()
started = time.perf_counter()
forks({FORKS})
print({FORKS} / (time.perf_counter() - started))
"""


def empty_fork_rate() -> float:
    """Return the forks per second of simultaneous processes whose children exit at once."""
    command, pipe = [INTERPRETER, *FLAGS, "-c", EMPTY_FORKS], subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(WORKERS)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in processes)


def fresh_interpreter_rate(programs: list[Program]) -> float:
    """Return the programs per second with one `python -I` each, one per worker at a time."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as threads:
        paths = [Path(folder, f"{number}.py") for number in range(len(programs))]
        for path, program in zip(paths, programs, strict=True):
            path.write_text("\n".join((program.code, program.setup, *program.test_list)))
        started = time.perf_counter()
        list(threads.map(lambda path: subprocess.run([INTERPRETER, "-I", path], check=True), paths))
        return len(programs) / (time.perf_counter() - started)


def executor_rate(executor: Executor, programs: list[Program]) -> float:
    """Return the programs per second of a running executor; every program must pass."""
    started = time.perf_counter()
    results = executor.run(programs)
    spent_s = time.perf_counter() - started
    assert all(result.all_passed for result in results)
    return len(programs) / spent_s


def asserts_of(factor: int) -> Program:
    """Return a small program with ten asserts."""
    tests = tuple(f"assert f({n}) == {n * factor}" for n in range(10))
    return Program(f"def f(n):\n    return n * {factor}", tests)


def inputs_of(factor: int) -> Program:
    """Return the same as a whole program with ten inputs and outputs."""
    tests = tuple(StdoutTest(f"{n}\n", f"{n * factor}\n").source for n in range(10))
    return Program(f"def f(n):\n    return n * {factor}\nprint(f(int(input())))", tests)


def rates(level: str, rounds: int = ROUNDS) -> dict[str, str]:
    """Return the rate at an isolation level, and its ratios to empty forks and to `python -I`."""
    problems = load_problems(next(path for path in DATA if Path(path).exists()))
    programs = [Program(p.code, p.test_list, p.setup) for p in problems]
    with Executor(WORKERS, sandbox=level) as executor:
        results = executor.run(programs)
        programs = [p for p, r in zip(programs, results, strict=True) if r.duration_s < SLOW_S]
        measures = {
            "forks": empty_fork_rate,
            "fresh": partial(fresh_interpreter_rate, programs[:FRESH_PROGRAMS]),
            "ours": partial(executor_rate, executor, programs),
            "asserts": partial(executor_rate, executor, [asserts_of(n) for n in range(SCRIPTS)]),
            "inputs": partial(executor_rate, executor, [inputs_of(n) for n in range(SCRIPTS)]),
        }
        found = medians(measures, rounds)
    return {
        "level": level,
        "programs/s": f"{found['ours']:.0f}",
        "of empty forks": f"{found['ours'] / found['forks']:.0%}",
        "times `python -I`": f"{found['ours'] / found['fresh']:.1f}",
        "ten inputs, of ten asserts": f"{found['inputs'] / found['asserts']:.2f}",
    }


PARTS = [partial(rates, level.name) for level in LEVELS if level.missing_reason() is None]

"""Benchmark of the executor: MBPP's reference solutions per second at each isolation level.

    python scripts/bench/executor.py --data data/public/raw/mbpp.jsonl --output_file build/executor.json

Rates depend on the machine, so every round also measures two baselines. The first is the rate of empty
forks: one process per worker, with the zygote's modules loaded, forks children that exit at once.
The second is the rate with a fresh `python -I` per program. All figures are medians over the rounds. Programs
that take longer than 0.5 s are left out, because their own time would hide that of the executor.
"""

import argparse
import json
import platform
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cocos.executor import Executor, Program
from cocos.executor.sandboxes.interpreter import FLAGS, INSIDE, INTERPRETER
from cocos.executor.sandboxes.levels import LEVELS
from cocos.problems import load_problems

FORKS = 3000
FRESH_PROGRAMS = 150  # programs that run with one `python -I` each
SLOW_S = 0.5
EMPTY_FORKS = f"""
import gc, os, sys, time
sys.path.insert(0, {str(INSIDE)!r})
import candidate, confinement, judge, zygote
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


def empty_fork_rate(num_workers: int) -> float:
    """Return the forks per second of `num_workers` simultaneous processes whose children exit at once."""
    command = [INTERPRETER, *FLAGS, "-c", EMPTY_FORKS]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(num_workers)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in processes)


def fresh_interpreter_rate(programs: list[Program], num_workers: int, folder: str) -> float:
    """Return the programs per second with one `python -I` each, `num_workers` at a time."""
    paths = []
    for number, program in enumerate(programs):
        path = Path(folder, f"{number}.py")
        path.write_text("\n".join((program.code, program.setup, *program.test_list)))
        paths.append(path)

    def run(path: Path) -> None:
        subprocess.run(
            [INTERPRETER, "-I", str(path)], check=True, capture_output=True, stdin=subprocess.DEVNULL
        )

    started = time.perf_counter()
    with ThreadPoolExecutor(num_workers) as threads:
        list(threads.map(run, paths))
    return len(programs) / (time.perf_counter() - started)


def executor_rate(executor: Executor, programs: list[Program]) -> float:
    """Return the programs per second of a running executor; every program must pass."""
    started = time.perf_counter()
    results = executor.run(programs)
    spent_s = time.perf_counter() - started
    assert all(result.all_passed for result in results)
    return len(programs) / spent_s


def measure(path: str, num_workers: int, rounds: int, levels: list[str]) -> dict:
    """Return the rates of all rounds, their medians, and the ratios to empty forks and to `python -I`."""
    programs = [Program(p.code, p.test_list, p.setup) for p in load_problems(path)]
    executors = {name: Executor(num_workers, sandbox=name) for name in levels}
    try:
        first = next(iter(executors.values()))
        programs = [p for p, r in zip(programs, first.run(programs), strict=True) if r.duration_s < SLOW_S]
        rates: dict[str, list[float]] = {}
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(rounds):
                # Measure all rates in each round, so that a change of the machine's load affects all of them.
                rates.setdefault("empty_fork", []).append(empty_fork_rate(num_workers))
                fresh = fresh_interpreter_rate(programs[:FRESH_PROGRAMS], num_workers, folder)
                rates.setdefault("python_I", []).append(fresh)
                for name, executor in executors.items():
                    rates.setdefault(name, []).append(executor_rate(executor, programs))
    finally:
        for executor in executors.values():
            executor.close()
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {
        "machine": {"platform": platform.platform(), "python": platform.python_version()},
        "num_workers": num_workers,
        "programs": len(programs),
        "flags": FLAGS,
        "rates_per_s": rates,
        "median_per_s": medians,
        "share_of_empty_forks": {name: medians[name] / medians["empty_fork"] for name in levels},
        "times_python_I": {name: medians[name] / medians["python_I"] for name in levels},
    }


def main() -> None:
    """Parse the arguments, measure, print a table and write the report."""
    working_levels = [level.name for level in LEVELS if level.missing_reason() is None]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default="data/public/raw/mbpp.jsonl", help="MBPP-format file with reference solutions"
    )
    parser.add_argument("--num_workers", type=int, default=2, help="programs that run at the same time")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each rate")
    parser.add_argument(
        "--levels",
        nargs="+",
        choices=working_levels,
        default=working_levels,
        help="isolation levels to measure (default: all that work on this machine)",
    )
    parser.add_argument("--output_file", help="JSON file to write the report to")
    arguments = parser.parse_args()
    report = measure(arguments.data, arguments.num_workers, arguments.rounds, arguments.levels)
    for name, rate in report["median_per_s"].items():
        ratios = ""
        if name in report["times_python_I"]:
            share, times = report["share_of_empty_forks"][name], report["times_python_I"][name]
            ratios = f"   {share:.0%} of empty forks, {times:.1f} x python -I"
        print(f"{name:<16} {rate:8.0f}/s{ratios}")
    if arguments.output_file:
        Path(arguments.output_file).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.output_file).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""`python -m cocos.executor check FILE`: run a data set's reference solutions and report.

Exit status 0: every reference passes every test; 1: some do not; 2: the command cannot run.
"""

import argparse
import sys
import time
from concurrent.futures import as_completed

from cocos.executor import ExecutionResult, Executor, ExecutorError, Limits, Program
from cocos.problems import DataError, load_problems


def check(path: str, executor: Executor) -> int:
    """Run every reference solution in `path`, print a line per failure and a summary; return the exit status."""
    problems = [problem for problem in load_problems(path) if problem.code.strip()]
    if not problems:
        raise DataError(f"{path}: no row has a reference solution (field 'code'); there is nothing to check")
    started = time.perf_counter()
    futures = {}
    for problem in problems:
        tests = problem.test_list + problem.challenge_test_list
        futures[executor.submit(Program(problem.code, tests, problem.setup))] = problem
    failures: dict[str, ExecutionResult] = {}
    for done, future in enumerate(as_completed(futures), start=1):
        result = future.result()
        if not result.all_passed:
            failures[futures[future].task_id] = result
        _progress(done, len(problems), len(failures))
    for task_id, result in failures.items():
        first = next((verdict for verdict in result.verdicts if not verdict.passed), None)
        print(f"{task_id}: {result.infra_error or f'{first.status} {first.error_type}: {first.message}'}")  # type: ignore[union-attr]
    spent_s = time.perf_counter() - started
    print(
        f"{len(problems) - len(failures)}/{len(problems)} references pass ({path}, isolation {executor.isolation}, "
        f"{executor.num_workers} workers, {spent_s:.1f} s, {len(problems) / spent_s:.0f}/s)"
    )
    return 1 if failures else 0


def _progress(done: int, total: int, failures: int) -> None:
    if sys.stderr.isatty():
        filled = 30 * done // total
        bar = "#" * filled + "." * (30 - filled)
        print(
            f"\r[{bar}] {done}/{total}, {failures} failed",
            end="\n" if done == total else "",
            file=sys.stderr,
            flush=True,
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cocos.executor", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    checker = commands.add_parser("check", help="run the reference solutions of a data set")
    checker.add_argument("file", help="MBPP-format JSON or JSONL")
    checker.add_argument(
        "--num_workers", type=int, default=None, help="programs at the same time (default: one per processor)"
    )
    checker.add_argument(
        "--wall_s", type=float, default=Limits().wall_s, help="wall limit of one program in seconds"
    )
    arguments = parser.parse_args(argv)
    try:
        with Executor(arguments.num_workers, Limits(wall_s=arguments.wall_s)) as executor:
            return check(arguments.file, executor)
    except (DataError, ExecutorError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

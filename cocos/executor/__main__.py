"""The executor's command line.

    python -m cocos.executor check FILE.jsonl     run a data set's reference solutions and report
    python -m cocos.executor doctor               what isolation this machine offers, and why not more

Exit status of `check`: 0, every reference passes every test; 1, some do not; 2, the command cannot run.
"""

import argparse
import sys
import time

from cocos.executor import ExecutionResult, Executor, ExecutorError, Limits, Program
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.levels import LEVELS, NAMES, choose
from cocos.problems import DataError, Problem, load_problems


def check(path: str, executor: Executor) -> int:
    """Run every reference solution in `path`, report each failure and a summary; return the exit status."""
    problems = [problem for problem in load_problems(path) if problem.code.strip()]
    if not problems:
        raise DataError(f"{path}: no row has a reference solution (field 'code'); there is nothing to check")
    started = time.perf_counter()
    programs = [Program(p.code, p.test_list + p.challenge_test_list, p.setup) for p in problems]
    failures: list[tuple[Problem, ExecutionResult]] = []
    for done, (index, result) in enumerate(executor.stream(programs), start=1):
        if not result.all_passed:
            failures.append((problems[index], result))
        _progress(done, len(problems), len(failures))
    for problem, result in failures:
        print(f"{problem.task_id}: {_why(result)}")
    spent_s = time.perf_counter() - started
    stats = executor.stats
    print(
        f"{len(problems) - len(failures)}/{len(problems)} references pass ({path}; "
        f"isolation {executor.isolation}, {stats.in_child_tests}/{stats.tests} tests in_child, "
        f"{executor.num_workers} workers, {spent_s:.1f} s)"
    )
    return 1 if failures else 0


def doctor() -> int:
    """Print the levels, best first, and the one that `auto` picks; return 1 where there is none for it."""
    for level in LEVELS:
        reason = level.why_missing()
        print(f"{level.name:<11} {'yes' if reason is None else 'no: ' + reason}")
    reason = syscall_filter.why_missing()
    print(f"filter      {'yes' if reason is None else 'no: ' + reason} (system calls; on top of the others)")
    try:
        level = choose()
        with Executor(num_workers=1, sandbox=level.name):
            print(f"auto        {level.name}; its self-test passes")
    except ExecutorError as error:
        print(f"auto        {error}")
        return 1
    return 0


def _why(result: ExecutionResult) -> str:
    if result.infra_error:
        return f"the executor failed: {result.infra_error}"
    verdict = next(verdict for verdict in result.verdicts if not verdict.passed)
    return f"{verdict.status} {verdict.error_type}: {verdict.message}"


def _progress(done: int, total: int, failures: int) -> None:
    if sys.stderr.isatty():
        filled = 30 * done // total
        bar = "#" * filled + "." * (30 - filled)
        end = "\n" if done == total else ""
        print(f"\r[{bar}] {done}/{total}, {failures} failed", end=end, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cocos.executor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    checker = commands.add_parser("check", help="run the reference solutions of a data set")
    checker.add_argument("file", help="MBPP-format JSON or JSONL")
    checker.add_argument(
        "--num_workers", type=int, help="programs at the same time (default: one per processor)"
    )
    checker.add_argument(
        "--wall_s", type=float, default=Limits().wall_s, help="limit of one program, seconds"
    )
    checker.add_argument("--sandbox", choices=("auto", *NAMES), default="auto", help="isolation level")
    checker.add_argument("--min_isolation", choices=NAMES, help="refuse to run below this level")
    commands.add_parser("doctor", help="what isolation this machine offers")
    arguments = parser.parse_args(argv)
    if arguments.command == "doctor":
        return doctor()
    try:
        limits = Limits(wall_s=arguments.wall_s, cpu_s=max(1, round(arguments.wall_s)))
        with Executor(arguments.num_workers, limits, arguments.sandbox, arguments.min_isolation) as executor:
            return check(arguments.file, executor)
    except (DataError, ExecutorError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""Command line of the executor.

    python -m cocos.executor check FILE.jsonl     run the reference solutions of a data set
    python -m cocos.executor doctor               try what each isolation level promises on this machine

`check` exits with status 0 if every reference solution passes every test, 1 if one does not, and 2 if the
command cannot run. `doctor` exits with status 0 if `--sandbox auto` finds a level that works and keeps its
promises, otherwise 1.
"""

import argparse
import sys
import time

from tqdm import tqdm

from cocos.executor import ExecutionResult, Executor, ExecutorError, Limits, Program
from cocos.executor.doctor import doctor
from cocos.executor.sandboxes.levels import NAMES
from cocos.problems import DataError, Problem, load_problems


def check(path: str, executor: Executor) -> int:
    """Run every reference solution in `path`, print each failure and a summary; return the exit status."""
    problems = [problem for problem in load_problems(path) if problem.code.strip()]
    if not problems:
        raise DataError(f"{path}: no row has a reference solution (field 'code'); there is nothing to check")
    started_s = time.perf_counter()
    programs = [_reference(problem) for problem in problems]
    failures: list[tuple[Problem, ExecutionResult]] = []
    marked: list[tuple[Problem, ExecutionResult]] = []
    # disable=None: no progress bar where stderr is not a terminal
    with tqdm(executor.stream(programs), total=len(programs), unit=" programs", disable=None) as progress:
        for index, result in progress:
            if not result.all_passed:
                failures.append((problems[index], result))
                progress.set_postfix(failed=len(failures))
            if any(verdict.in_child for verdict in result.verdicts):
                marked.append((problems[index], result))
    for problem, result in failures:
        print(f"{problem.task_id}: {_describe_failure(result)}")
    for problem, result in marked:
        for number, verdict in enumerate(result.verdicts, start=1):
            if verdict.in_child:
                print(f"{problem.task_id}: test {number} in_child: {verdict.in_child_reason}")
    spent_s = time.perf_counter() - started_s
    stats = executor.stats
    print(
        f"{len(problems) - len(failures)}/{len(problems)} references pass ({path}; "
        f"isolation {executor.isolation}, {stats.in_child_tests}/{stats.tests} tests in_child, "
        f"{executor.num_workers} workers, {spent_s:.1f} s)"
    )
    return 1 if failures else 0


def _reference(problem: Problem) -> Program:
    """Return the program that runs a reference solution against all tests of its problem."""
    return Program(
        problem.code,
        problem.scored_tests + problem.challenge_test_list,
        problem.setup,
        entry_point=problem.entry_point,
        stdin=problem.stdin,
        files=problem.files,
    )


def _describe_failure(result: ExecutionResult) -> str:
    if result.infra_error:
        return f"the executor failed: {result.infra_error}"
    verdict = next(verdict for verdict in result.verdicts if not verdict.passed)
    return f"{verdict.status} {verdict.error_type}: {verdict.message}"


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cocos.executor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    checker = commands.add_parser("check", help="run the reference solutions of a data set")
    checker.add_argument("file", help="MBPP-format JSON or JSON lines")
    checker.add_argument(
        "--executor_workers", type=int, help="programs that run at the same time (default: one per processor)"
    )
    checker.add_argument(
        "--program_timeout_s", type=float, default=Limits.wall_s, help="time limit of one program, seconds"
    )
    checker.add_argument(
        "--program_memory_mb",
        type=int,
        default=Limits.memory_mb,
        help="memory limit of each process of a program, MiB",
    )
    checker.add_argument(
        "--program_packages", nargs="+", default=(), help="installed packages that programs may import"
    )
    checker.add_argument("--program_python", help="interpreter that has these packages")
    checker.add_argument("--sandbox", choices=("auto", *NAMES), default="auto", help="isolation level")
    checker.add_argument("--min_isolation", choices=NAMES, help="lowest isolation level to accept")
    commands.add_parser("doctor", help="try what each isolation level promises on this machine")
    arguments = parser.parse_args(argv)
    if arguments.command == "doctor":
        return doctor()
    try:
        limits = Limits.with_timeout(arguments.program_timeout_s, memory_mb=arguments.program_memory_mb)
        with Executor(
            arguments.executor_workers,
            limits,
            arguments.sandbox,
            arguments.min_isolation,
            packages=tuple(arguments.program_packages),
            python=arguments.program_python,
        ) as executor:
            return check(arguments.file, executor)
    except (ValueError, ExecutorError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

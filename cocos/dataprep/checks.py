"""What executing a set shows about it: references that fail, hesitate or take long, and tests that a constant
passes.

Knows the executor's verdicts; does not know files. A failure of the executor itself is an error, never a
finding.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice

from cocos.dataprep.formats.source_edits import bound_at_top
from cocos.executor import ExecutionResult, Executor, ExecutorError, Program, Verdict
from cocos.problems import Problem
from cocos.syntax import parse

# Everything that a check can find, and what it means; `--drop` takes these names.
KINDS = {
    "malformed": "the row cannot be read as a problem",
    "test_left_out": "a test cannot stand by itself, or holds for any program; the row's others remain",
    "failing": "the reference does not pass the tests",
    "flaky": "the reference passes under one random seed and fails under another",
    "slow": "the reference takes long",
    "untested": "no test asserts anything",
    "constant": "a function that always returns the same passes every test",
    "duplicate": "the same text or code occurs earlier in the split",
    "leak": "the same text or code occurs in another split",
    "contaminated": "the same text or code occurs in a named benchmark",
    "near_duplicate": "nearly the same text or code occurs earlier in the split",
    "near_leak": "nearly the same text or code occurs in another split",
    "near_contaminated": "nearly the same text or code occurs in a named benchmark",
}
BATCH = 64  # problems whose programs are queued at a time
USUAL_CONSTANTS = ("None", "True", "False", "0", "1", "''", "[]")


@dataclass(frozen=True)
class Finding:
    """Something to know about a row.

    Attributes:
        kind: One of `KINDS`.
        split: Where the row is.
        task_id: Which row.
        detail: What was seen; the same in every run.
        other: `split/task_id` of the row that it repeats, or "".

    """

    kind: str
    split: str
    task_id: str
    detail: str
    other: str = ""


def check_references(
    problems: Iterable[tuple[str, Problem]], executor: Executor, num_seeds: int, slow_s: float
) -> Iterator[Finding]:
    """Execute every reference, and every constant that could pass.

    Args:
        problems: (split, problem), streamed.
        executor: Running; the caller closes it.
        num_seeds: Runs per reference, each with another seed of `random`.
        slow_s: A reference is slow that takes longer, in seconds of wall time over all its tests.

    Raises:
        ExecutorError: The executor failed; nothing is known about that program.

    """
    stream = iter(problems)
    while batch := list(islice(stream, BATCH)):
        queued = [
            (
                [executor.submit(_reference(problem, seed)) for seed in range(num_seeds)]
                if problem.code
                else [],
                [(value, executor.submit(program)) for value, program in constant_programs(problem)],
            )
            for _, problem in batch
        ]
        for (split, problem), (references, constants) in zip(batch, queued, strict=True):
            for kind, detail in _faults(problem, [_settled(r) for r in references], slow_s):
                yield Finding(kind, split, problem.task_id, detail)
            passing = [value for value, future in constants if _settled(future).all_passed]
            if passing:
                yield Finding("constant", split, problem.task_id, f"return {passing[0]}")


def constant_programs(problem: Problem) -> list[tuple[str, Program]]:
    """The constants that could pass, as far as the tests' text tells, each as a program to find out with."""
    functions = _functions_under_test(problem)
    expected: set[str] = set()
    is_open = False
    for test in problem.scored_tests:
        value = _expected(test)
        is_open |= value is None
        expected |= {value} if value is not None else set()
    if not functions or len(expected) > 1:
        return []
    values = expected or set(USUAL_CONSTANTS)
    body = "\n".join(f"def {name}(*args, **kwargs):\n    return {{}}" for name in sorted(functions))
    return [
        (value, Program(body.replace("{}", value), problem.scored_tests, problem.setup))
        for value in sorted(values)
    ]


def _reference(problem: Problem, seed: int) -> Program:
    seeded = f"{problem.setup}\n__import__('random').seed({seed})"
    return Program(problem.code, problem.scored_tests + problem.challenge_test_list, seeded)


def _settled(future: "Future[ExecutionResult]") -> ExecutionResult:
    result = future.result()
    if result.is_infra_failure:
        raise ExecutorError(f"the executor failed, so nothing is known about a program: {result.infra_error}")
    return result


def _faults(problem: Problem, results: Sequence[ExecutionResult], slow_s: float) -> Iterator[tuple[str, str]]:
    asserting = [test for test in problem.scored_tests if _asserts(test)]
    if not asserting:
        yield "untested", "no assert, raise or call of an assert method in any test"
    if not results:
        return
    statuses = {tuple(verdict.passed for verdict in result.verdicts) for result in results}
    if len(statuses) > 1:
        yield "flaky", f"{sum(r.all_passed for r in results)} of {len(results)} runs pass"
    elif not results[0].all_passed:
        yield "failing", _first_failure(results[0].verdicts)
    if max(result.duration_s for result in results) > slow_s:
        yield "slow", f"more than {slow_s:g} s"


def _first_failure(verdicts: Sequence[Verdict]) -> str:
    number, verdict = next((n, v) for n, v in enumerate(verdicts, start=1) if not v.passed)
    message = re.sub(r"0x[0-9a-f]{6,}", "0x...", verdict.message or "")
    return f"test {number} of {len(verdicts)}: {verdict.status}, {verdict.error_type}: {message}"[:300]


def _functions_under_test(problem: Problem) -> set[str]:
    """The entry point, or the functions of the reference that the first test calls."""
    if problem.entry_point:
        return {problem.entry_point}
    called = {
        node.func.id
        for node in ast.walk(parse(problem.test_list[0]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    if not problem.code:
        return called - set(dir(builtins))
    try:
        defined = {name for node in parse(problem.code).body for name in bound_at_top(node)}
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return called & defined


def _expected(test: str) -> str | None:
    """The literal that a test demands of a call, or None where it is not as plain as that."""
    match parse(test).body:
        case [ast.Assert(test=ast.Compare(left=ast.Call(), ops=[ast.Eq() | ast.Is()], comparators=[value]))]:
            try:
                return repr(ast.literal_eval(value))
            except (ValueError, TypeError, RecursionError, MemoryError):
                return None
        case [ast.Assert(test=ast.Call(func=ast.Name()))]:
            return "True"
        case [ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name())))]:
            return "False"
    return None


def _asserts(test: str) -> bool:
    for node in ast.walk(parse(test)):
        if isinstance(node, (ast.Assert, ast.Raise)):
            return True
        if isinstance(node, ast.Call) and "assert" in ast.unparse(node.func).lower():
            return True
    return False

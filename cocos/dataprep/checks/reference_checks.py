"""Checks that execute programs: references that fail, are flaky or slow, and tests that a constant passes.

A failure of the executor raises an exception; it is never reported as a finding about a problem.
"""

import ast
import builtins
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from cocos.dataprep.checks.findings import Finding
from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.checks.tokens import shared_tree
from cocos.dataprep.formats.source_edits import defined_names
from cocos.executor import ExecutionResult, Executor, ExecutorError, Program, Verdict
from cocos.files.python_parser import parse
from cocos.problems import Problem
from cocos.trajectories import as_program

RUNNERS = {"main", "TextTestRunner", "runModule"}  # names that run the test classes of unittest or pytest


def asserts(test: str) -> bool:
    """Return whether a test executes an assert, a raise, or a call of an assert method.

    Functions that nothing calls do not count, nor do test classes that nothing runs or whose result is
    discarded, as `unittest.main(exit=False)` does.
    """
    tree = parse(test)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if any(_discards_result(node) for node in ast.walk(tree)):
        names -= RUNNERS
    return any(_asserts(node, names) for node in tree.body)


def _asserts(node: ast.AST, names: set[str]) -> bool:
    """Return whether a node does; `names` are the names that occur in the test."""
    if isinstance(node, (ast.Assert, ast.Raise)):
        return True
    if isinstance(node, ast.Call) and "assert" in ast.unparse(node.func).lower():
        return True
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.decorator_list:
        if node.name not in names:
            return False
    elif isinstance(node, ast.ClassDef):
        if node.name not in names and not names & RUNNERS:
            return False
        # Whatever uses the class may call any of its methods.
        names = names | {method.name for method in node.body if isinstance(method, ast.FunctionDef)}
    return any(_asserts(child, names) for child in children)


def _discards_result(node: ast.AST) -> bool:
    """Return whether a node is the statement `unittest.main(exit=False)`."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(attr="main") | ast.Name("main"), _, keywords)):
            return any(ast.unparse(keyword) in ("exit=False", "exit=0") for keyword in keywords)
    return False


MAX_PENDING = 64  # problems submitted at a time, so that a large set is not held in memory
# What a program contains that can read the state of `random`.
MAY_BE_RANDOM = re.compile(r"random|import_module|__import__|\b(?:eval|exec|compile|sys|globals)\b")
# Tried when the tests do not reveal which value they expect.
COMMON_CONSTANTS = ("None", "True", "False", "0", "1", "''", "[]")

# Errors of the judge, not of the program: it cannot judge a value or rebuild an exception.
REFUSALS = ("NotPlainValue", "CandidateError")


NUM_SEEDS = 3  # runs of each reference; a flaky one differs in most cases
SLOW_S = 1.0
Run = Future[ExecutionResult]  # of a submitted program


Found = list[tuple[str, ...]]  # kind, detail and further tests of each finding about a problem
Submitted = TypeVar("Submitted")  # programs of a problem in the executor's queue


def findings_in_order(
    problems: Iterable[tuple[str, Problem]],
    journal: Journal,
    submit: Callable[[Problem], Submitted],
    find: Callable[[Problem, Submitted], Found],
) -> Iterator[Finding]:
    """Yield the findings about problems; the executor works while the next ones are read.

    Args:
        journal: Findings of an interrupted check, which are not looked for again; receives those of this one.
        submit: Submits the programs of a problem.
        find: Waits for these programs and returns what they show.

    """
    pending: deque[tuple[str, Problem, str, Submitted | None]] = deque()  # with the key in the journal

    def next_findings() -> Iterator[Finding]:
        """Yield those about the problem that was submitted first."""
        split, problem, key, submitted = pending.popleft()
        if (found := journal.find(key)) is None:
            assert submitted is not None
            found = find(problem, submitted)
            journal.add(key, found)
        for kind, detail, *tests in found:
            yield Finding(kind, split, problem.task_id, detail, tests=tuple(tests))

    for split, problem in problems:
        key = journal.key(problem)
        pending.append((split, problem, key, submit(problem) if journal.find(key) is None else None))
        if len(pending) == MAX_PENDING:
            yield from next_findings()
    while pending:
        yield from next_findings()


def check_references(
    problems: Iterable[tuple[str, Problem]],
    executor: Executor,
    journal: Journal,
    num_seeds: int = NUM_SEEDS,
    slow_s: float = SLOW_S,
) -> Iterator[Finding]:
    """Execute every reference, and every constant function that could pass; yield the findings.

    Args:
        journal: See `findings_in_order`.
        num_seeds: Runs per reference that may use `random`, each with a different seed; others run once.
        slow_s: Wall time over all tests of a problem above which its reference is slow, in seconds.

    Raises:
        ExecutorError: The executor failed, so a program has no verdicts.

    """

    def submit(problem: Problem) -> tuple[list[Run], list[tuple[str, Run]]]:
        sources = (problem.code, problem.setup, *problem.scored_tests, *problem.challenge_test_list)
        # A seed has no effect on other programs, so one run shows what they do.
        seeds = num_seeds if executor.packages or any(map(MAY_BE_RANDOM.search, sources)) else 1
        seeded = [_seeded_reference(problem, seed) for seed in range(seeds if problem.code else 0)]
        constants = [(value, executor.submit(program)) for value, program in constant_programs(problem)]
        return list(map(executor.submit, seeded)), constants

    def find(problem: Problem, submitted: tuple[list[Run], list[tuple[str, Run]]]) -> Found:
        references, constants = submitted
        found = list(_reference_findings(problem, list(map(executed, references)), slow_s))
        passing = [value for value, run in constants if executed(run).all_passed]
        return [*found, *(("constant", f"return {value}") for value in passing[:1])]

    return findings_in_order(problems, journal, submit, find)


def constant_programs(problem: Problem) -> list[tuple[str, Program]]:
    """Return the constant functions that could pass a problem's tests.

    Returns:
        (constant as source text, program to execute). Empty if two tests expect different values, or if no
        function under test is known.

    """
    functions = sorted(functions_under_test(problem))
    expected = set(map(_expected_literal, problem.scored_tests)) - {""}
    if not functions or len(expected) > 1:
        return []
    sources = {
        value: "\n".join(f"def {name}(*args, **kwargs):\n    return {value}" for name in functions)
        for value in sorted(expected or COMMON_CONSTANTS)
    }
    return [(value, as_program(problem, source)) for value, source in sources.items()]


def _seeded_reference(problem: Problem, seed: int) -> Program:
    # Below the code, not in the setup, on which it depends how a test is judged.
    program = as_program(problem, f"{problem.code}\n__import__('random').seed({seed})")
    # MBPP's references must pass the challenge tests too.
    return replace(program, test_list=problem.scored_tests + problem.challenge_test_list)


def executed(run: Run) -> ExecutionResult:
    """Return the result of a submitted program; raise ExecutorError if it has no verdicts."""
    result = run.result()
    if result.is_infra_failure:
        raise ExecutorError(f"the executor failed, so a program has no verdicts: {result.infra_error}")
    return result


def _reference_findings(
    problem: Problem, results: Sequence[ExecutionResult], slow_s: float
) -> Iterator[tuple[str, str]]:
    """Yield (kind, detail) for a problem and the results of its reference, one per seed."""
    for number, test in enumerate(problem.scored_tests, start=1):
        if (value := _inexact_value(test)) is not None:
            yield "inexact", f"test {number}: == {value!r}"
            break
    if not any(map(asserts, problem.scored_tests)):
        yield "untested", "no test executes an assert, a raise or a call of an assert method"
    if not results:
        return
    outcomes = {tuple(verdict.passed for verdict in result.verdicts) for result in results}
    if len(outcomes) > 1:
        yield "flaky", f"{sum(result.all_passed for result in results)} of {len(results)} runs pass"
    elif not results[0].all_passed:
        yield "failing", _describe_first_failure(results[0].verdicts)
    if max(result.duration_s for result in results) > slow_s:
        yield "slow", f"more than {slow_s:g} s"
    # The challenge tests, which come last, are not scored.
    reasons = [verdict.in_child_reason for verdict in results[0].verdicts[: len(problem.scored_tests)]]
    if marked := [(number, reason) for number, reason in enumerate(reasons, start=1) if reason is not None]:
        number, reason = marked[0]
        yield "in_child", f"{len(marked)} of {len(reasons)} tests; test {number}: {reason}"[:300]


MAX_EXACT = 2**53  # from here on not every integer is a float


def _inexact_value(test: str) -> float | None:
    """Return a float of MAX_EXACT or more to which a test compares something with ==, or None."""
    for node in ast.walk(parse(test)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            for side in (node.left, *node.comparators):
                value = getattr(side, "value", None)
                if isinstance(value, float) and MAX_EXACT <= abs(value) < float("inf"):
                    return value
    return None


def _describe_first_failure(verdicts: Sequence[Verdict]) -> str:
    number, verdict = next((n, v) for n, v in enumerate(verdicts, start=1) if not v.passed)
    # Addresses differ from run to run, and a finding must not.
    message = re.sub(r"0x[0-9a-f]{6,}", "0x...", verdict.message or "")
    outcome = "refused by the executor" if verdict.error_type in REFUSALS else verdict.status
    return f"test {number} of {len(verdicts)}: {outcome}, {verdict.error_type}: {message}"[:300]


def functions_under_test(problem: Problem) -> set[str]:
    """Return the entry point, or else the functions of the reference that the first test calls."""
    if problem.entry_point:
        return {problem.entry_point}
    called = {
        node.func.id
        for node in ast.walk(shared_tree(problem.test_list[0]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    if not problem.code:
        return called - set(dir(builtins))
    try:
        defined = {name for node in shared_tree(problem.code).body for name in defined_names(node)}
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return called & defined


def _expected_literal(test: str) -> str:
    """Return the literal that a test expects of a call, or "" if the test has another form."""
    match parse(test).body:
        case [ast.Assert(test=ast.Compare(left=ast.Call(), ops=[ast.Eq() | ast.Is()], comparators=[value]))]:
            try:
                return repr(ast.literal_eval(value))
            except (ValueError, TypeError, RecursionError, MemoryError):
                return ""
        case [ast.Assert(test=ast.Call(func=ast.Name()))]:
            return "True"
        case [ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name())))]:
            return "False"
    return ""

"""Strength of a problem's tests: whether they tell the reference from programs that differ in one place.

A mutant that passes every test counts only with a witness: an input, like those of the tests, on which it
differs from the reference. Witnesses as further hidden tests make the problem stronger.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from cocos.dataprep.checks.findings import Finding
from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.checks.mutants import Mutant, mutants
from cocos.dataprep.checks.reference_checks import (
    MAY_BE_RANDOM,
    Found,
    Run,
    executed,
    findings_in_order,
    functions_under_test,
)
from cocos.dataprep.checks.witnesses import further_inputs, inputs_of
from cocos.dataprep.expected_values import compute_values
from cocos.dataprep.formats.input_tests import equality, literal
from cocos.executor import Executor, Limits, Program
from cocos.files.python_parser import tree_of
from cocos.problems import Problem
from cocos.trajectories import as_program

MAX_MUTANTS = 40  # of one reference, evenly spread over its source
NUM_INPUTS = 60  # that are tried as witnesses
MAX_ADDED = 12  # tests that strengthen one problem
LIMITS = Limits(wall_s=2.0, cpu_s=1)  # of a mutant and of a reference, over all tests


def check_strength(
    problems: Iterable[tuple[str, Problem]], executor: Executor, journal: Journal
) -> Iterator[Finding]:
    """Yield a finding for each problem with survivors.

    Problems without a reference, without literal inputs, of standard input or with randomness have none.

    Args:
        journal: See `findings_in_order`.

    Raises:
        ExecutorError: The executor failed.

    """

    def submit(problem: Problem) -> tuple[list[Mutant], list[Run]]:
        chosen = _chosen(problem)
        sources = [problem.code, *(mutant.code for mutant in chosen)] if chosen else []
        return chosen, [executor.submit(_limited(problem, code)) for code in sources]

    def find(problem: Problem, submitted: tuple[list[Mutant], list[Run]]) -> Found:
        return _weakness(problem, *submitted, executor)

    return findings_in_order(problems, journal, submit, find)


def _chosen(problem: Problem) -> list[Mutant]:
    sources = (problem.code, problem.setup, *problem.scored_tests)
    is_judged = problem.code.strip() and not problem.is_script and not any(map(MAY_BE_RANDOM.search, sources))
    if not is_judged or tree_of(problem.code) is None:
        return []
    found = list(mutants(problem.code))
    step = max(1, -(-len(found) // MAX_MUTANTS))
    return found[::step]


def _limited(problem: Problem, code: str, tests: Sequence[str] = ()) -> Program:
    program = as_program(problem, code)
    return replace(program, test_list=tuple(tests) or program.test_list, limits=LIMITS)


def _weakness(problem: Problem, chosen: list[Mutant], runs: list[Run], executor: Executor) -> Found:
    """Return ("weak", detail, test ...) if a mutant survives: few tests, of which each survivor fails one."""
    results = list(map(executed, runs))
    if not results or not results[0].all_passed:
        return []
    passing = [mutant for mutant, result in zip(chosen, results[1:], strict=True) if result.all_passed]
    tests = _further_tests(problem, executor) if passing else []
    if not tests:
        return []
    judged = [executor.submit(_limited(problem, mutant.code, tests)) for mutant in passing]
    # Of a mutant that a test ends, the later tests did not run, and say nothing.
    fails = [
        {
            test
            for test, verdict in zip(tests, executed(future).verdicts, strict=True)
            if not verdict.passed and verdict.status != "not_run"
        }
        for future in judged
    ]
    survivors = [(mutant, failed) for mutant, failed in zip(passing, fails, strict=True) if failed]
    if not survivors:
        return []
    mutant, failed = survivors[0]
    count = f"{len(survivors)} of {len(chosen)}"
    detail = f"{count} mutants pass, as {mutant.change}; not {next(t for t in tests if t in failed)}"
    return [("weak", detail[:300], *_cover(tests, [failed for _, failed in survivors]))]


def _further_tests(problem: Problem, executor: Executor) -> list[str]:
    """Return tests of inputs like those of the problem's tests, which its reference passes."""
    calls = []
    for name in sorted(functions_under_test(problem)):
        if seen := inputs_of(problem.scored_tests, name):
            made = further_inputs(seen, NUM_INPUTS, Random(problem.task_id))
            calls += [f"{name}({', '.join(map(literal, arguments))})" for arguments in made]
    tests = []
    values = compute_values(problem, calls, executor, LIMITS.cpu_s)
    for call, (value, error) in zip(calls, values, strict=True):
        if error is None:
            try:
                tests.append(equality(call, value, atol=0))
            except ValueError:  # no source is equal to the value
                continue
    if not tests:
        return []
    verdicts = executed(executor.submit(_limited(problem, problem.code, tests))).verdicts
    return [test for test, v in zip(tests, verdicts, strict=True) if v.passed and not v.in_child]


def _cover(tests: Sequence[str], fails: list[set[str]]) -> tuple[str, ...]:
    """Return few tests, of which each set contains one: greedily the one that most sets contain."""
    chosen: list[str] = []
    while fails and len(chosen) < MAX_ADDED:
        best = max(tests, key=lambda test: sum(test in failed for failed in fails))
        chosen.append(best)
        fails = [failed for failed in fails if best not in failed]
    return tuple(chosen)

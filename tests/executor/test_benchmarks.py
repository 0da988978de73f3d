"""The public benchmarks: every reference solution passes, every HumanEvalFix bug fails, and two runs agree."""

import gzip
import json

import pytest

from cocos.executor import Executor, Limits, Program
from cocos.executor.plans.plans import plan_test
from cocos.problems import load_problems
from tests.support.executor import at_night, level_or_skip
from tests.support.paths import dataset

pytestmark = pytest.mark.processes

# Generous, because these runs may share the processors with other tests and do not measure speed.
LIMITS = Limits(wall_s=60, cpu_s=50)
BUG_LIMITS = Limits(wall_s=6, cpu_s=3)  # three of the bugs never end


def mbpp(name: str) -> list[Program]:
    return [
        Program(p.code, p.test_list + p.challenge_test_list, p.setup) for p in load_problems(dataset(name))
    ]


def human_eval() -> list[Program]:
    with gzip.open(dataset("HumanEval.jsonl.gz"), "rt") as file:
        rows = [json.loads(line) for line in file]
    return [
        Program(row["prompt"] + row["canonical_solution"], (f"{row['test']}\ncheck({row['entry_point']})",))
        for row in rows
    ]


def human_eval_fix(solution: str, limits: Limits = LIMITS) -> list[Program]:
    with open(dataset("humanevalpack_python.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    return [Program(row["declaration"] + row[solution], (row["test"],), limits=limits) for row in rows]


@pytest.fixture(scope="module", params=["namespaces", *at_night("docker")])
def executor(request):
    with Executor(sandbox=level_or_skip(request.param), limits=LIMITS) as executor:
        yield executor


@pytest.fixture(scope="module")
def verdicts_seen():
    """The verdicts of all references, from the first pass on."""
    return []


def test_every_reference_passes_with_the_same_verdicts_twice(executor, verdicts_seen):
    programs = [*mbpp("mbpp.jsonl"), *mbpp("sanitized-mbpp.json"), *human_eval()]
    programs += human_eval_fix("canonical_solution")
    assert len(programs) == 974 + 427 + 164 + 164
    for _ in range(1 if verdicts_seen else 2):  # one pass of the second level
        results = executor.run(programs)
        assert [program.code for program, r in zip(programs, results, strict=True) if not r.all_passed] == []
        verdicts_seen.append([[(v.status, v.in_child) for v in result.verdicts] for result in results])
        assert verdicts_seen[0] == verdicts_seen[-1]


def test_no_bug_of_human_eval_fix_passes_the_full_test(executor):
    results = executor.run(human_eval_fix("buggy_solution", BUG_LIMITS))
    assert sum(result.all_passed for result in results) == 0
    assert not any(result.is_infra_failure for result in results)


def test_no_test_of_human_eval_is_judged_in_the_candidates_process():
    programs = (*human_eval(), *human_eval_fix("canonical_solution"))
    tests = [test for program in programs for test in program.test_list]
    assert [test for test in tests if plan_test(test).kind != "driven"] == []

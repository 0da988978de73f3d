"""Tests that programs which are wrong in one place pass are weak, and witnesses make them strong."""

import ast
import random
from dataclasses import replace

import pytest

from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.checks.mutants import mutants
from cocos.dataprep.checks.strength import check_strength
from cocos.dataprep.checks.witnesses import further_inputs, inputs_of
from cocos.executor import Program
from cocos.problems import Problem, load_problems, save_problems

EVEN = "def even(n):\n    return n % 2 == 0\n"
LARGER = "def larger(a, b):\n    if a < b:\n        return b\n    return a\n"
WEAK = Problem("weak", "Say whether n is even.", ("assert even(2) == True", "assert even(6) == True"), EVEN)
STRONG = Problem(
    "strong",
    "Say whether n is an even number.",
    ("assert even(2) == True", "assert even(3) == False", "assert even(0) == True"),
    EVEN,
)
# The mutants `a <= b` and `not a < b` of larger: the first is equivalent.
EQUIVALENT = Problem(
    "larger", "", ("assert larger(1, 2) == 2", "assert larger(5, 3) == 5", "assert larger(2, 2) == 2"), LARGER
)


def test_a_mutant_is_another_program_that_parses_and_says_what_it_changes():
    source = "def f(xs, n=1):\n    total = 0\n    for x in xs[n:]:\n        if not x > 2 and x != n:\n            total += x * n\n            break\n    return -total\n"
    found = list(mutants(source))
    assert len({mutant.code for mutant in found}) == len(found) > 12
    plain = ast.unparse(ast.parse(source)).splitlines()
    for mutant in found:
        changed = [
            number
            for number, lines in enumerate(zip(plain, mutant.code.splitlines(), strict=True), 1)
            if len({*lines}) == 2
        ]
        assert len(changed) == 1
    changes = "\n".join(mutant.change for mutant in found)
    for change in (
        "`x > 2` becomes `x >= 2`",
        "`x * n` becomes `x + n`",
        "`break` becomes `continue`",
        "`0` becomes `1`",
    ):
        assert change in changes


SEEN = {
    "numbers": ([(3, 10), (5, 12)], lambda a, b: 3 <= a <= 5 and 10 <= b <= 12),
    "order": ([(1, 8), (2, 3), (7, 9)], lambda a, b: a <= b),
    "a length": ([([4, 1], 2), ([3, 9, 5], 3)], lambda xs, n: n == len(xs)),
    "an index": ([([4, 1], 0), ([3, 9, 5], 2)], lambda xs, i: i < len(xs)),
    "sorted lists": ([([1, 4, 9],), ([2, 2, 5, 8],)], lambda xs: xs == sorted(xs)),
    "distinct items": ([([4, 1, 3],), ([7, 2],)], lambda xs: len({*xs}) == len(xs)),
    "a grid": ([([[1, 2], [3, 4]],), ([[5, 6, 7], [8, 9, 0]],)], lambda rows: len({*map(len, rows)}) == 1),
    "characters": ([("abca",), ("cab",)], lambda text: {*text} <= {*"abc"} and 3 <= len(text) <= 4),
    "a member": ([("hello", "l"), ("abc", "a")], lambda text, char: char in text),
    "types": ([(True, None, 1.5, {"a": 1}), (False, None, 2.5, {"a": 4})], lambda b, n, x, d: isinstance(b, bool) and n is None and 1.5 <= x <= 2.5 and d.keys() == {"a"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_further_inputs_have_what_all_inputs_of_the_tests_have(name):
    seen, holds = SEEN[name]
    found = list(further_inputs(seen, 30, random.Random(0)))
    assert found and all(holds(*arguments) for arguments in found)
    assert not {*map(repr, found)} & {*map(repr, seen)} and len({*map(repr, found)}) == len(found)
    assert found == list(further_inputs(seen, 30, random.Random(0)))


def test_inputs_are_the_literal_arguments_of_calls():
    tests = (
        "assert f(1, [2]) == 3",
        "assert f(-1, []) == f(1, [2])",
        "x = 2\nassert f(x, []) == 0",
        "assert g(9) == f(0, b=1)",
    )
    assert inputs_of(tests, "f") == [(1, [2]), (-1, [])]


def findings(executor, *problems):
    found = check_strength([("test", problem) for problem in problems], executor, Journal(None))
    return {finding.task_id: finding for finding in found}


def test_what_an_interrupted_check_has_found_is_not_executed_again(executor, tmp_path):
    found = [
        list(check_strength([("test", WEAK), ("test", STRONG)], each, Journal(tmp_path / "journal")))
        for each in (executor, None)
    ]
    assert found[0] == found[1] and found[0]


def test_weak_tests_are_told_from_strong_ones_and_equivalent_mutants_do_not_count(executor):
    unjudged = Problem("none", "", WEAK.test_list), Problem("wrong", "", WEAK.test_list, LARGER)
    found = findings(executor, WEAK, STRONG, EQUIVALENT, *unjudged)
    assert found.keys() == {"weak"} and "`2` becomes `1`" in found["weak"].detail


def test_witnesses_pass_the_reference_and_make_the_tests_strong(executor):
    added = findings(executor, WEAK)["weak"].tests
    [result] = executor.run([Program(EVEN, added)])
    assert result.all_passed and added
    assert not findings(executor, replace(WEAK, hidden_test_list=added))


def test_strengthen_adds_hidden_tests_to_the_rows_that_are_weak_and_to_no_other(prepare, tmp_path):
    save_problems([WEAK, STRONG], tmp_path / "mine.jsonl")
    words = ("jsonl", "--input", tmp_path / "mine.jsonl", "--splits", 0, 0, 1, "--checks")
    assert prepare(*words, "--strengthen", "--output_dir", tmp_path / "out") == 0
    weak, strong = load_problems(tmp_path / "out/test.jsonl")
    assert weak.hidden_test_list and replace(weak, hidden_test_list=()) == WEAK and strong == STRONG

"""The standing adversary of tests/attack: it has teeth, its tests are strict, and it finds no hole."""

import os
import random

import pytest

from cocos.executor import Executor
from tests.attack.__main__ import Log, main
from tests.attack.adversary import HOLES, LIMITS, Adversary, plain_program, program_of
from tests.attack.forms import make_form
from tests.support.executor import EVERY_LEVEL, level_or_skip, offered

pytestmark = pytest.mark.processes

# A seed of its own for the tests, so that `make attack` does not repeat them.
SEED = int(os.environ.get("COCOS_ATTACK_SEED", "1000"))


@pytest.fixture(scope="module")
def adversary():
    level = offered("namespaces", "seccomp") or "rlimits"
    with Executor(2, LIMITS, level) as executor:
        yield Adversary(executor, SEED)


def test_a_right_program_passes_a_form_and_no_wrong_value_does_under_plain_python(adversary):
    chance = random.Random(5)
    forms = [make_form(chance) for _ in range(60)]
    right = adversary.plain([program_of(form, form.right) for form in forms])
    assert sum(right) >= 57  # some forms use up a value twice
    assert [form for form in forms if adversary.is_weak(form)] == []


def test_plain_python_is_deceived_by_many_of_the_liars(adversary):
    cases = [case for number in range(6) for case in adversary.round(number)]
    liars = [case.program for case in cases if case.family.startswith("objects that lie")]
    assert sum(adversary.plain(liars)) >= len(liars) / 6


def test_the_programs_follow_from_the_seed(adversary):
    assert adversary.round(7) == adversary.round(7) != adversary.round(8)
    codes = {case.program for number in range(10) for case in adversary.round(number)}
    assert len(codes) > 150


def test_the_adversary_finds_a_hole_where_plain_python_is_the_judge(adversary):
    class Credulous(Adversary):
        def first_results(self, cases):
            return self.executor.run([plain_program([case.program]) for case in cases])

    counts, found = Credulous(adversary.executor, SEED).run(range(3))
    assert "lie" in {finding["kind"] for finding in found}
    # Threads of a program disturb a run at any time, so its verdicts may differ.
    assert not any(key.endswith("\trefused") and "threads" not in key for key in counts)


def test_a_log_goes_on_where_it_was(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.append(12, {"pairs\tlie": 1, "right programs\tright": 3}, [{"kind": "lie", "family": "pairs"}])
    again = Log(tmp_path / "log.jsonl")
    assert again.next_round == 12 and again.counts.total() == 4 and len(again.holes) == 1
    assert [*again.table()][-2:] == ["4 programs, 1 holes", "honest tests: 3 passed, 0 refused (0.00%)"]


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_a_small_attack_finds_no_hole(level):
    with Executor(2, LIMITS, level_or_skip(level)) as executor:
        _, found = Adversary(executor, SEED).run(range(8))
    assert [finding for finding in found if finding["kind"] in HOLES] == []


@pytest.mark.nightly
def test_an_attack_of_ten_minutes_finds_no_hole(tmp_path):
    level = offered("namespaces", "seccomp") or "rlimits"
    options = ["--minutes", "10", "--seed", str(SEED + 1), "--sandbox", level]
    assert main([*options, "--output_dir", str(tmp_path)]) == 0

"""The adversary: rounds of programs that solve nothing, against tests, with plain Python as the referee.

Program and test run in one fresh process, inside the sandbox but without the judge. A pass is a hole if no
honest wrong value passes the same test, and

    refused     plain Python refuses the program, or
    lie         plain Python accepts it too, because an object of the program lies, and nothing is marked, or
    marked      the verdict is marked although the test is split and names no class: no program decides those.
"""

import ast
import random
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from cocos.executor import ExecutionResult, Executor, Limits, Program
from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.plans import plan_test
from tests.attack.cheats import Cheat, make_cheat
from tests.attack.forms import Form, make_form, wrong_programs

CHEATS_PER_ROUND = 12
ROUNDS_PER_BATCH = 12
TEETH_EVERY = 8  # of so many refused cheats one runs under plain Python, to see whether it cheats at all
LIMITS = Limits(wall_s=4, cpu_s=2)
REFUSED_RIGHT = "right, refused"
HOLES = ("refused", "lie", "marked", "no verdict")
# Runs programs with their test as plain Python does, one after the other, and says whether one is accepted.
REFEREE = """
def is_accepted(parts):
    import sys, types
    module = sys.modules["program"] = types.ModuleType("program")
    try:
        for part in parts:
            exec(part, module.__dict__)
    except BaseException:
        return False
    return True
def is_any_accepted(): return any(map(is_accepted, CASES))
CASES = """


class Pair(NamedTuple):
    """A program against a form."""

    form: Form
    cheat: Cheat

    @property
    def program(self) -> Program:
        return Program(self.form.program(self.cheat.code), self.form.tests, self.form.setup)


@dataclass(frozen=True)
class Finding:
    """A pass that must not be, or a right program that is refused.

    Attributes:
        kind: One of HOLES, or REFUSED_RIGHT.
        family: Family of the cheat.
        form: Name of the form.
        code: The program.
        setup: The setup.
        tests: The tests; the first one is meant.

    """

    kind: str
    family: str
    form: str
    code: str
    setup: str
    tests: tuple[str, ...]


class Adversary:
    """Attacks on one executor.

    Args:
        executor: It runs the pairs, and the referee's programs.
        seed: Of all rounds.

    """

    def __init__(self, executor: Executor, seed: int) -> None:
        self.executor = executor
        self.seed = seed

    def round(self, number: int) -> list[Pair]:
        """Return the pairs of a round; the first program is right."""
        chance = random.Random(f"{self.seed} {number}")
        form = make_form(chance)
        return [
            Pair(form, Cheat("right", form.right)),
            *(Pair(form, make_cheat(chance, form)) for _ in range(CHEATS_PER_ROUND)),
        ]

    def run(self, numbers: range) -> tuple[Counter[str], list[Finding]]:
        """Attack in these rounds.

        Returns:
            counts: "FAMILY\\tOUTCOME" -> number of pairs.
            found: The holes, and the right programs that were refused.

        """
        counts: Counter[str] = Counter()
        found = []
        rounds = [self.round(number) for number in numbers]
        pairs = [pair for round_ in rounds for pair in round_]
        results = self.first_results(pairs)
        outcomes = self._outcomes(pairs, results)
        for pair, outcome in zip(pairs, outcomes, strict=True):
            counts[f"{pair.cheat.family}\t{outcome}"] += 1
            if outcome in (*HOLES, REFUSED_RIGHT):
                found.append(
                    Finding(
                        outcome,
                        pair.cheat.family,
                        pair.form.name,
                        pair.program.code,
                        pair.form.setup,
                        pair.form.tests,
                    )
                )
        return counts, found

    def _outcomes(self, pairs: list[Pair], results: list[ExecutionResult]) -> list[str]:
        outcomes = [first_outcome(pair, result) for pair, result in zip(pairs, results, strict=True)]
        referred = [n for n, outcome in enumerate(outcomes) if outcome in ("passed", "marked", REFUSED_RIGHT)]
        sample = [n for n, outcome in enumerate(outcomes) if outcome == "failed"][::TEETH_EVERY]
        accepted = dict(
            zip([*referred, *sample], self.plain([pairs[n] for n in (*referred, *sample)]), strict=True)
        )
        for n in referred:
            if outcomes[n] == REFUSED_RIGHT:
                outcomes[n] = REFUSED_RIGHT if accepted[n] else "right, and refused by plain Python"
            elif self.is_weak(pairs[n].form):
                outcomes[n] = "weak"
            elif outcomes[n] == "passed":
                outcomes[n] = "lie" if accepted[n] else "refused"
        for n in sample:
            outcomes[n] = "failed, plain Python passes it" if accepted[n] else "failed, as under plain Python"
        return outcomes

    def first_results(self, pairs: list[Pair]) -> list[ExecutionResult]:
        """Run the pairs as the executor judges them; without a verdict again, as the machine may be the cause."""
        results = self.executor.run([pair.program for pair in pairs])
        return [
            self.executor.run([pair.program])[0] if result.is_infra_failure else result
            for pair, result in zip(pairs, results, strict=True)
        ]

    def plain(self, pairs: list[Pair]) -> list[bool]:
        """Return for each pair whether plain Python accepts the program."""
        results = self.executor.run([plain_program([pair]) for pair in pairs])
        return [result.all_passed for result in results]

    def is_weak(self, form: Form) -> bool:
        """Return whether plain Python accepts a wrong value."""
        wrong = [Pair(form, Cheat("wrong", code)) for code in wrong_programs()]
        [result] = self.executor.run([plain_program(wrong)])
        return result.all_passed


def plain_program(pairs: list[Pair]) -> Program:
    """Return a program that passes if plain Python accepts one of the pairs."""
    cases = [[pair.program.code, pair.form.setup, *pair.form.tests] for pair in pairs]
    return Program(f"{REFEREE}{cases!r}", ("assert is_any_accepted() is True",))


def first_outcome(pair: Pair, result: ExecutionResult) -> str:
    """Return the outcome of a pair before the referee has seen it."""
    if result.is_infra_failure:
        return "no verdict"
    verdict = result.verdicts[0]
    if pair.cheat.family == "right":
        return REFUSED_RIGHT if not verdict.passed else "right, marked" if verdict.in_child else "right"
    if not verdict.passed:
        return "failed"
    if not verdict.in_child:
        return "passed"
    return "marked" if is_split_without_class(pair.form) else "passed, marked"


def is_split_without_class(form: Form) -> bool:
    """Return whether the test is split and names no class of the program, which could decide it."""
    names = {node.id for node in ast.walk(ast.parse(form.tests[0])) if isinstance(node, ast.Name)}
    classes = {name for name in names if name[:1].isupper() and f"class {name}" in form.adapter}
    return not classes and isinstance(plan_test(form.tests[0], form.setup), Split)

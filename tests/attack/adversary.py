"""The adversary: rounds of programs against tests, with plain Python as the referee.

In a round of secrets, programs that solve nothing attack a test that only a secret value passes. A pass is a hole
if no honest wrong value passes the test, and it is unmarked:

    refused     plain Python refuses the program, or
    lie         plain Python accepts it, because an object of the program lies.

In a round of sequences, honest programs, most of them wrong, run tests of several statements. A hole is an unmarked
pass that plain Python refuses. Right programs of both rounds say how many honest tests are refused.
"""

import random
from collections import Counter
from typing import NamedTuple

from cocos.executor import ExecutionResult, Executor, Limits, Program, StdoutTest
from tests.attack.cheats import make_cheat
from tests.attack.forms import Form, each, make_form, wrong_programs
from tests.executor.test_generated import CODE, generated
from tests.executor.test_stdout_tests import SEARCHES

CHEATS_PER_ROUND, SEQUENCES_PER_ROUND, SEARCHES_PER_ROUND = 12, 6, 2
LIMITS = Limits(wall_s=4, cpu_s=2)
REFUSED_HONEST = "honest, refused"
HOLES = ("refused", "lie", "no verdict")
OUTCOMES = ("failed", "passed, marked", "weak", "right", REFUSED_HONEST, *HOLES)
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
# Prints the last long number that a search has found.
PRINT_FOUND = r"""
import contextlib, io, re
found = io.StringIO()
with contextlib.redirect_stdout(found), contextlib.suppress(Exception):
    exec({code!r})
print(*re.findall(r"\d{{20,}}", found.getvalue())[-1:])
"""
# Changes of the program for sequences: each makes it wrong in an honest way.
MISTAKES = r"""
xs.append(x)\n    return xs => return xs + [x] ;; xs.append(x)\n    return xs => xs.append(x) ;; return xs + [x] => xs.append(x)\n    return xs
raise ValueError("nothing to drop") => return None ;; raise ValueError("nothing to drop") => raise KeyError("nothing to drop") ;; xs.pop() => xs[-1] ;; xs.pop() => xs.pop(0)
xs.reverse() => return xs[::-1] ;; kept.append(xs) => kept.append(list(xs)) ;; kept[-1] if kept => kept[0] if kept ;; kept[-1] if kept => list(kept[-1]) if kept
buffer[:] = range(n % 5)\n    return buffer => return list(range(n % 5)) ;; n % 5 => n % 5 + 1 ;; sum(x for => len([x for ;; is int) => is int) or None ;; ",".join => ", ".join
function(xs) => function(list(xs)) ;; function(xs) => xs ;; {str(i): x => {i: x ;; yield x => yield from [x, x] ;; def stream(xs):\n    for x in xs: yield x => def stream(xs): return xs
= list(content) => = content ;; self.content.append(x)\n        return self => self.content += [x] ;; return self.content => return list(self.content) ;; len(self.content) => self.content
"""


SEARCHING = "searches: what to print"
HONEST = RIGHT, SEQUENCES = "right programs", "honest programs, statement sequences"


class Case(NamedTuple):
    """A program with its tests: a family of programs, and a form or the mistake in a sequence's program."""

    family: str
    name: str
    program: Program
    form: Form | None = None


class Adversary:
    """Attacks on one executor; all rounds follow from the seed."""

    def __init__(self, executor: Executor, seed: int) -> None:
        self.executor, self.seed = executor, seed

    def round(self, number: int) -> list[Case]:
        """Return the cases of a round; its first program is right."""
        chance = random.Random(f"{self.seed} {number}")
        form = make_form(chance)
        cheats = [(RIGHT, form.right), *(make_cheat(chance, form) for _ in range(CHEATS_PER_ROUND))]
        cases = [Case(family, form.name, program_of(form, code), form) for family, code in cheats]
        for _ in range(SEQUENCES_PER_ROUND):
            old, new = chance.choice(each(MISTAKES)).split(" => ") if chance.random() < 0.7 else ("", "")
            cases.append(Case(SEQUENCES, new, Program(CODE.replace(old, new), (generated(chance.choice),))))
        for code in chance.sample(SEARCHES, SEARCHES_PER_ROUND):
            # What is expected, in the second test the input of the first one.
            given, expected = (str(chance.getrandbits(99)) for _ in range(2))
            tests = StdoutTest(given, expected), StdoutTest(str(chance.random()), given)
            program = Program(PRINT_FOUND.format(code=code), tuple(test.source for test in tests))
            cases.append(Case(SEARCHING, code[:40], program))
        return cases

    def run(self, numbers: range) -> tuple[Counter[str], list[dict]]:
        """Return the number of programs by "FAMILY\\tOUTCOME", and the holes and the honest tests that were refused."""
        cases = [case for number in numbers for case in self.round(number)]
        outcomes = self._outcomes(cases, self.first_results(cases))
        found = [
            {"kind": outcome, "family": case.family, "name": case.name}
            | {part: getattr(case.program, part) for part in ("code", "setup", "test_list")}
            for case, outcome in zip(cases, outcomes, strict=True)
            if outcome in (*HOLES, REFUSED_HONEST)
        ]
        return Counter(f"{c.family}\t{o}" for c, o in zip(cases, outcomes, strict=True)), found

    def _outcomes(self, cases: list[Case], results: list[ExecutionResult]) -> list[str]:
        outcomes = [
            first_outcome(result, of_any=case.family == SEARCHING)
            for case, result in zip(cases, results, strict=True)
        ]
        honest = {n for n, case in enumerate(cases) if case.family in HONEST}
        played = [n for n, o in enumerate(outcomes) if o == "passed" or (o == "failed" and n in honest)]
        for n, is_accepted in zip(played, self.plain([cases[n].program for n in played]), strict=True):
            if n in honest:
                right = "right" if outcomes[n] == "passed" else REFUSED_HONEST
                outcomes[n] = right if is_accepted else "refused" if outcomes[n] == "passed" else "failed"
            elif cases[n].form is None:  # what no program can know was printed
                outcomes[n] = "refused"
            else:
                outcomes[n] = "weak" if self.is_weak(cases[n].form) else "lie" if is_accepted else "refused"
        return outcomes

    def first_results(self, cases: list[Case]) -> list[ExecutionResult]:
        """Run the programs."""
        return self.executor.run([case.program for case in cases])

    def plain(self, programs: list[Program]) -> list[bool]:
        """Return for each program whether plain Python accepts it, in a sandbox, as it may be hostile."""
        return [result.all_passed for result in self.executor.run([plain_program([p]) for p in programs])]

    def is_weak(self, form: Form) -> bool:
        """Return whether plain Python accepts a wrong value."""
        wrong = [program_of(form, code) for code in wrong_programs()]
        return self.executor.run([plain_program(wrong)])[0].all_passed


def program_of(form: Form, code: str) -> Program:
    """Return the program that answers a form with the `f` of `code`."""
    return Program(f"{code}\n{form.adapter}\n", form.tests, form.setup)


def plain_program(programs: list[Program]) -> Program:
    """Return a program that passes if plain Python accepts one of the programs."""
    cases = [[program.code, program.setup, *program.test_list] for program in programs]
    return Program(f"{REFEREE}{cases!r}", ("assert is_any_accepted() is True",))


def first_outcome(result: ExecutionResult, of_any: bool = False) -> str:
    """Return the outcome of the first test, or of any that passed, before the referee has seen the program."""
    if result.is_infra_failure:
        return "no verdict"
    verdict = next((v for v in result.verdicts if of_any and v.passed), result.verdicts[0])
    return "failed" if not verdict.passed else "passed, marked" if verdict.in_child else "passed"

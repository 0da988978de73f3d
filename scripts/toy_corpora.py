"""Pretraining documents of the laboratories' base models: problems with programs that a web page could show.

A corpus draws documents without end, and names the phrases that get one token each. Does not know tokenizers
or models.
"""

import json
import random
import re
from dataclasses import replace

import make_toy_feedback as feedback_lab
import make_toy_problems as first_lab
from make_toy_feedback import OPEN_FILTERS, OPEN_MAPS, OPEN_REDUCTIONS
from make_toy_problems import (
    FILTERS,
    MAPS,
    NUMBERS,
    REDUCTIONS,
    Composition,
    Operation,
    evaluator,
    write_code,
)

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.problems import Problem
from cocos.prompts import Feedback, answer, feedback_message, named_protocol

WORDS = named_protocol("cocos")
WRONG_SHARE = 0.75  # probability that an operation with a common error has it
FIX_SHARE = 0.3  # probability that the next version fixes an error
BREAK_SHARE = 0.03  # probability that the next version introduces an error
REPEAT_SHARE = 0.5  # probability that a later turn repeats the program, whatever the feedback says
FEEDBACK: tuple[Feedback, ...] = ("none", "verdict", "error", "error")  # an error twice as often
KEEP = "Please write the same program again."
CHANGE = "Please write a program that reads the task differently."


class VersionsCorpus:
    """Documents of the first laboratory: noisy programs, with later versions that fix a few errors.

    Args:
        repeats: Problems per composition of data/toy/train.jsonl.

    """

    def __init__(self, seed: int, repeats: int = 20) -> None:
        self.rng = random.Random(seed)
        self.items: list[tuple[Composition, int, str, Problem]] = []
        for composition in first_lab.split(seed=0)["train"] * repeats:
            n, name = self.rng.choice(NUMBERS), first_lab.draw_name(self.rng)
            problem = first_lab.make_problem("", composition, n, name, self.rng)
            if problem.test_list:
                self.items.append((composition, n, name, problem))

    def document(self) -> str:
        """Return four solved problems; two later versions of the program follow about half of them."""
        parts = []
        for composition, n, name, problem in self.rng.sample(self.items, 4):
            forms = [self._write(operation) for operation in composition]
            parts.append(WORDS.first_turn(problem) + answer(write_code(name, n, *forms)))
            for version in (2, 3) if self.rng.random() < 0.5 else ():
                forms = [self._revise(op, form) for op, form in zip(composition, forms, strict=True)]
                parts.append(f"# Version {version}\n{answer(write_code(name, n, *forms))}")
        return "\n\n".join(parts)

    def phrases(self) -> list[str]:
        """Return the fixed text of prompts and programs, without the text of a problem; `{n}` is a gap."""
        first_turn = WORDS.first_turn(Problem("", "{n}", ("{n}",)))
        style = write_code("{n}", "{n}", "{n}", "{n}", "{n}")
        forms = [form for op in FILTERS + MAPS + REDUCTIONS for form in (op.code, op.wrong)]
        return [first_turn, WORDS.later_turn(), answer(""), style, *forms]

    def _write(self, operation: Operation) -> str:
        return operation.wrong if operation.wrong and self.rng.random() < WRONG_SHARE else operation.code

    def _revise(self, operation: Operation, form: str) -> str:
        if form == operation.code:
            return operation.wrong if operation.wrong and self.rng.random() < BREAK_SHARE else form
        return operation.code if self.rng.random() < FIX_SHARE else form


class ReadingsCorpus:
    """Documents of the second laboratory: transcripts of four kinds, in which programs are readings.

    tests: The prompt shows tests, and the program is the reading that passes them.
    requests: After a random reading, a request stands where feedback can stand, and the next program does
        as it says: it is the same, or a reading that was not tried.
    feedback: The same place has feedback, but a later turn repeats the program or draws a reading, whatever
        the feedback says.
    copies: A program whose question is not shown is repeated on request. Without copies, the model does not
        learn to look at earlier programs within 2,400 of 3,000 steps.

    So the model can choose a reading by tests and keep or change a program, but does not know what feedback
    asks for.

    Args:
        repeats: Drawn problems per question of data/toy/feedback/train.jsonl.

    """

    def __init__(self, seed: int, repeats: int = 8) -> None:
        self.rng = random.Random(seed)
        pool = [question for kind in feedback_lab.split(seed=0)["train"] for question in kind]
        drawn = [
            feedback_lab.make_problems("", question, self.rng.choice(NUMBERS), self.rng)
            for question in pool * repeats
        ]
        self.items = [problems for problems in drawn if problems]

    def document(self) -> str:
        """Return two transcripts."""
        return "\n\n".join(self._transcript(problems) for problems in self.rng.sample(self.items, 2))

    def phrases(self) -> list[str]:
        """Return the fixed text of prompts and programs; `{n}` is a gap."""
        first_turns = [WORDS.first_turn(Problem("", "{n}", tests)) for tests in ((), ("{n}",))]
        style = write_code(feedback_lab.NAME, "{n}", "{n}", "{n}", "{n}")
        closed = [op.code for op in FILTERS + MAPS + REDUCTIONS]
        opened = [op.code for ops in OPEN_FILTERS + OPEN_MAPS + OPEN_REDUCTIONS for op in ops]
        turns = [*first_turns, WORDS.later_turn(), answer("")]
        test = f"assert {feedback_lab.NAME}({{n}}) == {{n}}"
        problem = Problem("", "", (test,) * feedback_lab.NUM_TESTS)
        verdicts = (Verdict(Status.FAILED, expected="{n}", actual="{n}"), Verdict(Status.PASSED))
        results = [ExecutionResult((verdict,) * feedback_lab.NUM_TESTS) for verdict in verdicts]
        feedback = [re.sub(r"\d", "{n}", feedback_message("error", problem, result)) for result in results]
        return [*turns, style, *closed, *opened, KEEP, CHANGE, *feedback]

    def _transcript(self, readings: list[Problem]) -> str:
        problem = self.rng.choice(readings)  # the reading that its tests mean
        kinds = {self._copies: 0.2, self._tests: 0.2, self._requests: 0.3, self._feedback: 0.3}
        [write] = self.rng.choices(list(kinds), list(kinds.values()))
        return write(problem, readings)

    def _copies(self, problem: Problem, readings: list[Problem]) -> str:
        copy = WORDS.later_turn(feedback=KEEP) + answer(problem.code)
        return WORDS.first_ending + answer(problem.code) + self.rng.choice((1, 2)) * copy

    def _tests(self, problem: Problem, readings: list[Problem]) -> str:
        shown = problem.test_list[: self.rng.choice((1, 2))]
        return WORDS.first_turn(replace(problem, test_list=shown)) + answer(problem.code)

    def _requests(self, problem: Problem, readings: list[Problem]) -> str:
        programs = [problem.code]
        text = WORDS.first_turn(replace(problem, test_list=())) + answer(problem.code)
        for _ in range(4):
            request = self.rng.choice((KEEP, CHANGE))
            others = [reading.code for reading in readings if reading.code != programs[-1]]
            untried = [code for code in others if code not in programs]
            programs.append(programs[-1] if request == KEEP else self.rng.choice(untried or others))
            text += WORDS.later_turn(feedback=request) + answer(programs[-1])
        return text

    def _feedback(self, problem: Problem, readings: list[Problem]) -> str:
        mode = self.rng.choice(FEEDBACK)
        program = self.rng.choice(readings).code
        text = WORDS.first_turn(replace(problem, test_list=())) + answer(program)
        for _ in range(self.rng.choice((0, 1, 1, 2, 2, 4))):
            feedback = feedback_message(mode, problem, run_tests(problem, program))
            if self.rng.random() >= REPEAT_SHARE:
                program = self.rng.choice(readings).code
            text += WORDS.later_turn(feedback=feedback) + answer(program)
        return text


def run_tests(problem: Problem, program: str) -> ExecutionResult:
    """Return the verdicts on a reading of the problem's question, as the executor gives them."""
    right, given = evaluator(problem.code), evaluator(program)
    verdicts = []
    for test in problem.test_list:
        xs = json.loads(test[test.index("(") + 1 : test.index(")")])
        expected, actual = right(xs), given(xs)
        verdicts.append(
            Verdict(Status.PASSED)
            if actual == expected
            else Verdict(Status.FAILED, expected=repr(expected), actual=repr(actual))
        )
    return ExecutionResult(tuple(verdicts))


Corpus = VersionsCorpus | ReadingsCorpus

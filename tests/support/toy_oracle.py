"""An oracle program, which measures what one, two and three attempts can reach on the second laboratory.

The oracle knows all readings of a question. In every turn it writes the first one that contradicts nothing in
its transcript: after a verdict it leaves out the readings that failed, after an error also those that give
another value than the quoted test expects. No model can do better, because readings are drawn evenly.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from make_toy_problems import evaluator

from cocos.executor import Executor
from cocos.extraction import extract_code
from cocos.generation.scripted import ScriptedGenerator
from cocos.metrics import correction_metrics
from cocos.problems import Problem
from cocos.prompts import DONE, Feedback, answer, named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin

MODES: tuple[Feedback, ...] = ("none", "verdict", "error")
TASK = re.compile(r"here is your task: (.*?)(?: Your code should|\n)")
PASSES = "The program above passes the tests."
FAILS = re.compile(r"The program above passes \d of the")
QUOTED = re.compile(r"^assert f\((.*?)\) == (.*)$", re.MULTILINE)


class Oracle:
    """A script for `ScriptedGenerator` that knows the readings of every question.

    Args:
        problems: All readings of every question, with references.

    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.readings: dict[str, list[str]] = {}  # text of the question -> its programs
        for problem in problems:
            self.readings.setdefault(problem.text, []).append(problem.code)

    def __call__(self, transcript: str) -> str:
        """Return the first reading that contradicts nothing in the transcript."""
        found = TASK.search(transcript)
        assert found, f"no task in {transcript!r}"
        attempts = transcript.split(DONE)
        possible = self.readings[found[1]]
        for attempt, feedback in pairwise(attempts):
            possible = [code for code in possible if _agrees(code, extract_code(attempt), feedback)]
        return answer(possible[0])


def _agrees(code: str, attempt: str, feedback: str) -> bool:
    """Return whether a reading can be right, given an attempt and the feedback on it."""
    if PASSES in feedback:
        return code == attempt
    if FAILS.search(feedback) and code == attempt:
        return False
    quoted = QUOTED.search(feedback)
    return quoted is None or evaluator(code)(eval(quoted[1])) == eval(quoted[2])


def measure(problems: Sequence[Problem], mode: Feedback, num_turns: int, executor: Executor) -> list[float]:
    """Return acc@1..acc@T of the oracle with one kind of feedback."""
    oracle, words = ScriptedGenerator(Oracle(problems)), named_protocol("cocos")
    played = rollout(begin(problems), oracle, executor, words, num_turns, Rules(feedback=mode))
    metrics = correction_metrics(played)
    return [metrics[f"acc_t{turn}"].value for turn in range(1, num_turns + 1)]

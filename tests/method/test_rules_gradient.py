"""The gradient under the rules of training: real turn loop, executor and feedback, against its expected value.

The policy writes one of two programs per turn. Its probabilities depend on what it is told, and its first
program decides, with early stop, whether there is a second turn. A program is the table of the tests that it
passes: two visible tests, then two hidden ones. The expected value is a sum over all trajectories, written
here without the project's rules and returns.
"""

import math
import random
from dataclasses import dataclass, replace

import pytest

from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import Problem
from cocos.prompts import own_protocol
from cocos.rewards import Objective, Score, grouped_returns, trained_advantages, turn_reward
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin

FIRST = ((1, 0, 0, 0), (1, 1, 1, 0))  # the programs of turn 1: the second one passes the visible tests
LATER = ((0, 0, 1, 0), (0, 1, 1, 1))  # the programs of turns 2, 3, ...
THETA = {
    "start": 0.4,
    "0 of": -0.9,
    "1 of": 0.6,
    "passes the": 1.2,
    "silence": 0.3,
}  # logit of the second one
TESTS = tuple(f"assert f({i}) == 1" for i in range(4))
PROBLEM = Problem("1", "?", TESTS[:2], hidden_test_list=TESTS[2:])
WORDS = own_protocol("short", "{text}", "{feedback}", is_chat=False)


@dataclass(frozen=True)
class Case:
    """Rules of a run, and the first programs that are given (by number); none: turn 1 is sampled."""

    feedback: str = "none"
    early_stop: bool = False
    is_hidden_paid: bool = False
    num_turns: int = 2
    given: tuple[int, ...] = ()
    credit: str = "turn"


CASES = {
    "feedback": Case(feedback="verdict"),
    "early stop": Case(early_stop=True),
    "early stop, trajectory": Case(early_stop=True, credit="trajectory"),
    "early stop, last": Case(early_stop=True, given=(0, 1), credit="last"),
    "offline first turns": Case(feedback="verdict", given=(0, 1)),
    "hidden rewards": Case(early_stop=True, is_hidden_paid=True),
    "all of them, three turns": Case("error", True, True, 3),
}
GAMMA = 0.5


def probability(key):
    """Return the probability of the second program."""
    return 1 / (1 + math.exp(-THETA[key]))


def reward(program, case):
    return sum(program[2:]) / 2 if case.is_hidden_paid else sum(program) / 4


def feedback(program, case):
    """Return the key of THETA in the state after a program."""
    if case.feedback == "none":
        return "silence"
    return "passes the" if all(program[:2]) else f"{sum(program[:2])} of"


def returns(rewards, turn, case):
    """Return G of a turn, from 1, by the definitions of the method page."""
    if case.credit == "turn":
        return sum(GAMMA ** (s - turn) * rewards[s - 1] for s in range(turn, case.num_turns + 1))
    steps = [now - before for before, now in zip([0.0, *rewards], rewards, strict=False)]
    return sum(GAMMA ** (case.num_turns - s) * step for s, step in enumerate(steps, start=1))


def expected_gradient(case):
    """Return the sum over all trajectories of probability * sum over sampled turns of d log pi * G."""
    gradient = dict.fromkeys(THETA, 0.0)

    def play(chance, programs, scores):
        has_stopped = case.early_stop and programs and all(programs[-1][:2])
        if len(programs) == case.num_turns or has_stopped:
            carried = programs + programs[-1:] * (case.num_turns - len(programs))
            rewards = [reward(program, case) for program in carried]
            for turn, key, score in scores:
                gradient[key] += chance * score * returns(rewards, turn, case)
            return
        turn, key = len(programs) + 1, feedback(programs[-1], case) if programs else "start"
        for action, program in enumerate(LATER if programs else FIRST):
            p = probability(key)
            step = (turn, key, action - p)  # d log pi / d logit = action - probability
            play(chance * (p if action else 1 - p), [*programs, program], [*scores, step])

    for number in case.given:
        play(1 / len(case.given), [FIRST[number]], [])
    if not case.given:
        play(1.0, [], [])
    return gradient


class Policy(ScriptedGenerator):
    """Generator that writes the programs with the probabilities above."""

    def __init__(self, seed):
        super().__init__(self.write)
        self.rng = random.Random(seed)

    def write(self, prompt):
        key = state(prompt)
        return text((FIRST if key == "start" else LATER)[self.rng.random() < probability(key)])


def text(program):
    return f"def f(i): return {program}[i]\n[DONE]"


def state(prompt):
    """Return the key of THETA in the state that a prompt describes."""
    message = prompt.rsplit("[DONE]", 1)[-1]
    if "[DONE]" not in prompt:
        return "start"
    return next((key for key in ("0 of", "1 of", "passes the") if key in message), "silence")


def estimates(case, executor, group, num_groups):
    """Return one gradient estimate per group, from played trajectories and the project's advantages."""
    prompts = [
        replace(t, given=(text(FIRST[case.given[i % len(case.given)]]),) if case.given else ())
        for i in range(num_groups)
        for t in begin([PROBLEM], group)
    ]
    rules = Rules(feedback=case.feedback, early_stop=case.early_stop, temperatures=(1.0,))
    played = rollout(prompts, Policy(seed=7), executor, WORDS, case.num_turns, rules)
    objective = Objective(case.num_turns, group, case.credit, GAMMA, 0.0, None, [0.0] * case.num_turns)
    num_unpaid = len(PROBLEM.test_list) if case.is_hidden_paid else 0
    rows_B = [[t.turns[turn - 1] for turn in objective.trained_turns] for t in played]
    scores = [
        Score(
            [turn_reward(turn.result, num_unpaid=num_unpaid) for turn in t.turns],
            [0.0 if turn.is_sampled else None for turn in rows],
        )
        for t, rows in zip(played, rows_B, strict=True)
    ]
    advantages_B_K = trained_advantages(grouped_returns(scores, objective), scores)
    found = [dict.fromkeys(THETA, 0.0) for _ in range(num_groups)]
    for i, (rows, advantage_K) in enumerate(zip(rows_B, advantages_B_K, strict=True)):
        for turn, advantage in zip(rows, advantage_K, strict=True):
            if advantage:
                key = state("".join(map(chr, turn.prompt_ids)))
                action = turn.completion.text == text((FIRST if key == "start" else LATER)[1])
                found[i // group][key] += advantage * (action - probability(key)) / group
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("group", [2, 4])
def test_the_estimate_is_the_expected_gradient_within_four_standard_errors(name, group, executor):
    case, n = CASES[name], 6_000 // group
    found = estimates(case, executor, group, n)
    for key, truth in expected_gradient(case).items():
        values = [gradient[key] for gradient in found]
        mean = sum(values) / n
        error = math.sqrt(sum((x - mean) ** 2 for x in values) / n / n)
        assert abs(mean - truth) <= 4 * error, key
        if truth:
            assert error < abs(truth) / 4, f"{key}: too large to tell a biased estimate from a right one"

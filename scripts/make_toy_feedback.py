"""Write the problems of the second laboratory, which one attempt cannot solve: data/toy/feedback.

A problem is a *reading* of a *question*: "Write a function f to find the sorted list of the squares of the
numbers in a list." can mean ascending or descending. One operation of a question is open: it has two or three
readings, and only the tests say which one is meant. Every reading of a question is a problem, so that one
attempt solves a half or a third of them, whatever the model. Each test tells each reading from every other:
a wrong reading fails all three tests, and the first of them says which reading is meant.

    python scripts/make_toy_feedback.py --seed 0 --output_dir data/toy/feedback
"""

import itertools
import random
from dataclasses import replace

from make_toy_problems import (
    FILTERS,
    MAPS,
    NUMBERS,
    REDUCTIONS,
    Composition,
    Evaluator,
    Operation,
    evaluator,
    parse_arguments,
    write_code,
    write_text,
    wrong_programs,
)

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.problems import Problem, save_problems

NAME = "f"  # the text names the function, because the prompt shows no test
NUM_TESTS = 3
# With two readings, and as many with three.
NUM_QUESTIONS = {"train": 400, "dev": 40, "test": 80, "boost": 52}


def readings(words: str, *codes: str) -> tuple[Operation, ...]:
    """Return the readings of an open operation: the same words with different codes."""
    return tuple(Operation(words, code) for code in codes)


OPEN_FILTERS = (
    readings("numbers up to {n}", " if x <= {n}", " if x < {n}"),  # including or excluding the limit
    readings("numbers down to {n}", " if x >= {n}", " if x > {n}"),
)
OPEN_MAPS = (
    readings("differences to {n} of the ", "x - {n}", "{n} - x"),
    readings("halves of the ", "x / 2", "x // 2"),  # exact, or rounded down
)
OPEN_REDUCTIONS = (
    readings("sorted list of the ", "sorted(ys)", "sorted(ys, reverse=True)"),
    readings("outer one of the ", "ys[0]", "ys[-1]"),
    readings("position of the largest of the ", "ys.index(max(ys))", "ys.index(max(ys)) + 1"),  # from 0 or 1
    # Of equals, the first or the last.
    readings("index of the smallest of the ", "ys.index(min(ys))", "len(ys) - 1 - ys[::-1].index(min(ys))"),
    readings("collection of the ", "ys", "tuple(ys)", "set(ys)"),
    readings("text of the ", "','.join(map(str, ys))", "' '.join(map(str, ys))", "';'.join(map(str, ys))"),
    readings("range of the ", "max(ys) - min(ys)", "(min(ys), max(ys))", "[min(ys), max(ys)]"),
)

Question = tuple[Composition, ...]  # its readings: compositions with the same words


def questions() -> list[Question]:
    """Return every question with one open operation whose readings can be told apart by tests."""
    rng = random.Random(0)
    taken = {operation[0].words for operation in OPEN_FILTERS + OPEN_MAPS + OPEN_REDUCTIONS}
    filters, maps, reductions = (
        [(operation,) for operation in kind if operation.words not in taken]
        for kind in (FILTERS, MAPS, REDUCTIONS)
    )
    slots = itertools.chain(
        itertools.product(OPEN_FILTERS, maps, reductions),
        itertools.product(filters, OPEN_MAPS, reductions),
        itertools.product(filters, maps, OPEN_REDUCTIONS),
    )
    all_questions = [tuple(itertools.product(*slot)) for slot in slots]
    return [q for q in all_questions if all(make_tests(q, reading, NUMBERS[0], rng) for reading in q)]


def split(seed: int) -> dict[str, list[list[Question]]]:
    """Split the questions without overlap; per split one list with two readings, one with three."""
    pools: dict[str, list[list[Question]]] = {name: [] for name in ("train", "dev", "test")}
    rng = random.Random(seed)
    for num_readings in (2, 3):
        deck = [question for question in questions() if len(question) == num_readings]
        rng.shuffle(deck)
        dev, test = round(0.1 * len(deck)), round(0.45 * len(deck))
        for name, part in (("dev", deck[:dev]), ("test", deck[dev:test]), ("train", deck[test:])):
            pools[name].append(part)
    return pools


def make_tests(question: Question, meant: Composition, n: int, rng: random.Random) -> tuple[str, ...]:
    """Draw the tests of a reading; () if draws keep failing.

    The readings of the question give different values in every test. Every program with a common error or a
    forgotten operation fails a test.
    """
    programs = [evaluator(write_code(NAME, n, *(op.code for op in reading))) for reading in question]
    right = programs[question.index(meant)]
    wrong = [evaluator(write_code(NAME, n, *codes)) for codes in wrong_programs(meant)]
    for _ in range(100):
        inputs = [draw_input(programs, n, rng) for _ in range(NUM_TESTS)]
        if not all(inputs):
            return ()
        if all(any(program(xs) != right(xs) for xs in inputs) for program in wrong):
            return tuple(f"assert {NAME}({xs}) == {right(xs)!r}" for xs in inputs)
    return ()


def draw_input(programs: list[Evaluator], n: int, rng: random.Random) -> list[int]:
    """Draw a list for which every program returns a value of its own; [] after 100 failed draws."""
    for _ in range(100):
        xs = rng.sample([n, *rng.choices(range(10), k=4)], 5)
        values = [program(xs) for program in programs]
        if None not in values and all(a != b for a, b in itertools.combinations(values, 2)):
            return xs
    return []


def make_problems(prefix: str, question: Question, n: int, rng: random.Random) -> list[Problem]:
    """Return a problem for each reading of a question; [] if a reading has no tests."""
    problems = []
    for letter, reading in zip("abc", question, strict=False):
        text = write_text(reading, n, f"a function {NAME}")
        code = write_code(NAME, n, *(operation.code for operation in reading))
        problems.append(Problem(f"{prefix}-{letter}", text, make_tests(question, reading, n, rng), code))
    return problems if all(problem.test_list for problem in problems) else []


def draw_problems(prefix: str, pool: list[Question], count: int, rng: random.Random) -> list[Problem]:
    """Draw the problems of `count` questions; the questions of the pool occur about equally often."""
    problems: list[Problem] = []
    num_drawn = 0
    while num_drawn < count:
        for question in rng.sample(pool, min(len(pool), count - num_drawn)):
            drawn = make_problems(f"{prefix}-{len(question)}.{num_drawn}", question, rng.choice(NUMBERS), rng)
            problems += drawn
            num_drawn += bool(drawn)
    return problems


def main() -> None:
    """Write train.jsonl, dev.jsonl, test.jsonl and boost.jsonl."""
    args = parse_arguments(PlainParser(description=__doc__), "data/toy/feedback")
    pools, rng = split(args.seed), random.Random(args.seed)
    for name, count in NUM_QUESTIONS.items():
        kinds = pools["train" if name == "boost" else name]
        problems = [p for pool in kinds for p in draw_problems(name, pool, count, rng)]
        if name == "train":
            problems = [replace(problem, code="") for problem in problems]
        save_problems(problems, args.output_dir / f"{name}.jsonl")
        print(f"{args.output_dir / name}.jsonl: {2 * count} questions, {len(problems)} problems")


if __name__ == "__main__":
    run_command(main)

"""Write the laboratory's problems: a small language of list functions, in MBPP format.

A problem composes a filter, a map and a reduction: "Write a function to find the sum of the squares of the
even numbers in a list." Some operations have a common error ("greater than" as `>=`, "doubles" as `x * x`).
The three asserts of a problem reject every program with such errors or with forgotten operations, in any
combination. No composition of test.jsonl or dev.jsonl occurs in another file.

    python scripts/make_toy_problems.py --seed 0 --output_dir data/toy
"""

import argparse
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.output_folder import check_output_folder
from cocos.problems import Problem, save_problems


@dataclass(frozen=True)
class Operation:
    """One step of a program: its description, its code, and the code of its common error.

    `{n}` stands for the problem's number. `wrong` is "" if the operation has no common error. Problems in
    boost.jsonl, the file with reference solutions, use only operations that are `taught`.
    """

    words: str
    code: str
    wrong: str = ""
    taught: bool = True


FILTERS = (
    Operation("numbers", ""),
    Operation("even numbers", " if x % 2 == 0"),
    Operation("odd numbers", " if x % 2 == 1"),
    Operation("numbers other than {n}", " if x != {n}"),
    Operation("numbers of at least {n}", " if x >= {n}"),
    Operation("numbers of at most {n}", " if x <= {n}"),
    Operation("numbers greater than {n}", " if x > {n}", " if x >= {n}"),
    Operation("numbers less than {n}", " if x < {n}", " if x <= {n}", taught=False),
)
MAPS = (
    Operation("", "x"),
    Operation("successors of the ", "x + 1"),
    Operation("predecessors of the ", "x - 1"),
    Operation("negatives of the ", "-x"),
    Operation("squares of the ", "x * x"),
    Operation("cubes of the ", "x ** 3"),
    Operation("doubles of the ", "2 * x", "x * x"),
    Operation("triples of the ", "3 * x", "x ** 3", taught=False),
    Operation("halves of the ", "x / 2", "x // 2", taught=False),
    Operation("remainders by {n} of the ", "x % {n}", "x // {n}", taught=False),
)
REDUCTIONS = (
    Operation("list of the ", "ys"),
    Operation("sum of the ", "sum(ys)"),
    Operation("last of the ", "ys[-1]"),
    Operation("number of ", "len(ys)"),
    Operation("ascending list of the ", "sorted(ys)"),
    Operation("descending list of the ", "sorted(ys, reverse=True)", "sorted(ys)"),
    Operation("largest of the ", "max(ys)", "ys[-1]"),
    Operation("smallest of the ", "min(ys)", "ys[0]", taught=False),
    Operation("first of the ", "ys[0]", "ys[1]", taught=False),
    Operation("number of different ", "len(set(ys))", "len(ys)", taught=False),
)
NOTHING = (FILTERS[0], MAPS[0], REDUCTIONS[0])  # replaces an operation that was forgotten
NUMBERS = (3, 4, 5, 6)
NAMES = (
    "amber arc bell birch cedar cove delta dune ember edge flint fork gate grove hazel hill isle ivory "
    "jade kite knot lane lemon linen maple mint moss nest north oak olive onyx pearl pine plum pond "
    "quartz quill raven reed river robin rose sable sage shore slate snow spruce stone storm swan teal "
    "thorn tide vale velvet vine willow"
)

Composition = tuple[Operation, Operation, Operation]
Evaluator = Callable[[list[int]], object]


def compositions() -> list[Composition]:
    """Return every composition that three asserts can distinguish from all its wrong programs."""
    rng = random.Random(0)
    return [c for c in itertools.product(FILTERS, MAPS, REDUCTIONS) if make_tests(c, 4, "f", rng)]


def split(seed: int) -> dict[str, list[Composition]]:
    """Split the compositions: 5 % to dev, 20 % to test, the rest to train, without overlap."""
    deck = compositions()
    random.Random(seed).shuffle(deck)
    dev, test = len(deck) // 20, len(deck) // 4
    return {"dev": deck[:dev], "test": deck[dev:test], "train": deck[test:]}


def write_code(name: str, n: int, filter_code: str, map_code: str, reduction_code: str) -> str:
    """Return the program with these operations, in the one style of this language."""
    body = f"def {name}(xs):\n    ys = [{map_code} for x in xs{filter_code}]\n    return {reduction_code}"
    return body.replace("{n}", str(n))


def write_text(composition: Composition, n: int, function: str = "a function") -> str:
    """Return the task in words."""
    words = "".join(operation.words for operation in (composition[2], composition[1], composition[0]))
    return f"Write {function} to find the {words} in a list.".replace("{n}", str(n))


def draw_name(rng: random.Random) -> str:
    """Draw a function name unrelated to the task, so that a model must copy it from the tests."""
    return rng.choice(NAMES.split())


def make_problem(task_id: str, composition: Composition, n: int, name: str, rng: random.Random) -> Problem:
    """Return a problem for a composition: its text, three asserts, and the reference solution."""
    code = write_code(name, n, *(operation.code for operation in composition))
    return Problem(task_id, write_text(composition, n), make_tests(composition, n, name, rng), code)


def make_tests(composition: Composition, n: int, name: str, rng: random.Random) -> tuple[str, ...]:
    """Draw three asserts that the reference passes and no wrong program passes; () after 400 failed draws."""
    right = evaluator(write_code("f", n, *(operation.code for operation in composition)))
    wrong = [evaluator(write_code("f", n, *codes)) for codes in wrong_programs(composition)]
    for _ in range(400):
        # "greater than n" and its common error differ at n only, so n is always among the numbers.
        inputs = [rng.sample([n, *rng.choices(range(10), k=4)], 5) for _ in range(3)]
        values = [right(xs) for xs in inputs]
        if all(v is not None and v != [] for v in values) and all(
            any(program(xs) != value for xs, value in zip(inputs, values, strict=True)) for program in wrong
        ):
            return tuple(f"assert {name}({xs}) == {value}" for xs, value in zip(inputs, values, strict=True))
    return ()


def wrong_programs(composition: Composition) -> list[tuple[str, ...]]:
    """Return the codes of each program with a common error or a forgotten operation in one place or more."""
    right = tuple(operation.code for operation in composition)
    choices = [
        dict.fromkeys((operation.code, operation.wrong or operation.code, nothing.code))
        for operation, nothing in zip(composition, NOTHING, strict=True)
    ]
    return [codes for codes in itertools.product(*choices) if codes != right]


@cache
def evaluator(code: str) -> Evaluator:
    """Return the function that `code` defines; it returns None where the program raises."""
    namespace: dict[str, Callable[[list[int]], object]] = {}
    exec(code, namespace)

    def evaluate(xs: list[int]) -> object:
        try:
            return namespace["f"](xs)
        except (ArithmeticError, IndexError, ValueError):
            return None

    return evaluate


def make_problems(prefix: str, pool: list[Composition], count: int, rng: random.Random) -> list[Problem]:
    """Draw `count` different problems from a pool; compositions occur about equally often."""
    problems: dict[tuple[str, ...], Problem] = {}
    while len(problems) < count:
        for composition in rng.sample(pool, min(len(pool), count - len(problems))):
            n, name = rng.choice(NUMBERS), draw_name(rng)
            problem = make_problem(f"{prefix}-{len(problems)}", composition, n, name, rng)
            if problem.test_list:
                problems.setdefault(problem.test_list, problem)
    return list(problems.values())


def is_laboratory(folder: Path) -> bool:
    """Return whether a folder is one of the laboratories, whose files are made again."""
    return folder.resolve().is_relative_to(Path(__file__).resolve().parents[1] / "data/toy")


def parse_arguments(parser: PlainParser, output_dir: str) -> argparse.Namespace:
    """Parse the arguments of a script that writes files of a laboratory, and make the output folder."""
    parser.add_argument("--seed", type=int, default=0, help="equal seeds write equal bytes (default: 0)")
    parser.add_argument(
        "--output_dir", type=Path, default=Path(output_dir), help=f"output folder (default: {output_dir})"
    )
    args = parser.parse_args()
    check_output_folder(args.output_dir, is_laboratory)
    args.output_dir.mkdir(parents=True, exist_ok=True)
    return args


def main() -> None:
    """Write train.jsonl, boost.jsonl, dev.jsonl and test.jsonl."""
    args = parse_arguments(PlainParser(description=__doc__), "data/toy")
    pools = split(args.seed)
    taught = [c for c in pools["train"] if all(operation.taught for operation in c)]
    rng = random.Random(args.seed)
    files = {
        "train": [replace(p, code="") for p in make_problems("train", pools["train"], 2000, rng)],
        "boost": make_problems("boost", taught, 256, rng),
        "dev": make_problems("dev", pools["dev"], 100, rng),
        "test": make_problems("test", pools["test"], 400, rng),
    }
    for name, problems in files.items():
        save_problems(problems, args.output_dir / f"{name}.jsonl")
        print(f"{args.output_dir / name}.jsonl: {len(problems)} problems")


if __name__ == "__main__":
    run_command(main)

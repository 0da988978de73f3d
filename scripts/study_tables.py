"""Results of the study: the rows of its CSV files, and the tables and paired tests of docs/study.md.

Does not know how arms are run (study.py) or drawn (study_figures.py).
"""

import json
from collections.abc import Iterable, Sequence
from math import nan, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from result_files import fill, load_csv

from cocos.files.markdown import markdown_table
from cocos.problems import load_problems

DOCS = Path(__file__).resolve().parent.parent / "docs"
STUDY = DOCS / "study"


class Outcome(NamedTuple):
    """Held-out problems that one model solves after one turn."""

    lab: str  # name of the laboratory
    arm: str  # name of the arm
    seed: int  # seed of training and evaluation
    feedback: str  # feedback at test time
    turn: int  # turn, from 1
    right: str  # a character per problem, in the order of the file: 1 if every test passes, otherwise 0

    @property
    def accuracy(self) -> float:
        """Share of problems solved, in [0, 1]."""
        return self.right.count("1") / len(self.right)


class Point(NamedTuple):
    """Greedy accuracy on the dev problems during training."""

    lab: str  # name of the laboratory
    arm: str  # name of the arm
    seed: int  # seed of the run
    update: int  # updates so far, counted across stages
    tokens: int  # sampled tokens so far, counted across stages
    acc_1: float  # accuracy of turn 1, in [0, 1]
    acc_last: float  # accuracy of the last turn of training


def read_outcomes(lab: str, arm: str, seed: int, feedback: str, folder: Path) -> list[Outcome]:
    """Read the outcome of every turn from the samples.jsonl of an evaluation."""
    with (folder / "samples.jsonl").open(encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if "turns" in row]
    return [
        Outcome(lab, arm, seed, feedback, turn, "".join(str(int(t["is_right"])) for t in turns))
        for turn, turns in enumerate(zip(*(row["turns"] for row in rows), strict=True), start=1)
    ]


def read_curve(lab: str, arm: str, seed: int, folder: Path) -> list[Point]:
    """Read the dev evaluations of an arm's stages from its newest checkpoints."""
    points = []
    updates_before = tokens_before = 0
    for stage in sorted(folder.glob("stage*")):
        states = stage.glob("checkpoint-*/trainer_state.json")
        latest = max(states, key=lambda path: int(path.parent.name.rpartition("-")[2]))
        state = json.loads(latest.read_text(encoding="utf-8"))
        tokens = 0
        for log in state["log_history"]:
            tokens = log.get("sampled_tokens_total", tokens)
            if "eval_acc_t1" in log:
                accuracies = [log.get(f"eval_acc_t{turn}", nan) for turn in range(1, 10)]
                last = [acc for acc in accuracies if acc == acc][-1]
                point = (updates_before + log["step"], tokens_before + int(tokens), accuracies[0], last)
                points.append(Point(lab, arm, seed, *point))
        updates_before += state["global_step"]
        tokens_before += int(tokens)
    return points


PAGE = DOCS / "study.md"
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantiles of Student's t by number of seeds
GOAL = 0.9  # dev accuracy of the last turn whose cost is compared
TEST_DATA = {"first": "toy/test.jsonl", "feedback": "toy/feedback/test.jsonl"}  # in data/
# Laboratory, feedback at test time and turn of each ranking.
RANKINGS = (
    ("first", "none", 2),
    ("feedback", "verdict", 2),
    ("feedback", "verdict", 3),
    ("feedback", "error", 2),
)
NUM_RESAMPLES = 2000
LEVEL = 0.99  # of the interval of a pair: with a hundred pairs, about one is told apart by chance

Key = tuple[str, str, str, int]  # laboratory, arm, feedback at test time, seed


class Spread(NamedTuple):
    """Mean over the seeds, and half the width of its 95 % confidence interval (Student's t)."""

    mean: float
    half: float


def spread(values: Sequence[float]) -> Spread:
    """Return mean and half-width, for example (0.9, 0.8, 0.7) -> 0.8 and 4.303 * 0.1 / sqrt(3) = 0.248."""
    half = T_95[len(values)] * stdev(values) / sqrt(len(values)) if len(values) > 1 else float("nan")
    return Spread(mean(values), half)


def cell(values: Sequence[float], scale: float = 100.0, digits: int = 1) -> str:
    """Return mean and half-width, by default in percent; "" without values."""
    if not values:
        return ""
    middle, half = spread(values)
    return f"{scale * middle:.{digits}f} ± {scale * half:.{digits}f}"


def by_arm(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Group rows by arm, in the order of the file."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(row.arm, []).append(row)
    return groups


def shares(outcomes: Sequence[Outcome], turn: int) -> list[float]:
    """Return the accuracy after a turn, one number per seed."""
    return [outcome.accuracy for outcome in outcomes if outcome.turn == turn]


def changes(outcomes: Sequence[Outcome], before: str, after: str) -> list[float]:
    """Return the share of problems that are `before` at turn 1 and `after` at turn 2, one number per seed."""
    first, second = ([o.right for o in outcomes if o.turn == turn] for turn in (1, 2))
    return [
        sum(pair == (before, after) for pair in zip(a, b, strict=True)) / len(a)
        for a, b in zip(first, second, strict=True)
    ]


def result_row(outcomes: Sequence[Outcome], turns: Sequence[int]) -> list[str]:
    """Return accuracies after the turns, delta, i->c and c->i from turn 1 to turn 2."""
    gained, lost = changes(outcomes, "0", "1"), changes(outcomes, "1", "0")
    deltas = [i2c - c2i for i2c, c2i in zip(gained, lost, strict=True)]
    return [*(cell(shares(outcomes, turn)) for turn in turns), cell(deltas), cell(gained), cell(lost)]


def result_table(outcomes: Sequence[Outcome], lab: str, feedback: str) -> str:
    """Return the results of a laboratory with one kind of feedback at test time: a row per arm."""
    rows = [o for o in outcomes if (o.lab, o.feedback) == (lab, feedback)]
    turns = [turn for turn in (1, 2, 3, 5) if turn <= max(o.turn for o in rows)]
    header = ["arm", *(f"acc@{turn}" for turn in turns), "delta", "i→c", "c→i"]
    return markdown_table(header, [[arm, *result_row(own, turns)] for arm, own in by_arm(rows).items()])


def speed_table(points: Sequence[Point]) -> str:
    """Return what each arm of the first laboratory needs to reach the goal on the dev problems."""
    rows = []
    for arm, own in by_arm(point for point in points if point.lab == "first").items():
        seeds = sorted({point.seed for point in own})
        reached = [point for seed in seeds if (point := first_at_goal(own, seed))]
        updates = cell([point.update for point in reached], scale=1.0)
        tokens = cell([point.tokens for point in reached], scale=1e-3)
        rows.append([arm, f"{len(reached)} of {len(seeds)}", updates, tokens])
    goal = f"acc ≥ {100 * GOAL:.0f} %"
    return markdown_table(["arm", f"seeds with {goal}", "updates", "sampled tokens, thousands"], rows)


def first_at_goal(points: Iterable[Point], seed: int) -> Point | None:
    """Return a seed's first evaluation in which the last turn reaches the goal; None if there is none."""
    return next((p for p in points if p.seed == seed and p.acc_last >= GOAL), None)


def right_grid(outcomes: Sequence[Outcome], turn: int) -> np.ndarray:
    """Return the outcomes of one arm after a turn: 1 or 0, shape (seeds, problems), in the order of seeds."""
    rows = sorted((o for o in outcomes if o.turn == turn), key=lambda o: o.seed)
    return np.array([[int(c) for c in o.right] for o in rows])


def resampled_means(right: np.ndarray, questions: Sequence[str]) -> np.ndarray:
    """Return the accuracy of an arm in every bootstrap sample of seeds and questions.

    All arms get the same samples, so that the difference of two results is a paired one. The readings of a
    question stay together: a model that answers one reading misses the others.

    Args:
        right: Outcomes, shape (seeds, problems).

    """
    names, question_of = np.unique(np.array(questions), return_inverse=True)
    num_seeds, rng = len(right), np.random.default_rng(0)
    sums = np.zeros((len(names), num_seeds))  # (questions, seeds)
    np.add.at(sums, question_of, right.T)
    seeds = rng.multinomial(num_seeds, [1 / num_seeds] * num_seeds, NUM_RESAMPLES)
    drawn = rng.multinomial(len(names), [1 / len(names)] * len(names), NUM_RESAMPLES)
    return ((seeds @ sums.T) * drawn).sum(1) / (num_seeds * (drawn @ np.bincount(question_of)))


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the bootstrap interval of a difference from its values in all samples."""
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def ranking_table(
    outcomes: Sequence[Outcome], lab: str, feedback: str, turn: int, questions: Sequence[str]
) -> str:
    """Return the arms by accuracy, each with the places of the arms that it is told apart from."""
    groups = by_arm(o for o in outcomes if (o.lab, o.feedback) == (lab, feedback))
    grids = {arm: right_grid(own, turn) for arm, own in groups.items()}
    order = sorted(grids, key=lambda arm: -grids[arm].mean())
    means = [resampled_means(grids[arm], questions) for arm in order]
    rows = []
    for place, arm in enumerate(order):
        better, unclear, worse = [], [], []
        for other in range(len(order)):
            if other != place:
                low, high = interval(means[place] - means[other])
                (better if low > 0 else worse if high < 0 else unclear).append(other + 1)
        accuracy = f"{100 * grids[arm].mean():.1f}"
        rows.append([str(place + 1), arm, accuracy, *map(places, (better, unclear, worse))])
    header = ["", "arm", f"acc@{turn}", "better than", "not told apart from", "worse than"]
    return markdown_table(header, rows)


def places(numbers: Sequence[int]) -> str:
    """Return numbers with runs joined, for example [1, 2, 3, 5] -> "1-3, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def tables(outcomes: Sequence[Outcome], points: Sequence[Point]) -> dict[str, str]:
    """Return every table of the page by the name in its marker lines."""
    made = {"first results": result_table(outcomes, "first", "none"), "first speed": speed_table(points)}
    for feedback in ("none", "verdict", "error"):
        made[f"feedback results {feedback}"] = result_table(outcomes, "feedback", feedback)
    for lab, feedback, turn in RANKINGS:
        questions = [p.text for p in load_problems(DOCS.parent / "data" / TEST_DATA[lab])]
        made[f"{lab} ranking {feedback} {turn}"] = ranking_table(outcomes, lab, feedback, turn, questions)
    return made


def write_page(page: Path = PAGE) -> str:
    """Write the tables into the page from the CSV files; return them."""
    made = tables(load_csv(STUDY / "outcomes.csv", Outcome), load_csv(STUDY / "curves.csv", Point))
    page.write_text(fill(page.read_text(encoding="utf-8"), made), encoding="utf-8")
    return "\n\n".join(f"{name}\n{table}" for name, table in made.items())

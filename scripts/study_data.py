"""Measurements of the study: the rows of its CSV files, and how they are read from finished runs.

Does not know how arms are run (study.py) or shown (study_tables.py, study_figures.py).
"""

import json
from math import nan
from pathlib import Path
from typing import NamedTuple

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

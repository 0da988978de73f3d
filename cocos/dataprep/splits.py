"""Splits of a preparation: the split of each problem, and hidden tests.

The split of a problem, and its hidden tests, depend only on the seed and on the problem, so a set of any size
is divided while it is streamed. Problems with the same text, or of the same group, are in the same split.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from cocos.dataprep.checks.tokens import normalize_text
from cocos.dataprep.formats.conversion import Converted
from cocos.problems import Problem

ASSIGNED_SPLITS = ("train", "validation", "test")


def split_point(converted: Converted, seed: int) -> float:
    """Return a number in [0, 1) that decides a problem's split: a hash of its group, or else of its text."""
    key = converted.group or normalize_text(converted.problem.text)
    digest = hashlib.sha256(f"{seed}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def assign_split(point: float, shares: tuple[float, float, float]) -> str:
    """Return the split of a problem.

    Args:
        point: The problem's `split_point`.
        shares: Shares of train, validation and test, which add up to 1.

    """
    for split, share in zip(ASSIGNED_SPLITS, shares, strict=True):
        point -= share
        if point < 0:
            return split
    # Rounding can leave the point above the last split: then the split with the largest share.
    return max(zip(shares, ASSIGNED_SPLITS, strict=True))[1]


class Assigned(NamedTuple):
    """Problem that a hash has put into a split."""

    point: float  # its `split_point`
    split: str
    task_id: str


def fill_empty_splits(
    assigned: Sequence[Assigned], shares: tuple[float, float, float]
) -> list[tuple[Assigned, str]]:
    """Return the problems that have to move, and where, so that no split with a share above 0 is empty.

    The group nearest to the borders of an empty split moves there, unless it is the only one of its split.
    All others stay, so that problems that are added later move none from test to train.
    """
    rows, moves = list(assigned), []
    for number, split in enumerate(ASSIGNED_SPLITS):
        if not shares[number] or any(row.split == split for row in rows):
            continue
        low, high = sum(shares[:number]), sum(shares[: number + 1])
        points = {name: {row.point for row in rows if row.split == name} for name in ASSIGNED_SPLITS}
        movable = [row.point for row in rows if len(points[row.split]) > 1]
        if not movable:
            break
        nearest = min(movable, key=lambda point: max(low - point, point - high))
        moves += [(row, split) for row in rows if row.point == nearest]
        rows = [row._replace(split=split) if row.point == nearest else row for row in rows]
    return moves


def hide_tests(problem: Problem, amount: float, seed: int) -> Problem:
    """Move tests of a problem from visible to hidden; at least one stays visible.

    The choice depends only on the seed, the task id and the tests. A second call therefore hides the same
    tests.

    Args:
        problem: The problem. Its hidden tests take part in the draw like the visible ones.
        amount: If 1 or more, a number of tests. If below 1, a share of the tests, rounded down. 0 changes
            nothing.

    """
    if not amount:
        return problem
    tests = problem.scored_tests
    count = int(amount) if amount >= 1 else int(amount * len(tests))
    count = min(count, len(tests) - 1)

    def rank(index: int) -> tuple[bytes, int]:
        digest = hashlib.sha256(f"{seed}\0{problem.task_id}\0{tests[index]}".encode()).digest()
        # Of equal tests, hide the last: a second call finds the hidden tests last and must choose them again.
        return digest, -index

    hidden = set(sorted(range(len(tests)), key=rank)[:count])
    return replace(
        problem,
        test_list=tuple(test for i, test in enumerate(tests) if i not in hidden),
        hidden_test_list=tuple(test for i, test in enumerate(tests) if i in hidden),
    )

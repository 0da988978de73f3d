"""Some tests of each problem are scored and never shown: a program written to the visible ones then scores
what it is worth.
"""

import hashlib
from dataclasses import replace

from cocos.problems import Problem


def hide_tests(problem: Problem, amount: float, seed: int) -> Problem:
    """The problem with tests moved from visible to hidden; one at least stays visible.

    Which ones depends on seed, id and the tests alone, so that hiding again hides the same.

    Args:
        problem: Tests that are hidden already count as candidates like the others.
        amount: 1 or more: that number of tests; below 1: that share of them, rounded down; 0: as it is.
        seed: Draws the tests.

    """
    if not amount:
        return problem
    tests = problem.scored_tests
    number = int(amount) if amount >= 1 else int(amount * len(tests))
    number = min(number, len(tests) - 1)

    def rank(index: int) -> tuple[bytes, int]:
        digest = hashlib.sha256(f"{seed}\0{problem.task_id}\0{tests[index]}".encode()).digest()
        return digest, -index  # of equal tests the last is hidden: where it stands when hidden again

    hidden = set(sorted(range(len(tests)), key=rank)[:number])
    return replace(
        problem,
        test_list=tuple(test for i, test in enumerate(tests) if i not in hidden),
        hidden_test_list=tuple(test for i, test in enumerate(tests) if i in hidden),
    )

"""Conversion of visible tests to hidden tests, which are scored but never shown to the model.

A program that returns the expected values of the visible tests without computing them then fails.
"""

import hashlib
from dataclasses import replace

from cocos.problems import Problem


def hide_tests(problem: Problem, amount: float, seed: int) -> Problem:
    """Move tests of a problem from visible to hidden; at least one stays visible.

    The choice depends only on the seed, the task id and the tests. A second call therefore hides the same
    tests.

    Args:
        problem: The problem. Its hidden tests take part in the draw like the visible ones.
        amount: If 1 or more, a number of tests. If below 1, a share of the tests, rounded down. 0 changes
            nothing.
        seed: Seed of the draw.

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

"""Division of a set's tests into those that prompts may show and hidden ones."""

from collections.abc import Iterable
from typing import NamedTuple

VISIBLE_TESTS = 3  # of a set that does not say which are shown: as many as MBPP shows
MAX_TESTS = 30  # of one problem; a table of parameters may have thousands
MAX_TEST_CHARS = 10_000  # a longer test would make a row of which the inputs of one test are the larger part


class DividedTests(NamedTuple):
    """Tests of a problem, and a reason for each that is left out."""

    visible: tuple[str, ...]
    hidden: tuple[str, ...]
    left_out: list[str]


def divide_tests(tests: Iterable[str], num_visible: int = VISIBLE_TESTS) -> DividedTests:
    """Return the first tests as visible, the others as hidden ones; leave out large and surplus ones."""
    different = dict.fromkeys(test.strip() for test in tests)
    kept = tuple(test for test in different if len(test) <= MAX_TEST_CHARS)
    left_out = [f"a test has more than {MAX_TEST_CHARS} characters"] * (len(different) - len(kept))
    left_out += [f"test {number}: more than {MAX_TESTS}" for number in range(MAX_TESTS + 1, len(kept) + 1)]
    return DividedTests(kept[:num_visible], kept[num_visible:MAX_TESTS], left_out)

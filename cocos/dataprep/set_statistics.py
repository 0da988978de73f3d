"""Statistics of a prepared set: the card and the report show them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from cocos.dataprep.sources import NOT_STATED
from cocos.problems import Problem, problem_to_row

# Upper bounds of the bars of each histogram; the last bar has no bound.
BINS = {
    "characters of the text": (100, 200, 400, 800, 1600, 3200),
    "lines of the reference": (2, 5, 10, 20, 40, 80),
    "tests": (1, 2, 3, 5, 10, 20),
}
# Upper bounds, in per cent, of the bars of the solve rates. Never and always have bars of their own, because
# reinforcement learning learns nothing from such a problem.
RATE_BOUNDS = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99)
RATE_LABELS = (
    "never", *(f"up to {bound} %" for bound in RATE_BOUNDS[1:-1]), "less than always", "always"
)  # fmt: skip


@dataclass
class SetStatistics:
    """Counts over the problems of a prepared set."""

    fields: set[str] = field(default_factory=set)  # fields that occur in a row
    licences: Counter[str] = field(default_factory=Counter)  # licence -> number of problems
    # Name of a histogram -> index of the bar -> number of problems.
    lengths: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in BINS})
    num_tests: int = 0  # visible and hidden tests of all problems
    num_references: int = 0  # problems with a reference
    solve_rates: Counter[int] = field(default_factory=Counter)  # index of the bar -> number of problems

    def add(self, problem: Problem) -> None:
        """Count a problem."""
        self.fields |= problem_to_row(problem).keys()
        self.licences[problem.licence or NOT_STATED] += 1
        self.num_tests += len(problem.scored_tests)
        self.num_references += bool(problem.code.strip())
        if problem.solve_rate is not None:
            self.solve_rates[sum(100 * problem.solve_rate > bound for bound in RATE_BOUNDS)] += 1
        values = (len(problem.text), len(problem.code.splitlines()), len(problem.scored_tests))
        for (name, bounds), value in zip(BINS.items(), values, strict=True):
            self.lengths[name][sum(value > bound for bound in bounds)] += 1


def statistics_of(problems: Iterable[tuple[str, Problem]]) -> SetStatistics:
    """Return the statistics of (split, problem) pairs, of which one at a time is in memory."""
    statistics = SetStatistics()
    for _, problem in problems:
        statistics.add(problem)
    return statistics


def bar_labels(name: str) -> list[str]:
    """Return the label of each bar of a histogram: `up to 100`, `101 to 200`, ..., `more than 3200`."""
    bounds = BINS[name]
    between = [f"{low + 1} to {high}" if high > low + 1 else str(high) for low, high in pairwise(bounds)]
    return [f"up to {bounds[0]}", *between, f"more than {bounds[-1]}"]

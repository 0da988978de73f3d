"""Statistics of a prepared set, which its card shows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from cocos.dataprep.sources import NOT_STATED
from cocos.problems import Problem, problem_to_row


@dataclass
class SetStatistics:
    """Counts over the problems of a prepared set."""

    fields: set[str] = field(default_factory=set)  # fields that occur in a row
    licences: Counter[str] = field(default_factory=Counter)  # licence -> number of problems
    num_references: int = 0  # problems with a reference
    # What is measured of a problem -> value -> number of problems.
    measures: dict[str, Counter[float]] = field(default_factory=dict)

    def quantiles(self) -> dict[str, list[float]]:
        """Return the smallest value of each measure, its quartiles and its largest value."""
        ordered = {name: sorted(values.elements()) for name, values in self.measures.items()}
        return {name: [of[(len(of) - 1) * part // 4] for part in range(5)] for name, of in ordered.items()}


def statistics_of(problems: Iterable[tuple[str, Problem]]) -> SetStatistics:
    """Return the statistics of (split, problem) pairs, of which one at a time is in memory."""
    statistics = SetStatistics()
    for _, problem in problems:
        statistics.fields |= problem_to_row(problem).keys()
        statistics.licences[problem.licence or NOT_STATED] += 1
        statistics.num_references += bool(problem.code.strip())
        measured = {
            "characters of the text": len(problem.text),
            "lines of the reference": len(problem.code.splitlines()),
            "tests": len(problem.scored_tests),
            "solve rate": problem.solve_rate,
        }
        for name, value in measured.items():
            if value is not None:
                statistics.measures.setdefault(name, Counter())[value] += 1
    return statistics

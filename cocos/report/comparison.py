"""Paired comparisons of finished runs with a baseline run."""

from collections.abc import Sequence
from dataclasses import dataclass

from cocos.report.finished_runs import FinishedRun, group_by_conditions
from cocos.statistics import Comparison, compare


@dataclass(frozen=True)
class RunComparison:
    """One run compared with its baseline.

    Attributes:
        baseline: The run whose accuracy is subtracted.
        other: The run that is compared with the baseline.
        first_turn: Comparison after turn 1.
        last_turn: Comparison after the last turn of each run; the numbers of turns may differ.

    """

    baseline: FinishedRun
    other: FinishedRun
    first_turn: Comparison
    last_turn: Comparison

    @property
    def lacks_interval(self) -> bool:
        """Return whether a difference has no interval."""
        return None in (self.first_turn.difference.low, self.last_turn.difference.low)


def compare_runs(runs: Sequence[FinishedRun], baseline: str | None = None) -> list[RunComparison]:
    """Compare every run with the baseline of its conditions.

    Runs under different conditions (`FinishedRun.conditions`) are never compared: each group of runs under
    the same conditions has its own baseline.

    Args:
        runs: Finished runs.
        baseline: Name of the baseline run in its group. In the other groups, and if this is None, the first
            run is the baseline.

    Raises:
        ValueError: No run has the name `baseline`, or two runs differ in a problem or have none in common.

    """
    names = [run.name for run in runs]
    if baseline is not None and baseline not in names:
        raise ValueError(f"--baseline {baseline} is not the name of a run; give one of {', '.join(names)}")
    comparisons = []
    for group in group_by_conditions(runs).values():
        reference = next((run for run in group if run.name == baseline), group[0])
        comparisons += [_compare(reference, run) for run in group if run is not reference]
    return comparisons


def _compare(baseline: FinishedRun, other: FinishedRun) -> RunComparison:
    before, after = baseline.statistics, other.statistics
    for task_id, problem_hash in before.problem_hashes.items():
        if after.problem_hashes.get(task_id, problem_hash) != problem_hash:
            raise ValueError(
                f"problem {task_id} has another text or other tests in {other.name} than in {baseline.name}; "
                "compare evaluations of the same data"
            )
    try:
        first_turn = compare(before.outcomes(0), after.outcomes(0))
        last_turn = compare(before.outcomes(-1), after.outcomes(-1))
    except ValueError as error:
        raise ValueError(f"{baseline.name} and {other.name}: {error}") from None
    return RunComparison(baseline, other, first_turn, last_turn)

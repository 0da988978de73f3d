"""Which runs are compared with which, and on what."""

from collections.abc import Sequence
from dataclasses import dataclass

from cocos.estimates import Comparison, compare
from cocos.report.finished_runs import Run, by_aids


@dataclass(frozen=True)
class Pair:
    """A run against its baseline, at turn 1 and at each one's last turn."""

    baseline: Run
    other: Run
    first: Comparison
    last: Comparison


def compare_runs(runs: Sequence[Run], baseline: str | None = None) -> list[Pair]:
    """Every run against the baseline: the named one, else the first.

    Runs that were helped (`Run.aids`) are never compared with plain ones: they have a baseline of their own,
    the first of their kind.

    Raises:
        ValueError: There is no run of that name, or two runs do not have the same problems.

    """
    names = [run.name for run in runs]
    if baseline is not None and baseline not in names:
        raise ValueError(f"--baseline {baseline} is none of the runs; give one of {', '.join(names)}")
    pairs = []
    for group in by_aids(runs).values():
        reference = next((run for run in group if run.name == baseline), group[0])
        pairs += [_pair(reference, run) for run in group if run is not reference]
    return pairs


def _pair(baseline: Run, other: Run) -> Pair:
    before, after = baseline.observed, other.observed
    for task_id, asked in before.tests.items():
        if after.tests.get(task_id, asked) != asked:
            raise ValueError(
                f"problem {task_id} has another text or other tests in {other.name} than in {baseline.name}; "
                "compare evaluations of the same data"
            )
    try:
        first, last = compare(before.first, after.first), compare(before.last, after.last)
    except ValueError as error:
        raise ValueError(f"{baseline.name} and {other.name}: {error}") from None
    return Pair(baseline, other, first, last)

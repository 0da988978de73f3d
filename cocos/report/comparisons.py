"""Paired comparisons of finished runs, why others are not paired, and the pool of one model's sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cocos.intervals import Comparison, compare
from cocos.metrics import metrics_of_outcomes
from cocos.report.finished_runs import FinishedRun, group_by_conditions

PLAIN = "self-correction without test results"


@dataclass(frozen=True)
class RunComparison:
    """One run compared with its baseline."""

    baseline: FinishedRun  # the run whose accuracy is subtracted
    other: FinishedRun  # the run that is compared with the baseline
    first_turn: Comparison  # comparison after turn 1
    last_turn: Comparison  # comparison after the last turn of each run; the numbers of turns may differ


def compare_runs(runs: Sequence[FinishedRun], baseline: str | None = None) -> list[RunComparison]:
    """Compare every run with the baseline of its conditions, if it has the problems of the same set.

    Runs under different conditions (`FinishedRun.conditions`) are never compared: each group of runs under
    the same conditions has its own baseline. `unpaired` says why a run is not.

    Args:
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
        others = [run for run in group if run is not reference and not _is_other_set(reference, run)]
        comparisons += [_compare(reference, run) for run in others]
    return comparisons


def _is_other_set(baseline: FinishedRun, other: FinishedRun) -> bool:
    """Return whether two runs name different sets and have no problem in common."""
    names = [run.record["options"].get("test_data") for run in (baseline, other)]
    common = baseline.statistics.problem_hashes.items() & other.statistics.problem_hashes.items()
    return names[0] != names[1] and not common


def unpaired(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison]) -> Iterator[str]:
    """Yield a sentence for each reason why runs are not compared problem by problem."""
    groups = group_by_conditions(runs)
    if len(groups) > 1:
        named = [f"{_names(group)} ({conditions or PLAIN})" for conditions, group in groups.items()]
        yield (
            "Not paired by problem, because what the model is told, or when a problem ends, differs: "
            f"{'; '.join(named)}."
        )
    paired = {run.name for comparison in comparisons for run in (comparison.baseline, comparison.other)}
    for group in groups.values():
        alone = [run for run in group if run.name not in paired]
        if apart := [run for run in alone if any(_is_other_set(run, other) for other in group)]:
            yield f"Not paired by problem, because the problems are those of other sets: {_names(apart)}."


def _names(runs: Sequence[FinishedRun]) -> str:
    return ", ".join(run.name for run in runs)


def excluded_problems(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    """Yield a sentence for each run that has scored problems which its counterpart has not."""
    for comparison in comparisons:
        baseline, other, last = comparison.baseline, comparison.other, comparison.last_turn
        for run, task_ids in ((baseline, last.only_baseline), (other, last.only_other)):
            if task_ids:
                yield (
                    f"{other.name} against {baseline.name} excludes the problems that only {run.name} has "
                    f"scored: {', '.join(task_ids)}."
                )


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


POOLED = "all sets"


def are_sets_of_one_model(runs: Sequence[FinishedRun]) -> bool:
    """Return whether runs are one model's evaluations, with equally many turns, on different sets."""
    models = {run.record["options"].get("model_name_or_path") for run in runs}
    sets = {run.record["options"].get("test_data") for run in runs}
    turns = {run.num_turns for run in runs}
    return len(runs) > 1 and len(models) == len(turns) == 1 and len(sets) == len(runs)


def pool(runs: Sequence[FinishedRun]) -> FinishedRun:
    """Return a run over the problems of all runs, in which every problem counts equally.

    It has the metrics of the accuracy table only: accuracies, and changes between turns.
    """
    first = runs[0]
    right_P_K_T = [samples for run in runs for samples in run.statistics.right_K_T.values()]
    estimates = metrics_of_outcomes(right_P_K_T)
    metrics = {
        "metrics": {name: estimate._asdict() for name, estimate in estimates.items()},
        "num_scored": sum(run.metrics["num_scored"] for run in runs),
        "num_in_child": [sum(counts) for counts in zip(*(run.num_in_child_T for run in runs), strict=True)],
    }
    return FinishedRun(POOLED, Path(), {**first.metrics, **metrics}, first.record, rows=())

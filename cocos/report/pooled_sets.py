"""One evaluation over the problems of several sets, for the joint report of `test.py --test_data A B C`."""

from collections.abc import Sequence
from pathlib import Path

from cocos.metrics import metrics_of_outcomes
from cocos.report.finished_runs import FinishedRun

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

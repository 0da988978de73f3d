"""Whether one evaluation is better than another: both saw the same problems, so they are compared in pairs.

Pure functions of outcomes per problem; knows neither files nor tables. Sources: McNemar, Psychometrika 12
(1947), in its exact form; the percentile bootstrap of Efron & Tibshirani, An Introduction to the Bootstrap
(1993), chapter 13.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from random import Random

from cocos.metrics import Estimate

Outcomes = Mapping[str, Sequence[bool]]  # task_id -> is it right, one per sample
NUM_RESAMPLES = 10_000


@dataclass(frozen=True)
class Comparison:
    """One run minus its baseline, over the problems that both have scored.

    Attributes:
        baseline: Mean over problems of the baseline's share of right samples, in [0, 1].
        other: The same of the other run.
        difference: other - baseline with its 95 % bootstrap interval.
        p_value: McNemar's exact test; None where a problem has more than one sample.
        gained: Problems whose share of right samples rose, in the baseline's order.
        lost: Those whose share fell.
        only_baseline: Problems that are left out because only the baseline has them.
        only_other: Those that only the other run has.

    """

    num_problems: int
    baseline: float
    other: float
    difference: Estimate
    p_value: float | None
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_other: tuple[str, ...]


def compare(baseline: Outcomes, other: Outcomes, seed: int = 0) -> Comparison:
    """The paired comparison of two runs.

    Raises:
        ValueError: They have no problem in common.

    """
    common = [task_id for task_id in baseline if task_id in other]
    if not common:
        raise ValueError("no problem is in both runs; compare evaluations of the same data")
    before, after = ([_share(run[task_id]) for task_id in common] for run in (baseline, other))
    differences = [b - a for a, b in zip(before, after, strict=True)]
    gained = tuple(task_id for task_id, change in zip(common, differences, strict=True) if change > 0)
    lost = tuple(task_id for task_id, change in zip(common, differences, strict=True) if change < 0)
    is_single = all(len(baseline[task_id]) == len(other[task_id]) == 1 for task_id in common)
    return Comparison(
        num_problems=len(common),
        baseline=sum(before) / len(common),
        other=sum(after) / len(common),
        difference=bootstrap_mean(differences, seed),
        p_value=mcnemar(len(gained), len(lost)) if is_single else None,
        gained=gained,
        lost=lost,
        only_baseline=tuple(task_id for task_id in baseline if task_id not in other),
        only_other=tuple(task_id for task_id in other if task_id not in baseline),
    )


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided p-value of McNemar's exact test: were gaining and losing a problem equally likely, how often
    would their numbers differ at least this much?

    Twice the smaller tail of Binomial(gained + lost, 1/2), at most 1. Example: mcnemar(1, 7) = 2 * (1 + 8) /
    2^8 = 0.0703.
    """
    n = gained + lost
    tail, term = 0, 1  # term is C(n, i), an exact integer made from the one before
    for i in range(min(gained, lost) + 1):
        tail += term
        term = term * (n - i) // (i + 1)
    return min(1.0, 2 * tail / 2**n)


def bootstrap_mean(values: Sequence[float], seed: int = 0, num_resamples: int = NUM_RESAMPLES) -> Estimate:
    """The mean of one value per problem, with the 95 % percentile interval of the mean of as many problems
    drawn with replacement.
    """
    n, random = len(values), Random(seed)
    means = sorted(sum(random.choices(values, k=n)) / n for _ in range(num_resamples))
    low, high = means[floor(0.025 * num_resamples)], means[ceil(0.975 * num_resamples) - 1]
    return Estimate(sum(values) / n, low, high)


def _share(outcomes: Sequence[bool]) -> float:
    return sum(outcomes) / len(outcomes)

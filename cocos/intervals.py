"""Confidence intervals of shares and differences, and paired tests between two evaluations.

Pure functions of outcomes per problem. Sources: Wilson, JASA 22 (1927); Kish, Survey Sampling (1965), for
several samples per problem; McNemar, Psychometrika 12 (1947), in its exact form; Efron & Tibshirani, An
Introduction to the Bootstrap (1993), chapter 13, for the percentile bootstrap.

Small samples. Wilson's interval needs no minimum: averaged over all true shares, it covers 95 to 96 % for
every n from 1 (see Brown, Cai & DasGupta, Statistical Science 16 (2001)). Wald's and the bootstrap interval
measure the spread between problems. They have no bounds if there are fewer than `MIN_PROBLEMS` or no spread:
if no program changed, they would be [0, 0], which claims certainty. The exact test needs no minimum either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from random import Random
from typing import NamedTuple

Z_95 = 1.959964  # the 97.5 % quantile of the standard normal distribution
Z_POWER = 0.841621  # its 80 % quantile
Outcomes = Mapping[str, Sequence[bool]]  # task_id -> right or wrong, one value per sample
NUM_RESAMPLES = 10_000
# With 3 to 8, Wald's and the bootstrap interval cover far fewer than 95 % of true differences.
MIN_PROBLEMS = 10
NO_SPREAD = 1e-9  # rounding errors are smaller, and the spread of any outcomes that differ is larger


class Estimate(NamedTuple):
    """A share or a difference of shares with its 95 % interval; `low` and `high` are None if it has none."""

    value: float
    low: float | None
    high: float | None


def wilson(successes: float, n: float) -> Estimate:
    """Return a share with its Wilson score interval, which stays valid near 0 and 1 and for small n.

    Example: wilson(8, 10) -> 0.8 within (0.490, 0.943).
    """
    if n == 0:
        raise ValueError("no outcomes to estimate from")
    p, z2 = successes / n, Z_95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # If all or none succeed, the bound is the share itself; min and max remove the rounding error.
    return Estimate(p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))


def share(outcomes_P_K: Sequence[Sequence[bool]]) -> Estimate:
    """Return the share of True among the samples of all problems, with a Wilson interval.

    Samples of one problem are correlated, so the interval uses the effective sample size (Kish 1965):
    p (1 - p) divided by the variance of the mean, at least the number of problems and at most the number of
    samples. Example: 100 problems with two samples each that always agree count as 100 samples, not 200.
    Fewer than `MIN_PROBLEMS` problems say too little about the variance: they count as one sample each.
    """
    num_samples = sum(map(len, outcomes_P_K))
    if num_samples == 0:
        raise ValueError("no outcomes to estimate from")
    num_problems = len(outcomes_P_K)
    p, variance = _mean_and_variance(outcomes_P_K)
    effective = p * (1 - p) / variance if variance > 0 and num_problems >= MIN_PROBLEMS else 0.0
    n = min(num_samples, max(num_problems, effective))
    return Estimate(p, *wilson(p * n, n)[1:])


def change(changes_P_K: Sequence[Sequence[int]]) -> Estimate:
    """Return the mean of the changes 1 (gained), -1 (lost) and 0 over all samples, with its Wald interval.

    With one sample per problem the variance is ((gained + lost) / n - delta^2) / n. Example: 30 gained, 10
    lost of 100 -> 0.2 within 0.2 -+ 1.96 * sqrt((0.4 - 0.04) / 100) = (0.082, 0.318).
    """
    return bounded_mean(changes_P_K, -1.0, 1.0)


def bounded_mean(values_P_K: Sequence[Sequence[float]], lowest: float, highest: float) -> Estimate:
    """Return the mean over all samples with its Wald interval, with problems as clusters (Kish 1965).

    Without variance, or with fewer than `MIN_PROBLEMS` problems, there is no interval.

    Args:
        lowest: Smallest possible value; the interval is cut off there.
        highest: Largest possible value.

    """
    mean, variance = _mean_and_variance(values_P_K)
    half = Z_95 * sqrt(variance)
    if len(values_P_K) < MIN_PROBLEMS or half < NO_SPREAD:
        return Estimate(mean, None, None)
    return Estimate(mean, max(lowest, mean - half), min(highest, mean + half))


def smallest_difference(differences: Sequence[float]) -> float | None:
    """Return the smallest mean difference that paired runs tell from 0; None without an interval.

    It is 1.96 + 0.84 = 2.8 standard errors of the mean: a true difference of that size is significant (two
    sides, 5 %) in 80 % of such evaluations, the usual power (Bloom, Evaluation Review 19 (1995); arXiv
    2411.00640). Example: 30 gained, 10 lost of 100 -> 2.8 * 0.06 = 0.168.
    """
    _, variance = _mean_and_variance([[difference] for difference in differences])
    error = sqrt(variance)
    is_known = len(differences) >= MIN_PROBLEMS and Z_95 * error >= NO_SPREAD
    return (Z_95 + Z_POWER) * error if is_known else None


def _mean_and_variance(values_P_K: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the mean over all samples and its variance, with problems as clusters (Kish 1965)."""
    n = sum(map(len, values_P_K))
    mean = sum(map(sum, values_P_K)) / n
    return mean, sum((sum(values) - mean * len(values)) ** 2 for values in values_P_K) / n**2


@dataclass(frozen=True)
class Comparison:
    """Difference between a run and its baseline over the problems scored in both."""

    num_problems: int  # number of common problems
    baseline: float  # mean over problems of the baseline's share of right samples, in [0, 1]
    other: float  # the same for the other run
    difference: Estimate  # other - baseline with its 95 % bootstrap interval, if it has one
    p_value: float | None  # McNemar's exact test; None if a problem has more than one sample
    gained: tuple[str, ...]  # problems whose share of right samples rose, in the baseline's order
    lost: tuple[str, ...]  # problems whose share fell
    only_baseline: tuple[str, ...]  # problems excluded because only the baseline has them
    only_other: tuple[str, ...]  # problems excluded because only the other run has them


def compare(baseline: Outcomes, other: Outcomes, seed: int = 0) -> Comparison:
    """Compare two runs problem by problem.

    Raises:
        ValueError: The runs have no problem in common.

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
    """Return the two-sided p-value of McNemar's exact test.

    The null hypothesis is that a changed problem is gained or lost with equal probability. The p-value is
    twice the smaller tail of Binomial(gained + lost, 1/2), at most 1.
    Example: mcnemar(1, 7) = 2 * (1 + 8) / 2^8 = 0.0703.
    """
    n = gained + lost
    tail, term = 0, 1  # term is C(n, i), computed exactly from C(n, i - 1)
    for i in range(min(gained, lost) + 1):
        tail += term
        term = term * (n - i) // (i + 1)
    return min(1.0, 2 * tail / 2**n)


def bootstrap_mean(values: Sequence[float], seed: int = 0, num_resamples: int = NUM_RESAMPLES) -> Estimate:
    """Return the mean of one value per problem with its 95 % percentile bootstrap interval.

    There is no interval if there are fewer than `MIN_PROBLEMS` values or all of them are equal.
    """
    n, random = len(values), Random(seed)
    if n < MIN_PROBLEMS or max(values) - min(values) < NO_SPREAD:
        return Estimate(sum(values) / n, None, None)
    means = sorted(sum(random.choices(values, k=n)) / n for _ in range(num_resamples))
    low, high = means[floor(0.025 * num_resamples)], means[ceil(0.975 * num_resamples) - 1]
    return Estimate(sum(values) / n, low, high)


def _share(outcomes: Sequence[bool]) -> float:
    return sum(outcomes) / len(outcomes)

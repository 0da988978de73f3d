"""Turns of a run beside independent first attempts of the same model that have as many tokens.

After Olausson et al. (arXiv 2306.09896), who compare repair with independent samples at equal numbers of
sampled tokens: a later turn is worth its tokens if it solves more than further first attempts would. The
first attempts are turn 1 of a run with several samples per problem; tokens are those of the completions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from statistics import fmean as mean
from typing import NamedTuple

from cocos.config.eval_config import EvalConfig
from cocos.config.option import option_names
from cocos.intervals import Estimate, bounded_mean
from cocos.metrics import pass_at_k
from cocos.report.finished_runs import FinishedRun

# Two runs sample first attempts of the same model from the same prompts if these options are equal.
OPTIONS_OF_A_FIRST_ATTEMPT = option_names(EvalConfig, "model", "wording", "prompt")


class TurnPoint(NamedTuple):
    """A number of turns, and first attempts with equally many tokens. Shares are means over problems."""

    turns: int  # number of turns, t
    tokens: float  # mean tokens of the completions of turns 1 to t
    right_last: float  # share whose turn-t program is right: acc@t, chosen without tests
    right_any: float  # share with a right program among turns 1 to t, as a choice by all tests would find
    num_attempts: float  # k, the mean number of first attempts that have as many tokens; at least 1
    # Share with a right program among k first attempts: pass@k, also chosen by all tests. A broken k lies on
    # the line between the two nearest whole ones. None if a problem has fewer samples.
    pass_k: float | None
    difference: Estimate | None  # right_any - pass_k with its interval over problems


class AttemptPoint(NamedTuple):
    """k independent first attempts: the mean tokens of all of them, and pass@k."""

    tokens: float
    pass_k: float


@dataclass(frozen=True)
class EqualTokens:
    """A run over several turns beside independent first attempts."""

    run: FinishedRun  # the run over several turns
    source: FinishedRun  # the run whose first turns are the independent attempts; often the same
    turns: Sequence[TurnPoint]  # one point per turn of the run
    # One point for each k = 1, 2, ... up to the tokens of the last turn; the first is pass@1.
    attempts: Sequence[AttemptPoint]


def equal_token_comparisons(runs: Sequence[FinishedRun]) -> list[EqualTokens]:
    """Compare every run over several turns for which these runs contain independent first attempts.

    The attempts are those of the run itself if it has several samples per problem, else those of the first
    run of the same model, prompts and problems that has them. Left out are runs with given answers, and runs
    that sampled repeated programs again (`--on_repeat resample`): their rows lack the first sample's tokens.
    """
    found = []
    for run in runs:
        if run.num_turns > 1 and _has_all_tokens(run):
            source = next((other for other in [run, *runs] if _has_attempts_of(other, run)), None)
            if source is not None:
                found.append(_compare(run, source))
    return found


def _has_all_tokens(run: FinishedRun) -> bool:
    """Return whether the model sampled every completion, and the rows have the tokens of all of them."""
    tokens_P_K_T = run.statistics.sampled_tokens_K_T.values()
    is_sampled = not run.metrics["answers"] and not run.statistics.has_resampled
    return is_sampled and all(tokens_T[0] > 0 for tokens_K_T in tokens_P_K_T for tokens_T in tokens_K_T)


def _has_attempts_of(source: FinishedRun, run: FinishedRun) -> bool:
    """Return whether a run has several independent first attempts at every problem of another run."""
    options, others, hashes = source.record["options"], run.record["options"], run.statistics.problem_hashes
    return (
        (options.get("temperature") or [0.0])[0] > 0
        and _has_all_tokens(source)
        and all(options.get(name) == others.get(name) for name in OPTIONS_OF_A_FIRST_ATTEMPT)
        and all(source.statistics.problem_hashes.get(task_id) == hash_ for task_id, hash_ in hashes.items())
        and all(len(source.statistics.right_K_T[task_id]) > 1 for task_id in hashes)
    )


def _compare(run: FinishedRun, source: FinishedRun) -> EqualTokens:
    task_ids = list(run.statistics.right_K_T)
    right_P_K_T = [run.statistics.right_K_T[task_id] for task_id in task_ids]
    tokens_P_K_T = [run.statistics.sampled_tokens_K_T[task_id] for task_id in task_ids]
    first_attempts = source.statistics.outcomes(0)
    attempts_P_K = [first_attempts[task_id] for task_id in task_ids]
    tokens_of_one = _mean_of_means(
        [[tokens_T[0] for tokens_T in source.statistics.sampled_tokens_K_T[task_id]] for task_id in task_ids]
    )
    num_samples = min(map(len, attempts_P_K))
    turns = []
    for t in range(1, run.num_turns + 1):
        tokens = _mean_of_means([[sum(tokens_T[:t]) for tokens_T in rows] for rows in tokens_P_K_T])
        any_P_K = [[any(right_T[:t]) for right_T in rows] for rows in right_P_K_T]
        k = max(1.0, round(tokens / tokens_of_one, 3))
        pass_k = difference = None
        if k <= num_samples:
            pass_P = [_pass_at(attempts, k) for attempts in attempts_P_K]
            pass_k = mean(pass_P)
            gains = [[mean(any_K) - share] for any_K, share in zip(any_P_K, pass_P, strict=True)]
            difference = bounded_mean(gains, -1.0, 1.0)
        last = _mean_of_means([[right_T[t - 1] for right_T in rows] for rows in right_P_K_T])
        turns.append(TurnPoint(t, tokens, last, _mean_of_means(any_P_K), k, pass_k, difference))
    most = min(num_samples, max(2, ceil(turns[-1].num_attempts)))
    attempts = [
        AttemptPoint(k * tokens_of_one, mean(_pass_at(attempts, k) for attempts in attempts_P_K))
        for k in range(1, most + 1)
    ]
    return EqualTokens(run, source, turns, attempts)


def _pass_at(attempts_K: Sequence[bool], k: float) -> float:
    """Return pass@k; a broken k is on the line between its neighbours, as if drawn with their weights."""
    n, c, whole = len(attempts_K), sum(attempts_K), floor(k)
    weight = k - whole
    if not weight:
        return pass_at_k(n, c, whole)
    return (1 - weight) * pass_at_k(n, c, whole) + weight * pass_at_k(n, c, whole + 1)


def _mean_of_means(values_P_K: Sequence[Sequence[float]]) -> float:
    """Return the mean over problems of the mean over samples."""
    return mean(map(mean, values_P_K))

"""Accuracy against tokens: what several programs per problem are worth, and whether resampling gives as much.

The visible tests choose: a problem ends with its first program that passes them, or else with its last one.
Early stop plays just that; rows of other runs are cut there, since nothing before the cut depends on it.
Accuracy is on all tests. A run over several turns is compared with *resampling* at as many sampled tokens
(after Olausson et al., arXiv 2306.09896): the same model asked again with the same prompt, which shows all
visible tests. That is a run with `--carry nothing`, or a run with several samples of a first turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean as mean
from typing import NamedTuple

from cocos.config.eval_config import EvalConfig
from cocos.config.option import option_names
from cocos.intervals import Estimate, bounded_mean
from cocos.metrics import best_at_k, pass_at_k
from cocos.report.finished_runs import FinishedRun
from cocos.report.sample_statistics import PlayedProgram, Tokens

# Two runs ask one model in the same words if these options are equal.
SAME_ASKING = {*option_names(EvalConfig, "model", "wording"), "visible_tests"}
STRATA: dict[str, Callable[[float], bool]] = {  # solve rates of a profile
    "solve rate 0": lambda rate: rate == 0,
    "solve rate up to 0.3": lambda rate: 0 < rate <= 0.3,
    "solve rate above 0.3": lambda rate: rate > 0.3,
}


class Point(NamedTuple):
    """A number of programs per problem."""

    programs: int  # turns, or samples
    right_P: tuple[float, ...]  # share of right choices of each problem
    tokens: Tokens

    @property
    def accuracy(self) -> float:
        """Mean over problems."""
        return mean(self.right_P)


@dataclass(frozen=True)
class Curve:
    """Accuracy of a run against its tokens, one point per number of programs, from 1 on."""

    run: FinishedRun
    is_sampled: bool  # the programs are the samples of turn 1, in any order, not the turns
    points: Sequence[Point]
    # The resampling that the curve is compared with; None: there is none among the runs, or this is it.
    resampling: "Curve | None" = None

    @property
    def label(self) -> str:
        """Name of the run, and what its programs are."""
        return f"{self.run.name}, samples of turn 1" if self.is_sampled else self.run.name

    def difference(self, point: Point) -> Estimate | None:
        """Return the accuracy at a point minus resampling's at as many sampled tokens, paired by problem.

        Between two of its points, resampling mixes both. None: it has fewer tokens, or there is none.
        """
        mixed_P = self.resampling and self.resampling._right_at(point.tokens.sampled)
        if not mixed_P:
            return None
        return bounded_mean([[a - b] for a, b in zip(point.right_P, mixed_P, strict=True)], -1.0, 1.0)

    def _right_at(self, tokens: float) -> list[float] | None:
        """Return the shares of right choices at a mean number of sampled tokens."""
        if tokens <= self.points[0].tokens.sampled:
            return list(self.points[0].right_P)
        for before, after in pairwise(self.points):
            start, end = before.tokens.sampled, after.tokens.sampled
            if start < tokens <= end:
                weight = (tokens - start) / (end - start)
                pairs = zip(before.right_P, after.right_P, strict=True)
                return [(1 - weight) * first + weight * second for first, second in pairs]
        return None


def token_curves(runs: Sequence[FinishedRun]) -> list[Curve]:
    """Return the curves of all runs with several programs per problem, each with its resampling.

    Left out are runs with given answers, and with `--on_repeat resample`, whose rows lack the tokens of the
    discarded completions.
    """
    curves = [curve for run in runs for curve in _curves(run)]
    return [Curve(c.run, c.is_sampled, c.points, _resampling(c, curves)) for c in curves]


def strata(profile: FinishedRun) -> dict[str, list[str]]:
    """Return the problems by the solve rate of a profile: the share of right programs of turn 1."""
    rates = {task_id: mean(outcomes) for task_id, outcomes in profile.statistics.outcomes(0).items()}
    return {name: [task for task, rate in rates.items() if fits(rate)] for name, fits in STRATA.items()}


def verdict(curve: Curve) -> str | None:
    """Return a sentence that compares the last turn with resampling; None: it is not compared."""
    point = curve.points[-1]
    if curve.resampling is None or (difference := curve.difference(point)) is None:
        return None
    value, low, high = difference
    interval = "(no interval)" if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"
    is_unsure = low is None or high is None or low <= 0 <= high
    asked = "" if _shows_all_tests(curve.resampling.run) else ", which shows fewer tests than are visible"
    return (
        f"After {point.programs} programs ({point.tokens.sampled:.0f} tokens) {curve.label} has "
        f"{100 * point.accuracy:.1f} %; resampling ({curve.resampling.label}{asked}) has "
        f"{100 * (point.accuracy - value):.1f} % at as many tokens: {100 * value:+.1f} points {interval}, "
        f"{'may be chance, ' if is_unsure else ''}{len(point.right_P)} problems."
    )


def lacks_resampling(runs: Sequence[FinishedRun]) -> bool:
    """Return whether there is a single run, over several turns, and no resampling to compare it with."""
    if len(runs) > 1:
        return False
    curves = token_curves(runs)
    return len(curves) == 1 and not _is_resampling(curves[0])


def choice_note(curve: Curve) -> str | None:
    """Return why a run over several turns has two accuracies; None: it has one."""
    run, last = curve.run, curve.run.num_turns
    shares = (curve.points[-1].accuracy, run.estimate(f"acc_t{last}").value)
    chosen, final = (f"{100 * share:.1f} %" for share in shares)
    if curve.is_sampled or chosen == final:
        return None
    return (
        f"{run.name} has {chosen} where the visible tests choose, since a problem ends with its first "
        f"program that passes them, and {final} after turn {last}, where the last program counts."
    )


def _curves(run: FinishedRun) -> list[Curve]:
    options = run.record["options"]
    if run.metrics["answers"] or run.statistics.has_resampled:
        return []
    programs_P_K = [rows for _, rows in sorted(run.programs_K.items())]  # runs are paired by problem
    if not any(program.tokens.sampled for rows in programs_P_K for row in rows for program in row):
        return []  # unknown
    curves = []
    if run.num_turns > 1:
        curves.append(Curve(run, False, [_turns(programs_P_K, t) for t in range(1, run.num_turns + 1)]))
    num_samples = min(map(len, programs_P_K))
    if num_samples > 1 and _first_temperature(options) and run.metrics["agent"] == "none":
        firsts_P_K = [[row[0] for row in rows] for rows in programs_P_K]
        curves.append(Curve(run, True, [_samples(firsts_P_K, k) for k in range(1, num_samples + 1)]))
    return curves


def _turns(programs_P_K: Sequence[Sequence[Sequence[PlayedProgram]]], turns: int) -> Point:
    """Return the point of the first turns: per trajectory, up to the first that passes the visible tests."""
    cut_P_K = [
        [row[: next((t for t, p in enumerate(row[:turns], 1) if p.is_chosen), turns)] for row in rows]
        for rows in programs_P_K
    ]
    right_P = tuple(mean(row[-1].is_right for row in rows) for rows in cut_P_K)
    sums = ((_mean_tokens(rows, len(rows))) for rows in cut_P_K)
    return Point(turns, right_P, Tokens(*map(mean, zip(*sums, strict=True))))


def _mean_tokens(rows: Sequence[Sequence[PlayedProgram]], count: float) -> Tokens:
    columns = zip(*(program.tokens for row in rows for program in row), strict=True)
    return Tokens(*(sum(column) / count for column in columns))


def _samples(firsts_P_K: Sequence[Sequence[PlayedProgram]], k: int) -> Point:
    """Return the expected point of k samples, drawn one by one until one passes the visible tests."""
    right_P, tokens_P = [], []
    for firsts in firsts_P_K:
        n, chosen, right = len(firsts), sum(p.is_chosen for p in firsts), sum(p.is_right for p in firsts)
        right_P.append(best_at_k(n, chosen, right, k))
        # A further one is drawn if none of those before passes.
        draws = 1 + sum(1 - pass_at_k(n, chosen, j) for j in range(1, k))
        sampled, _, requested = _mean_tokens([firsts], n)
        prompt = requested - sampled  # once, if it is cached
        tokens_P.append(Tokens(draws * sampled, draws * sampled + prompt, draws * requested))
    return Point(k, tuple(right_P), Tokens(*map(mean, zip(*tokens_P, strict=True))))


def _first_temperature(options: dict) -> float:
    temperatures = options.get("temperature") or [0.0]
    return temperatures[0]


def _shows_all_tests(run: FinishedRun) -> bool:
    shown = run.record["options"].get("prompt_tests")
    return shown is None or all(shown >= row["num_visible_tests"] for row in run.rows)


def _resampling(curve: Curve, curves: Sequence[Curve]) -> Curve | None:
    """Return the resampling of the same model, asked in the same words, on the same problems."""
    if _is_resampling(curve) and _shows_all_tests(curve.run):
        return None
    run, hashes = curve.run, curve.run.statistics.problem_hashes
    found = [
        other
        for other in curves
        if other is not curve
        and _is_resampling(other)
        and all(run.record["options"].get(n) == other.run.record["options"].get(n) for n in SAME_ASKING)
        and other.run.statistics.problem_hashes == hashes
    ]
    return max(found, key=lambda other: _shows_all_tests(other.run), default=None)


def _is_resampling(curve: Curve) -> bool:
    return curve.is_sampled or curve.run.record["options"].get("carry") == "nothing"

"""Accuracy against tokens: what several programs per problem are worth, and whether resampling gives as much.

The visible tests choose: a problem ends with its first program that passes them, or else with its last one.
Early stop plays just that; rows of other runs are cut there, since nothing before the cut depends on it.
Accuracy is on all tests. A run over several turns is compared with *resampling* at as many sampled tokens
(after Olausson et al., arXiv 2306.09896): the same model asked again with the same prompt, which shows all
visible tests. That is a run with `--carry nothing`, or a run with several samples of a first turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cocos.config.eval_config import EvalConfig
from cocos.config.option import option_names
from cocos.intervals import Estimate, bounded_mean
from cocos.report.finished_runs import FinishedRun
from cocos.report.sample_statistics import Point

# Two runs ask one model in the same words if these options are equal.
SAME_ASKING = {*option_names(EvalConfig, "model", "wording"), "visible_tests"}


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


def verdict(curve: Curve) -> str | None:
    """Return a sentence that compares the last turn with resampling; None: it is not compared."""
    point = curve.points[-1]
    if curve.resampling is None or (difference := curve.difference(point)) is None:
        return None
    asked = "" if _shows_all_tests(curve.resampling.run) else ", which shows fewer tests than are visible"
    return (
        f"Where the visible tests choose, {curve.label} has {100 * point.accuracy:.1f} % after "
        f"{point.programs} programs ({point.tokens.sampled:.0f} tokens), and resampling "
        f"({curve.resampling.label}{asked}) {100 * (point.accuracy - difference.value):.1f} % for as many "
        f"tokens: {in_points(difference)}; {len(point.right_P)} problems."
    )


def in_points(difference: Estimate) -> str:
    """Return a difference with its interval, and whether it may be chance."""
    value, low, high = difference
    if low is None or high is None:
        return f"{100 * value:+.1f} points (no interval), may be chance"
    is_unsure = low <= 0 <= high
    return (
        f"{100 * value:+.1f} points [{100 * low:.1f}, {100 * high:.1f}], "
        f"{'may be' if is_unsure else 'hardly'} chance"
    )


def lacks_resampling(curves: Sequence[Curve]) -> bool:
    """Return whether there is one curve, of several turns, and no resampling to compare it with."""
    return len(curves) == 1 and not _is_resampling(curves[0])


def choice_note(curve: Curve) -> str | None:
    """Return why a run over several turns has two accuracies; None: it has one."""
    run, last, point = curve.run, curve.run.num_turns, curve.points[-1]
    chosen, final = (f"{100 * share:.1f} %" for share in (point.accuracy, run.estimate(f"acc_t{last}").value))
    if curve.is_sampled or chosen == final:
        return None
    return (
        f"{run.name} has {chosen} for {point.tokens.sampled:.0f} tokens where the visible tests choose, "
        f"since a problem ends with its first program that passes them, and {final} for "
        f"{run.metrics['speed']['tokens_per_problem']:.0f} tokens after turn {last}, where the last program "
        "counts."
    )


def _curves(run: FinishedRun) -> list[Curve]:
    if run.metrics["answers"] or run.statistics.has_resampled:
        return []
    curves = []
    if run.num_turns > 1 and run.points_of_turns:
        curves.append(Curve(run, False, run.points_of_turns))
    is_drawn = _first_temperature(run.record["options"]) and run.metrics["agent"] == "none"
    if is_drawn and len(run.points_of_samples) > 1:
        curves.append(Curve(run, True, run.points_of_samples))
    return curves


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
    return curve.is_sampled or curve.run.carry.is_resampling

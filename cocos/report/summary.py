"""The sentences with which a report begins: what was asked, what came out, and whether it may be chance."""

from collections.abc import Iterator, Sequence

from cocos.report.comparisons import PLAIN, RunComparison, are_sets_of_one_model, pool, unpaired
from cocos.report.finished_runs import FinishedRun
from cocos.report.tables import format_estimate
from cocos.report.token_curves import Curve, in_points, verdict


def beginning(runs: Sequence[FinishedRun]) -> str:
    """Return what was asked and, of one run or of one model's runs over several sets, what came out."""
    if len(runs) == 1:
        return f"{_question(runs)} {_outcome(runs[0])}"
    if are_sets_of_one_model(runs) and len({run.conditions for run in runs}) == 1:
        return f"{_question(runs)} Over all sets, {_outcome(pool(runs))}"
    return _question(runs)


def findings(
    runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison], curves: Sequence[Curve]
) -> Iterator[str]:
    """Yield a sentence for each comparison, with a baseline or with resampling, and for what has none."""
    for comparison in comparisons:
        last = comparison.last_turn
        yield (
            f"At the last turn {comparison.other.name} has {100 * last.other:.1f} % and "
            f"{comparison.baseline.name} {100 * last.baseline:.1f} %: {in_points(last.difference)}; "
            f"{last.num_problems} problems."
        )
    yield from filter(None, map(verdict, curves))
    yield from unpaired(runs, comparisons)


def differing(run: FinishedRun, runs: Sequence[FinishedRun]) -> str:
    """Return what a run asked that not all runs asked."""
    asked, *others = (_asked(one) for one in (run, *runs))
    return ", ".join(value for i, value in enumerate(asked) if any(other[i] != value for other in others))


def _asked(run: FinishedRun) -> tuple[str, ...]:
    """Return a run's model, set, rules between turns, and prompts."""
    options = run.record["options"]
    return (
        options.get("model_name_or_path") or "an unnamed model",
        options.get("test_data", "its set"),
        run.conditions or (PLAIN if run.num_turns > 1 else ""),
        f"{options.get('protocol')} prompts",
    )


def _question(runs: Sequence[FinishedRun]) -> str:
    """Return which model was asked which problems, and how; numbers stand for what differs between runs."""
    models, sets, rules, prompts = (
        list(dict.fromkeys(each)) for each in zip(*map(_asked, runs), strict=True)
    )
    counts = sorted({run.metrics["num_problems"] for run in runs})
    numbers = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    turns = sorted({run.num_turns for run in runs})
    times = "once" if turns == [1] else f"in {' or '.join(map(str, turns))} turns"
    samples = max(run.metrics["num_trajectories"] // run.metrics["num_problems"] for run in runs)
    times += f" with {'up to ' if len(runs) > 1 else ''}{samples} samples" if samples > 1 else ""
    how = filter(None, [_one_of(rules, "conditions"), _one_of(prompts, "kinds of prompts")])
    return (
        f"{'' if len(runs) == 1 else f'In {len(runs)} runs, '}{_one_of(models, 'models')} "
        f"{'answers' if len(models) == 1 else 'answer'} {numbers} problems of "
        f"{'each of ' if len(sets) > 1 else ''}{_one_of(sets, 'sets')}, each {times} ({', '.join(how)})."
    )


def _outcome(run: FinishedRun) -> str:
    first = run.estimate("acc_t1")
    if (pair := run.first_and_last) is None:
        share, interval = format_estimate(first).split(" ", 1)
        return f"{share} % {interval} of the programs are right."
    last, change = run.estimate(f"acc_t{pair.after}").value, run.estimate(f"delta_{pair}")
    return (
        f"{100 * first.value:.1f} % of the programs are right at turn 1 and {100 * last:.1f} % at turn "
        f"{pair.after}: {in_points(change)}."
    )


def _one_of(values: Sequence[str], plural: str) -> str:
    return values[0] if len(values) == 1 else f"{len(values)} {plural}"

"""Metrics of self-correction: accuracy per turn, changes between turns, edits, pass@k, errors, fix rates.

Definitions follow SCoRe (arXiv 2409.12917): every share is of *all* scored problems, so delta = i->c - c->i
exactly. A trajectory in which the executor or the endpoint failed is not scored, but counted separately:
`summary` takes all, and every other function those that are `scored`.
Intervals come from `cocos.intervals`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import comb
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from cocos.executor import ExecutionResult, Status
from cocos.intervals import Estimate, bounded_mean, change, share
from cocos.prompts import passes_visible_tests
from cocos.trajectories import Trajectory

Value = TypeVar("Value")
NEAR_REPEAT = 0.05  # largest edit ratio of a program that is nearly the one before it


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased pass@k of one problem: 1 - C(n-c, k) / C(n, k) (arXiv 2107.03374, eq. 1).

    Example: n = 4 samples, c = 1 right, k = 2: 1 - C(3,2)/C(4,2) = 1 - 3/6 = 0.5.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    return 1.0 - comb(n - c, k) / comb(n, k)


def scored(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories in which every program was executed."""
    return [t for t in trajectories if not any(turn.result.is_infra_failure for turn in t.turns)]


def _by_problem(
    trajectories: Iterable[Trajectory], value: Callable[[Trajectory], Value]
) -> list[list[Value]]:
    """Return one list per problem with the value of each of its trajectories."""
    values: dict[str, list[Value]] = defaultdict(list)
    for trajectory in trajectories:
        values[trajectory.problem.task_id].append(value(trajectory))
    return list(values.values())


def _right(trajectories: Iterable[Trajectory]) -> list[list[list[bool]]]:
    """Return whether the program of each turn is right, by problem, sample and turn."""
    return _by_problem(trajectories, lambda t: [turn.result.is_right for turn in t.turns])


def _passes_visible(trajectories: Iterable[Trajectory]) -> list[list[list[bool]]]:
    """Return whether the program of each turn passes the visible tests, by problem, sample and turn."""
    return _by_problem(
        trajectories, lambda t: [passes_visible_tests(t.problem, turn.result) for turn in t.turns]
    )


def _has_choice(trajectories: Iterable[Trajectory]) -> bool:
    """Return whether a problem has visible and hidden tests, so that the visible ones say less than all."""
    return any(t.problem.test_list and t.problem.hidden_test_list for t in trajectories)


def _shares(outcomes_P_K_T: Sequence[Sequence[Sequence[bool]]]) -> list[Estimate]:
    """Return the share of each turn."""
    turns = range(len(outcomes_P_K_T[0][0]))
    return [share([[row[t] for row in rows] for rows in outcomes_P_K_T]) for t in turns]


def correction_metrics(trajectories: Sequence[Trajectory]) -> dict[str, Estimate]:
    """Return acc_t1 .. acc_tT, and delta, i2c, c2i, better, worse of pairs of turns.

    The pairs are neighbouring turns (t1_t2, t2_t3, ...) and, if T > 2, the first and the last turn (t1_tT).
    acc_t: share whose turn-t program passes every test. i2c_t1_t2: share wrong at turn 1 and right at turn 2;
    c2i_t1_t2 the reverse. better / worse: share with more / fewer passing tests at the second of the turns.
    """
    # Samples stay grouped by problem: they are correlated, which widens the intervals (see `share`).
    passed_P_K_T = _by_problem(trajectories, lambda t: [turn.result.num_passed or 0 for turn in t.turns])
    return metrics_of_outcomes(_right(trajectories), passed_P_K_T)


def metrics_of_outcomes(
    right_P_K_T: Sequence[Sequence[Sequence[bool]]],
    passed_P_K_T: Sequence[Sequence[Sequence[int]]] | None = None,
) -> dict[str, Estimate]:
    """Return `correction_metrics` of outcomes, by problem, sample and turn.

    Args:
        right_P_K_T: Whether the program is right.
        passed_P_K_T: Number of tests that it passes; None: there are no better and worse.

    """
    num_turns = len(right_P_K_T[0][0])
    metrics = {f"acc_t{t}": accuracy for t, accuracy in enumerate(_shares(right_P_K_T), start=1)}
    pairs = [(t, t + 1) for t in range(num_turns - 1)]
    if num_turns > 2:
        pairs.append((0, num_turns - 1))
    for before, after in pairs:
        pair = f"t{before + 1}_t{after + 1}"
        changes_P_K = [
            [[row[after] - row[before] for row in rows] for rows in values_P_K_T]
            for values_P_K_T in (right_P_K_T, passed_P_K_T)
            if values_P_K_T is not None
        ]
        metrics[f"delta_{pair}"] = change(changes_P_K[0])
        for name, changes in zip(("i2c", "better"), changes_P_K, strict=False):
            metrics[f"{name}_{pair}"] = share([[gain > 0 for gain in gains] for gains in changes])
        for name, changes in zip(("c2i", "worse"), changes_P_K, strict=False):
            metrics[f"{name}_{pair}"] = share([[gain < 0 for gain in gains] for gains in changes])
    return metrics


def visible_test_metrics(trajectories: Sequence[Trajectory]) -> dict[str, Estimate]:
    """Return acc_visible_t1 .. acc_visible_tT: the share whose turn-t program passes the visible tests.

    In EvalPlus' sets they are the base tests, and acc_t is the accuracy on base + plus. There are no such
    metrics if no problem has visible and hidden tests.
    """
    if not _has_choice(trajectories):
        return {}
    shares_T = _shares(_passes_visible(trajectories))
    return {f"acc_visible_t{t}": accuracy for t, accuracy in enumerate(shares_T, start=1)}


def best_at_k(n: int, visible: int, right: int, k: int) -> float:
    """Return the unbiased best@k of one problem: the chance that visible tests choose a right one of k.

    Any of the samples that pass them is chosen, so it is (1 - C(n-v, k) / C(n, k)) * c / v for v samples that
    pass them, of which c are right, and 0 for v = 0.

    Example: n = 4 samples, v = 2, c = 1, k = 2: (1 - 1/6) * 1/2 = 0.417.
    """
    return pass_at_k(n, visible, k) * right / visible if visible else 0.0


def pass_at_k_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return pass@k and best@k of each turn, averaged over problems.

    k is 1, 2, 4, ... and the smallest number of scored samples of any problem. For a larger k the estimator
    is not defined for every problem. There is no best@k if no problem has visible and hidden tests.
    """
    outcomes_P = list(zip(_right(trajectories), _passes_visible(trajectories), strict=True))
    most = min(len(right_K_T) for right_K_T, _ in outcomes_P)
    has_choice = most > 1 and _has_choice(trajectories)
    counts_T_P = [
        [
            (len(right_K_T), sum(row[t] for row in visible_K_T), sum(row[t] for row in right_K_T))
            for right_K_T, visible_K_T in outcomes_P
        ]
        for t in range(len(trajectories[0].turns))
    ]
    shares: dict[str, float] = {}
    for k in sorted({*(2**i for i in range(most.bit_length())), most}):
        for t, counts_P in enumerate(counts_T_P, start=1):
            shares[f"pass@{k}_t{t}"] = fmean(pass_at_k(n, c, k) for n, _, c in counts_P)
            if has_choice:
                shares[f"best@{k}_t{t}"] = fmean(best_at_k(n, v, c, k) for n, v, c in counts_P)
    return shares


def edit_ratio(before: str, after: str) -> float:
    """Return the number of edits that turn one program into another, divided by the length of both together.

    An edit inserts or deletes one character. The ratio is 0 for equal programs and 1 for programs without a
    common character; the edits are the lengths minus twice the longest common subsequence (LCS).
    Example: "x + 1" -> "x * 2": the LCS is "x " and " ", 3 characters, so (5 + 5 - 2 * 3) / 10 = 0.4.

    This is SCoRe's edit distance ratio (arXiv 2409.12917) with a replaced character as two edits; counted as
    one, two programs that have nothing in common would have some ratio between 0.5 and 1.
    """
    if not before and not after:
        return 0.0
    # Bit-parallel LCS: one addition of long integers per character instead of a row of a table (Hyyrö, AWOCA
    # 2004). A zero bit i says that the LCS grows at before[i].
    places: dict[str, int] = defaultdict(int)
    for i, character in enumerate(before):
        places[character] |= 1 << i
    all_bits = row = (1 << len(before)) - 1
    for character in after:
        common = row & places.get(character, 0)
        row = (row + common | row - common) & all_bits
    return 1.0 - 2 * (len(before) - row.bit_count()) / (len(before) + len(after))


def edit_metrics(trajectories: Sequence[Trajectory]) -> dict[str, Estimate]:
    """Return the shares of repeated programs and the mean edit ratio of each pair of neighbouring turns.

    repeated_t1_t2: share of the sampled turns 2 whose program equals that of turn 1. edit_ratio_t1_t2: mean
    of `edit_ratio` over the same turns. repeated_wrong_t1_t2, near_repeated_wrong_t1_t2: share of those after
    a wrong program that repeat it, or edit it by at most NEAR_REPEAT. A given turn and one carried over by
    early stop are not the model's answer, so they do not count; a pair of turns without a sampled one has no
    metrics. same_prompt_t1_t2: share of the same turns whose prompt is that of the turn before, so that a
    greedy one adds nothing; only if there are any, and never with the transcript, which grows.
    """
    same_prompts: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    by_pair: dict[str, dict[str, list[tuple[float, bool]]]] = defaultdict(lambda: defaultdict(list))
    for trajectory in trajectories:
        for t, (turn, following) in enumerate(pairwise(trajectory.turns), start=1):
            if following.is_sampled:
                edit = (edit_ratio(turn.code, following.code), turn.result.is_right)
                pair, task_id = f"t{t}_t{t + 1}", trajectory.problem.task_id
                by_pair[pair][task_id].append(edit)
                same_prompts[pair][task_id].append(following.asks_again(turn))
    metrics: dict[str, Estimate] = {}
    for pair, by_problem in by_pair.items():
        ratios_P_K = [[ratio for ratio, _ in edits] for edits in by_problem.values()]
        metrics[f"repeated_{pair}"] = share([[ratio == 0.0 for ratio in ratios] for ratios in ratios_P_K])
        metrics[f"edit_ratio_{pair}"] = bounded_mean(ratios_P_K, 0.0, 1.0)
        if any(map(any, same_prompts[pair].values())):
            metrics[f"same_prompt_{pair}"] = share(list(same_prompts[pair].values()))
        of_wrong = [[ratio for ratio, was_right in edits if not was_right] for edits in by_problem.values()]
        if wrong_P_K := [ratios for ratios in of_wrong if ratios]:
            for name, most in (("repeated_wrong", 0.0), ("near_repeated_wrong", NEAR_REPEAT)):
                metrics[f"{name}_{pair}"] = share(
                    [[ratio <= most for ratio in ratios] for ratios in wrong_P_K]
                )
    return metrics


def first_error(result: ExecutionResult) -> str | None:
    """Return the error of the first test that did not pass, or None if all passed.

    It is the exception's class name, or `Timeout` or `Memory`.
    """
    for verdict in result.verdicts:
        if verdict.status is not Status.PASSED:
            return verdict.error_type or verdict.status.name.capitalize()
    return None


class FixRate(NamedTuple):
    """Number of programs with one error type, and how many of them were fixed."""

    failed: int  # number of programs with this error at a turn
    fixed: int  # number of those that were right one turn later


def fix_rates(trajectories: Sequence[Trajectory]) -> dict[str, dict[str, FixRate]]:
    """Return the FixRate of each error type, most frequent first, per pair of turns (`t1_t2`)."""
    rates: dict[str, dict[str, FixRate]] = {}
    for trajectory in trajectories:
        for t, (turn, following) in enumerate(pairwise(trajectory.turns), start=1):
            kind = first_error(turn.result)
            if kind is not None:
                pair = rates.setdefault(f"t{t}_t{t + 1}", {})
                old = pair.get(kind, FixRate(0, 0))
                pair[kind] = FixRate(old.failed + 1, old.fixed + following.result.is_right)
    return {
        pair: dict(sorted(kinds.items(), key=lambda kind: -kind[1].failed)) for pair, kinds in rates.items()
    }


class BugRate(NamedTuple):
    """Number of trajectories with one kind of bug, and how many programs were right."""

    num_scored: int  # number of scored trajectories
    right_T: list[int]  # number of right programs after each turn
    accuracy_T: list[Estimate]  # share of right programs after each turn; problems are clusters


def bug_rates(trajectories: Sequence[Trajectory]) -> dict[str, BugRate]:
    """Return the BugRate of each `Problem.bug_type`, most frequent first; {} if the problems name none."""
    by_kind: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.problem.bug_type:
            by_kind[trajectory.problem.bug_type].append(trajectory)
    rates = {}
    for kind, of_kind in sorted(by_kind.items(), key=lambda kind: -len(kind[1])):
        right_T = [sum(result.is_right for result in results) for results in _results_by_turn(of_kind)]
        rates[kind] = BugRate(len(of_kind), right_T, _shares(_right(of_kind)))
    return rates


def error_counts(trajectories: Sequence[Trajectory]) -> list[Counter[str]]:
    """Return, for each turn, the number of programs with each error type."""
    return [Counter(filter(None, map(first_error, results))) for results in _results_by_turn(trajectories)]


def _results_by_turn(trajectories: Iterable[Trajectory]) -> list[tuple[ExecutionResult, ...]]:
    return list(zip(*([turn.result for turn in t.turns] for t in trajectories), strict=True))


def in_child_counts(trajectories: Sequence[Trajectory]) -> list[int]:
    """Return, for each turn, the number of right programs with an in_child verdict.

    These programs could have forged a verdict on which the accuracy rests.
    """
    return [
        sum(result.is_right and any(verdict.in_child for verdict in result.verdicts) for result in results)
        for results in _results_by_turn(trajectories)
    ]


def summary(trajectories: Sequence[Trajectory]) -> dict[str, object]:
    """Return all metrics as plain values, as written to metrics.json.

    Raises:
        ValueError: No trajectory is scored.

    """
    turns = [turn for trajectory in trajectories for turn in trajectory.turns if not turn.is_carried]
    if not (usable := scored(trajectories)):
        first = next(filter(None, (turn.result.infra_error for turn in turns)), "there is none")
        raise ValueError(
            f"no scored trajectories: the executor or the endpoint failed in every one; the first: {first}"
        )
    estimates = correction_metrics(usable) | visible_test_metrics(usable) | edit_metrics(usable)
    timeouts = [any(v.status is Status.TIMEOUT for v in turn.result.verdicts) for turn in turns]
    return {
        "num_problems": len({trajectory.problem.task_id for trajectory in trajectories}),
        "num_trajectories": len(trajectories),
        "num_scored": len(usable),
        "num_infra_failures": sum(turn.result.is_infra_failure for turn in turns),
        "num_timeouts": sum(timeouts),
        "num_truncated": sum(turn.completion.is_truncated for turn in turns),
        "num_in_child": in_child_counts(usable),
        "metrics": {name: estimate._asdict() for name, estimate in estimates.items()},
        "pass_at_k": pass_at_k_metrics(usable),
        "errors": [dict(counts.most_common()) for counts in error_counts(usable)],
        "fix_rates": {
            pair: {kind: rate._asdict() for kind, rate in kinds.items()}
            for pair, kinds in fix_rates(usable).items()
        },
        "bug_rates": {kind: rate._asdict() for kind, rate in bug_rates(usable).items()},
    }


def run_metrics(trajectories: Sequence[Trajectory], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metrics.json says about the trajectories of a run: metrics, conditions and speed."""
    return {**summary(trajectories), **conditions, "speed": speed(trajectories)}


def speed(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return totals of tokens, programs and seconds, two rates, and the means per trajectory.

    `tokens_per_s` is the rate of one rank while it generates, `programs_per_s` that of one worker while it
    executes. Supplied completions count as programs only; carried turns do not count. The prompt of a later
    turn contains all earlier turns, so `prompt_tokens` counts their tokens again at every turn.
    """
    turns = [turn for trajectory in trajectories for turn in trajectory.turns if not turn.is_carried]
    sampled = [turn.completion for turn in turns if turn.is_sampled]
    tokens = sum(completion.num_completion_tokens or 0 for completion in sampled)
    prompt_tokens = sum(completion.num_prompt_tokens or 0 for completion in sampled)
    generation_s = sum(completion.duration_s for completion in sampled)
    execution_s = sum(turn.result.duration_s for turn in turns)
    return {
        "completion_tokens": tokens,
        "prompt_tokens": prompt_tokens,
        "generation_s": round(generation_s, 3),
        "tokens_per_s": round(tokens / generation_s, 1) if generation_s else 0.0,
        "programs": len(turns),
        "execution_s": round(execution_s, 3),
        "programs_per_s": round(len(turns) / execution_s, 1) if execution_s else 0.0,
        "seconds_per_problem": round(generation_s / len(trajectories), 3),
        "tokens_per_problem": round(tokens / len(trajectories), 1),
        "prompt_tokens_per_problem": round(prompt_tokens / len(trajectories), 1),
    }

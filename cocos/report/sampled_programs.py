"""Measures of one evaluation with several samples: its greedy program, pass@k, and best@k.

`--num_samples 16 --temperature 0.8` plays the samples; `--num_samples 16 --num_turns 2 --carry nothing
--temperature 0 0.8` also plays the greedy program, for which a problem's prompt is asked once.
"""

from statistics import fmean

from cocos.metrics import best_at_k, pass_at_k
from cocos.report.finished_runs import FinishedRun
from cocos.trajectories import Rules


def sampled_programs(run: FinishedRun, n: int) -> dict[str, dict[str, float]]:
    """Return the measures of a run with n samples or more per problem, each by task_id and in [0, 1].

    They are the greedy program if there is one, pass@1, pass@3, pass@n and, if tests are hidden, best@3. All
    but the first are unbiased for any number of samples from k on. {}: the run has no samples.
    """
    turn = _sampled_turn(run)
    if turn is None or n < 2:
        return {}
    has_choice = any(len(row["tests"]) > row["num_visible_tests"] > 0 for row in run.rows)
    found: dict[str, dict[str, float]] = {}
    for task_id, samples in run.programs_K.items():
        programs = [programs_T[turn] for programs_T in samples]
        size, right = len(programs), sum(program.is_right for program in programs)
        chosen = sum(program.is_chosen for program in programs)
        of_problem = {"greedy": fmean(programs_T[0].is_right for programs_T in samples)} if turn else {}
        of_problem |= {f"pass@{k}": pass_at_k(size, right, k) for k in (1, min(3, n))}
        if has_choice:
            of_problem[f"best@{min(3, n)}"] = best_at_k(size, chosen, right, min(3, n))
        of_problem[f"pass@{n}"] = pass_at_k(size, right, n)
        for name, value in of_problem.items():
            found.setdefault(name, {})[task_id] = value
    return found


def count_samples(run: FinishedRun) -> int:
    """Return the smallest number of scored samples of any problem."""
    return min(map(len, run.programs_K.values()), default=0)


def _sampled_turn(run: FinishedRun) -> int | None:
    """Return the turn, from 0, whose programs are samples of the task alone; None if there is none."""
    options, metrics = run.record["options"], run.metrics
    rules = Rules(temperatures=tuple(options.get("temperature") or [0.0]))
    if metrics["answers"] or metrics["agent"] != "none" or run.statistics.has_resampled:
        return None
    if rules.temperature(1):
        return 0
    asks_again = run.carry.is_resampling and not metrics["early_stop"]
    return 1 if run.num_turns > 1 and asks_again and rules.temperature(2) else None

"""Learning rate of every update, and the options of the optimizer when a run is continued.

A schedule of transformers begins its warm-up at rate 0. After the last update it is at rate 0 again, which is
what the checkpoint of a finished run keeps. Thus the first update of the run, or of its continuation, would
change nothing.
"""

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

ADAPTIVE = ("reduce_lr_on_plateau", "greedy")  # schedules whose rate follows from evaluations
# Entries of the optimizer's groups that options decide: --learning_rate, --weight_decay, --adam_beta1, ...
GROUP_OPTIONS = ("initial_lr", "weight_decay", "betas", "eps")


def avoid_rate_zero(schedule: LRScheduler, num_updates: int) -> None:
    """Change a new schedule so that every update has a rate above 0.

    Args:
        schedule: Schedule of transformers.
        num_updates: Number of updates of the run.

    Raises:
        ValueError: A later update has rate 0.

    """
    if not isinstance(schedule, LambdaLR):
        return
    schedule.lr_lambdas = [_above_zero(rate, num_updates) for rate in schedule.lr_lambdas]
    for update in range(num_updates):
        if schedule.lr_lambdas[0](update) <= 0:
            raise ValueError(
                f"update {update + 1} of {num_updates} would have the learning rate 0 and change nothing; "
                "choose another schedule, or a lowest rate above 0"
            )
    _set_rates(schedule)


def _above_zero(rate: Callable[..., float], num_updates: int) -> Callable[..., float]:
    """Return a schedule whose warm-up begins above 0; the rates after the warm-up are the same.

    The warm-up of w updates becomes one of w + 1, whose first update, that of rate 0, is left out: its rates
    are 1/(w+1), 2/(w+1), ... of the peak instead of 0, 1/w, ...
    """
    if rate(0) > 0:
        return rate
    numbers = rate.keywords  # type: ignore[attr-defined]  # a partial function
    names = {"num_warmup_steps", "num_training_steps"} & numbers.keys()
    longer = {name: numbers[name] + 1 for name in names}
    # After the last update, `polynomial` divides by 0 if it was warm-up until then.
    return lambda update: rate(min(update, num_updates - 1) + 1, **longer)


def group_options(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return what the options have decided for each group of an optimizer that has loaded no state yet."""
    return [{n: group[n] for n in GROUP_OPTIONS if n in group} for group in optimizer.param_groups]


def apply_options(optimizer: Optimizer, schedule: LRScheduler, options: list[dict[str, Any]]) -> None:
    """Give an optimizer and a schedule that have loaded their states the options of the run that continues.

    The moments and the number of the update stay. A schedule that follows from evaluations keeps its rate.

    Args:
        optimizer: Optimizer with the groups of the checkpoint.
        schedule: Schedule at the update of the checkpoint.
        options: See `group_options`.

    """
    for group, chosen in zip(optimizer.param_groups, options, strict=True):
        group.update(chosen)
    if isinstance(schedule, LambdaLR):
        schedule.base_lrs = [chosen["initial_lr"] for chosen in options]
        _set_rates(schedule)


def _set_rates(schedule: LambdaLR) -> None:
    """Set the rates of the schedule's present update; a schedule does so by itself after every update."""
    pairs = zip(schedule.base_lrs, schedule.lr_lambdas, strict=True)
    schedule._last_lr = [base * rate(schedule.last_epoch) for base, rate in pairs]
    for group, rate in zip(schedule.optimizer.param_groups, schedule._last_lr, strict=True):
        group["lr"] = rate

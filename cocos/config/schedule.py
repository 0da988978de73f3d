"""Learning rate of every update.

A schedule of transformers begins its warm-up at rate 0. After the last update it is at rate 0 again, which is
what the checkpoint of a finished run keeps. Thus the first update of the run, or of its continuation, would
change nothing.
"""

import json
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainingArguments
from transformers.optimization import get_scheduler


def new_schedule(args: TrainingArguments, optimizer: Optimizer, num_updates: int) -> Any:
    """Return the schedule of a run at its first update; no update has rate 0.

    Raises:
        ValueError: The options fit no schedule, or an update would have rate 0.

    """
    kind, kwargs, warmup = (
        args.lr_scheduler_type,
        args.lr_scheduler_kwargs,
        args.get_warmup_steps(num_updates),
    )
    try:
        schedule = get_scheduler(kind, optimizer, warmup, num_updates, kwargs)
        avoid_rate_zero(schedule, num_updates)
    except (TypeError, ValueError) as error:
        options = f"--lr_scheduler_type {kind.value}, --lr_scheduler_kwargs {json.dumps(kwargs or {})}"
        raise ValueError(f"{options}: {error}") from None
    return schedule


def avoid_rate_zero(schedule: Any, num_updates: int) -> None:
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
    set_rates(schedule)


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


def set_rates(schedule: LambdaLR) -> None:
    """Set the rates of the schedule's present update; a schedule does so by itself after every update."""
    pairs = zip(schedule.base_lrs, schedule.lr_lambdas, strict=True)
    schedule._last_lr = [base * rate(schedule.last_epoch) for base, rate in pairs]
    for group, rate in zip(schedule.optimizer.param_groups, schedule._last_lr, strict=True):
        group["lr"] = rate


def rate_before(schedule: Any) -> float:
    """Return the rate of the update before the schedule's present one."""
    return schedule.base_lrs[0] * schedule.lr_lambdas[0](schedule.last_epoch - 1)

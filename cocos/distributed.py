"""A rank's share of problems and processors, and DeepSpeed's connection.

Imports the standard library only, and does not know problems, prompts or rewards.
"""

import math
import os
from collections.abc import Sequence
from typing import TypeVar

from cocos.config.ranks import num_ranks_here

Item = TypeVar("Item")


def num_processors() -> int:
    """Return one rank's share of the processors that the run may use on this machine, at least 1."""
    return max(1, len(os.sched_getaffinity(0)) // num_ranks_here())


def connect_deepspeed(deepspeed: object, use_cpu: bool) -> None:
    """Initialise DeepSpeed's communication on CPUs, where transformers does not.

    Call it before the model is loaded, because ZeRO-3 divides the weights among the ranks while they are
    loaded.

    Args:
        deepspeed: The value of --deepspeed. If it is empty, the call has no effect.
        use_cpu: True if the run uses no accelerator. On accelerators, accelerate connects DeepSpeed.

    """
    if deepspeed and use_cpu:
        from deepspeed import init_distributed  # installed on Linux only

        init_distributed("gloo")


def equal_share(items: Sequence[Item], rank: int, num_ranks: int) -> list[Item]:
    """Return one rank's consecutive items; every rank gets the same number.

    Under ZeRO-3 and FSDP the ranks wait for each other at every forward pass, so no rank may have fewer items
    than another. The last ranks therefore repeat items from the start of the list. The shares of all ranks,
    concatenated, are the whole list followed by the repeated items.

    Example: rank 1 of 2 gets items 3, 4, 0 of the items 0 to 4.
    """
    size = math.ceil(len(items) / num_ranks)
    return [items[i % len(items)] for i in range(rank * size, (rank + 1) * size)]


def share_of_groups(
    problems: Sequence[Item], group_size: int, keep_whole: bool, rank: int, num_ranks: int
) -> list[Item]:
    """Return the problem of each trajectory that one rank plays; every rank gets the same number.

    Example: groups of 2 of the problems a, b, c on rank 0 of 2 are a, a, b, with `keep_whole` a, a, b, b.

    Args:
        keep_whole: Never divide a group between ranks.

    """
    unit = group_size if keep_whole else 1
    units = [problem for problem in problems for _ in range(group_size // unit)]
    return [problem for problem in equal_share(units, rank, num_ranks) for _ in range(unit)]

"""Ranks of a distributed run: their number, and a rank's share of problems and processors.

Reads the environment that launchers (torchrun, accelerate, deepspeed) set. Imports the standard library only,
and does not know problems, prompts or rewards.
"""

import math
import os
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def is_launched() -> bool:
    """Return whether a launcher started this process."""
    return "LOCAL_RANK" in os.environ


def is_main_process() -> bool:
    """Return whether this process is rank 0 of its run, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def num_ranks() -> int:
    """Return the number of ranks (processes) of this run over all machines."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def num_ranks_here() -> int:
    """Return the number of ranks on this machine."""
    # torchrun and accelerate set LOCAL_WORLD_SIZE, deepspeed sets LOCAL_SIZE.
    return int(os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("LOCAL_SIZE") or "1")


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
        problems: One problem per group.
        group_size: Trajectories per group.
        keep_whole: Never divide a group between ranks.
        rank: The rank, from 0.
        num_ranks: Number of ranks.

    """
    unit = group_size if keep_whole else 1
    units = [problem for problem in problems for _ in range(group_size // unit)]
    return [problem for problem in equal_share(units, rank, num_ranks) for _ in range(unit)]

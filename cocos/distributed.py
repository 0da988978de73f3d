"""A rank's share of problems and processors, the ranks of an evaluation, and DeepSpeed's connection.

Imports accelerate and DeepSpeed only where a launcher has started several processes or the run has asked for
it, and does not know problems, prompts or rewards.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from cocos.config.ranks import is_launched, num_ranks_here

Item = TypeVar("Item")


def num_processors() -> int:
    """Return one rank's share of the processors that the run may use on this machine, at least 1."""
    return max(1, len(os.sched_getaffinity(0)) // num_ranks_here())


@dataclass(frozen=True)
class Ranks:
    """A process among the ranks of an evaluation; alone, it needs neither torch nor accelerate."""

    rank: int = 0
    num_ranks: int = 1

    @property
    def is_main(self) -> bool:
        """Return whether this is rank 0."""
        return self.rank == 0

    def print(self, *words: object, **options: Any) -> None:
        """Print on rank 0."""
        if self.is_main:
            print(*words, **options)

    def gather(self, items: list[Item]) -> list[Item]:
        """Return the items of all ranks, in the order of the ranks; waits for all of them."""
        if self.num_ranks == 1:
            return items
        from accelerate.utils import gather_object

        gathered: list[Item] = gather_object(items)
        return gathered

    def broadcast(self, item: Item) -> Item:
        """Return rank 0's item; waits for all ranks."""
        if self.num_ranks == 1:
            return item
        from accelerate.utils import broadcast_object_list

        [item] = broadcast_object_list([item])
        return item


def join_ranks() -> Ranks:
    """Join the processes that accelerate or torchrun started; without a launcher, be the only rank."""
    if not is_launched():
        return Ranks()
    import torch
    from accelerate import PartialState

    # A rank that has finished waits for the others in `gather`, possibly for hours: no timeout.
    state = PartialState(cpu=not torch.accelerator.is_available(), timeout=timedelta(days=30))
    return Ranks(state.process_index, state.num_processes)


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

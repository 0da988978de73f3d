"""The ranks of an evaluation. Alone, a process needs neither torch nor accelerate."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from cocos.config.ranks import is_launched

Item = TypeVar("Item")


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

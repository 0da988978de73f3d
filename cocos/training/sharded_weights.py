"""Weights that FSDP2 divides among the ranks, gathered for sampling."""

from collections.abc import Iterator
from contextlib import contextmanager

from accelerate import Accelerator
from torch import nn
from torch.distributed.fsdp import FSDPModule


@contextmanager
def whole_weights(model: nn.Module, accelerator: Accelerator) -> Iterator[None]:
    """Keep the weights of an FSDP2 model gathered between the forward passes inside the context.

    Without this, sampling gathers them again for every token. Models that are not sharded are not changed.
    """
    shards = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for shard in shards:
        shard.set_reshard_after_forward(False, recurse=False)
    try:
        yield
    finally:
        for shard in shards:
            shard.set_reshard_after_forward(
                accelerator.state.fsdp_plugin.reshard_after_forward, recurse=False
            )
            shard.reshard()

"""Several processes, one run: how batch, problems, processors and weights are shared out among the ranks.

Knows launchers (torchrun, accelerate, deepspeed) by the environment that they set; does not know problems,
prompts or rewards.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from accelerate import Accelerator
from torch import nn
from torch.distributed.fsdp import FSDPModule

Item = TypeVar("Item")


def num_ranks() -> int:
    """Processes of this run, over all machines."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def num_ranks_here() -> int:
    """Processes of this run on this machine; torchrun and accelerate call it otherwise than deepspeed."""
    return int(os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("LOCAL_SIZE") or "1")


def num_processors() -> int:
    """One rank's share of the processors that the run may use on this machine, at least 1."""
    return max(1, len(os.sched_getaffinity(0)) // num_ranks_here())


def connect_deepspeed(use_cpu: bool) -> None:
    """Let deepspeed know the ranks before a model is made: ZeRO-3 divides it among them as it is loaded.

    Transformers does so where there is an accelerator, and there alone.

    Raises:
        ValueError: No launcher has started this process.

    """
    if "LOCAL_RANK" not in os.environ:
        raise ValueError("--deepspeed needs its launcher; start with: deepspeed --num_gpus N SCRIPT ...")
    if use_cpu:
        from deepspeed import init_distributed  # there on Linux only

        init_distributed("gloo")


def equal_share(items: Sequence[Item], rank: int, num_ranks: int) -> list[Item]:
    """Neighbours among the items, equally many for every rank: after the last item comes the first again.

    Ranks that share out their weights wait for each other at every forward pass, so none may make fewer. The
    shares of all ranks one after another are the items, and then those that came again.
    """
    size = math.ceil(len(items) / num_ranks)
    return [items[i % len(items)] for i in range(rank * size, (rank + 1) * size)]


@contextmanager
def whole_weights(model: nn.Module, accelerator: Accelerator) -> Iterator[None]:
    """Weights that FSDP2 gathers for the first forward pass inside stay gathered for those that follow.

    Sampling would gather them anew for every token. Models that FSDP2 does not divide are left as they are.
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

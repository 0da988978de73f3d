"""Ranks of a distributed run, from the environment that launchers set (torchrun, accelerate, deepspeed)."""

import os


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

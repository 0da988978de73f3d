"""Account of an update: the seconds of its parts, and whether other work shares the cores."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from transformers import TrainerCallback

from cocos.executor import Executor
from cocos.generation.clocks import Clocks
from cocos.trajectories import Trajectory

logger = logging.getLogger(__name__)

SAMPLING = ("prefill", "steps", "sampler")  # parts of an update that transformers' generator measures
UPDATE = ("trees", "forward", "backward", "optimizer")
CROWDED = 5  # with two threads, that is ten times as long as without other work


class UpdateTimer(TrainerCallback):
    """Account of an update on this process: seconds of its parts, tokens and programs.

    Args:
        executor: Executor whose counters are read.
        record: Logs the parts of an update outside rollout and log-probabilities.

    """

    def __init__(self, executor: Executor, record: Callable[[dict[str, float]], None]) -> None:
        self.clocks = Clocks()
        self._executor, self._record = executor, record
        self._num_programs = 0  # before the update
        self._update_start = time.perf_counter()
        self._step = ExitStack()  # ends the optimizer's part

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        has_threads = args.device.type == "cpu" and torch.get_num_threads() > 1
        if has_threads and (note := crowded_text(*product_seconds())):
            logger.warning(note)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.clocks.seconds.clear()  # an evaluation's
        self._num_programs = self._executor.stats.programs
        self._update_start = time.perf_counter()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step.enter_context(self.clocks.part("optimizer"))

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step.close()

    def metrics(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Return times and rates of the generation batch that this process has just played.

        Programs run while the model samples. `time/execution_s` is only the time spent waiting for verdicts.
        """
        turns = (turn for trajectory in trajectories for turn in trajectory.turns)
        completions = [turn.completion for turn in turns if turn.is_sampled]
        seconds = self.clocks.seconds
        rollout_s = seconds["rollout"] + sum(seconds[part] for part in SAMPLING)
        generation_s = min(sum(completion.duration_s for completion in completions), rollout_s)
        programs = self._executor.stats.programs - self._num_programs
        return {
            "time/rollout_s": rollout_s,
            "time/generation_s": generation_s,
            **{f"time/{part}_s": seconds[part] for part in SAMPLING if part in seconds},
            "time/execution_s": rollout_s - generation_s,
            "time/logprobs_s": seconds["logprobs"],
            "tokens_per_s": sum(len(c.token_ids) for c in completions) / max(generation_s, 1e-9),
            "executor/programs": programs,
            "executor/programs_per_s": programs / max(rollout_s, 1e-9),
        }

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        whole_s, seconds = time.perf_counter() - self._update_start, self.clocks.seconds
        self._record(
            {f"time/{part}_s": seconds[part] for part in UPDATE}
            | {
                "time/update_s": whole_s - sum(s for part, s in seconds.items() if part not in UPDATE),
                "time/rest_s": whole_s - sum(seconds.values()),
            }
        )
        seconds.clear()


def product_seconds(repeats: int = 200) -> tuple[float, float]:
    """Return the seconds of a small product of matrices with one thread, and with all threads of PyTorch."""
    threads, seconds = torch.get_num_threads(), []
    left, right = torch.ones(64, 512), torch.ones(512, 512)
    for number in (1, threads):
        torch.set_num_threads(number)
        start = time.perf_counter()
        for _ in range(repeats):
            left @ right
        seconds.append((time.perf_counter() - start) / repeats)
    return seconds[0], seconds[1]


def crowded_text(one_s: float, all_s: float) -> str:
    """Return a warning if a product is much slower with all threads than with one; "" if it is not.

    The threads wait for each other after every product, and for the one that other work keeps from its core.
    Alone on a machine, all threads are as fast as one or faster.
    """
    if all_s <= CROWDED * one_s:
        return ""
    return (
        f"other work shares the cores: with all threads, a product takes {all_s / one_s:.0f} times as long "
        "as with one; end that work, or set OMP_NUM_THREADS to the number of free cores"
    )

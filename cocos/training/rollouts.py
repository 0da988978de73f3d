"""Rollouts of a training batch: which trajectories the current policy plays, and what they earn.

`rollout.py` has the turn loop, `dynamic_sampling.py` the choice of problems. This module connects them with
the policy that is being trained, on all ranks. It does not know the loss.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn
from torch.distributed.fsdp import FSDPModule

from cocos.assembly.objective import make_objective, own_reward
from cocos.assembly.rules import make_rules
from cocos.config.cocos_options import CoCoSOptions
from cocos.executor import Executor
from cocos.generation import GenerationStopped, Generator, Progress
from cocos.generation.clocks import Clocks
from cocos.generation.progress import BatchProgress
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.rewards import random_reward, turn_reward
from cocos.rollout import InfraFailures, Play, RolloutContext, play_turns, rollout
from cocos.training.dynamic_sampling import Batch, Group, ProblemDraw, fill_batch
from cocos.trajectories import Trajectory, begin, problems_of

Item = TypeVar("Item")


class SampledBatch(NamedTuple):
    """A batch of all ranks."""

    batch: Batch
    played_here: list[Trajectory]  # all trajectories that this rank has played for it
    beside: Any  # what `meanwhile` returned; None: it was not called


@dataclass
class RolloutPlayer:
    """Player of trajectories with the current policy, on this rank or on all ranks together.

    Attributes:
        progress: Shows the progress of sampling; None: nothing does.
        clocks: Measure the parts of sampling.
        draw: Order of the problems with dynamic sampling.
        hidden_s: Seconds of the last `meanwhile` in which programs ran beside it.

    """

    options: CoCoSOptions  # of the run
    prompts: Sequence[Trajectory]  # without turns, to train on
    executor: Executor  # runs the programs
    protocol: PromptProtocol  # prompts of all turns
    open_generator: Callable[[], AbstractContextManager[Generator]]  # samples from the current policy
    seed: int = 0  # of the order in which dynamic sampling draws problems, and of random rewards
    rank: int = 0  # this process
    num_ranks: int = 1
    # Whether this process was asked to stop; sampling for training then gives up.
    is_stopped: Callable[[], bool] | None = None
    progress: BatchProgress | None = None
    clocks: Clocks = field(default_factory=Clocks)
    hidden_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        options, problems = self.options, problems_of(self.prompts)
        self.rules = make_rules(options, [options.temperature], None, problems, options.prompt_tests)
        self.own_reward = own_reward(options)
        self.draw = ProblemDraw(len(self.prompts), self.seed)

    def sample_batch(
        self, indices: Sequence[int], meanwhile: Callable[[list[Trajectory]], Any] | None = None
    ) -> SampledBatch:
        """Play the groups of one batch of all ranks.

        Args:
            indices: Prompt of each trajectory of this rank. Dynamic sampling plays prompts of its own draw
                instead.
            meanwhile: Called on all ranks together while the last programs run, with the trajectories, as yet
                without results. Not called if the results decide which trajectories the batch has (dynamic
                sampling), or if ranks play others than those of their `indices`.

        Raises:
            GenerationStopped: A rank was asked to stop. All ranks raise it together.

        """
        size, max_draws = self.options.num_generations, self.options.dynamic_sampling
        draws = _Draws(self, len(indices), None if max_draws else meanwhile)
        every_index = gather_object(list(indices))
        if max_draws:
            batch = fill_batch(draws.play, self.draw, len(every_index) // size, max_draws)
        else:
            batch = Batch(draws.play(every_index[::size]), dropped=[], num_draws=0)
        return SampledBatch(batch, draws.played_here, draws.beside)

    def sample(self, prompts: Sequence[Trajectory]) -> list[Trajectory] | None:
        """Sample one trajectory of T turns per entry; None: this rank was asked to stop.

        With credit `last`, siblings share turns 1..T-1.
        """
        plays = self._begin(prompts)
        return None if plays is None else [play.finish(self.options.num_turns) for play in plays]

    def sample_beside(
        self, prompts: Sequence[Trajectory], meanwhile: Callable[[list[Trajectory]], Any]
    ) -> tuple[list[Trajectory] | None, Any]:
        """Sample like `sample`; return also what `meanwhile` returned. (None, None): a rank was stopped."""
        num_turns, plays = self.options.num_turns, self._begin(prompts)
        # The passes of `meanwhile` need all ranks.
        if not all(gather_object([plays is not None])) or plays is None:
            return None, None
        pending = [played.result for play in plays for played in play.played]
        unfinished = [play.unfinished(num_turns) for play in plays]
        found, self.hidden_s = call_beside(pending, lambda: meanwhile(unfinished))
        return [play.finish(num_turns) for play in plays], found

    def _begin(self, prompts: Sequence[Trajectory]) -> list[Play] | None:
        """Sample all turns of trajectories, whose last programs may run on; None: this rank was stopped."""
        num_turns, size = self.options.num_turns, self.options.num_generations
        trajectories = [replace(prompt, sample=i % size) for i, prompt in enumerate(prompts)]
        plays = None
        # The exception ends here: raised in TRL's context, it would leave the model without ZeRO-3's hooks.
        with self._watched_generator() as generator, suppress(GenerationStopped):
            generator.is_stopped = self.is_stopped
            setup = (generator, self.executor, self.protocol)
            if self.options.credit == "last" and num_turns > 1:
                shared = rollout(trajectories[::size], *setup, num_turns - 1, self.rules)
                trajectories = [replace(t, turns=shared[i // size].turns) for i, t in enumerate(trajectories)]
            plays = play_turns(trajectories, RolloutContext(*setup, self.rules), num_turns)
        return plays

    def play_greedily(self, problems: Sequence[Problem]) -> list[Trajectory]:
        """Play one trajectory per problem at temperature 0, on all ranks; return those of all ranks."""
        # Equally many problems per rank, because with sharded weights every forward pass needs all ranks.
        share = begin(equal_share(problems, self.rank, self.num_ranks))
        rules = replace(self.rules, temperatures=(0.0,), keeps_truncated=True)  # an evaluation's
        with self._watched_generator() as generator:
            played = rollout(share, generator, self.executor, self.protocol, self.options.num_turns, rules)
        trajectories = gather_object(played)[: len(problems)]
        InfraFailures(self.options.max_infra_share).add(trajectories)
        return trajectories

    @contextmanager
    def _watched_generator(self) -> Iterator[Generator]:
        with self.open_generator() as generator, self.progress or nullcontext(Progress()) as progress:
            generator.progress, generator.clocks = progress, self.clocks
            yield generator

    def rewards(self, trajectory: Trajectory) -> list[float | None]:
        """Return r_1..r_T of a played trajectory; None where the executor failed."""
        options = self.options
        if self.own_reward is not None:
            return self.own_reward(trajectory)
        if options.reward == "random":
            return [
                random_reward(turn.result, f"{self.seed} {trajectory.key} {t} {turn.completion.token_ids}")
                for t, turn in enumerate(trajectory.turns)
            ]
        num_unpaid = len(trajectory.problem.test_list) if options.reward_tests == "hidden" else 0
        rule = options.reward, options.reward_in_child, num_unpaid
        return [turn_reward(turn.result, *rule) for turn in trajectory.turns]

    def group(self, index: int, siblings: list[Trajectory]) -> Group:
        """Return the group of a prompt, given by index, with its rewards."""
        rewards_G_T = [self.rewards(trajectory) for trajectory in siblings]
        return Group(index, siblings, rewards_G_T, make_objective(self.options))

    def check_rewards(self, groups: Sequence[Group]) -> None:
        """Raise ValueError if the user's function gives no turn of a batch a reward."""
        rewards = (reward for group in groups for rewards_T in group.rewards_G_T for reward in rewards_T)
        turns = (turn for group in groups for t in group.trajectories for turn in t.turns)
        is_unpaid = all(reward is None for reward in rewards)
        if self.own_reward and is_unpaid and not all(turn.result.is_infra_failure for turn in turns):
            raise ValueError(
                f"--reward {self.own_reward.name}: the function returned None for every turn of a batch; "
                "return a number for the turns that are to be trained"
            )

    def check_truncated(self, trajectories: Sequence[Trajectory]) -> None:
        """Raise ValueError if too many of the sampled completions were truncated."""
        turns = (turn for trajectory in trajectories for turn in trajectory.turns)
        truncated = [turn.completion.is_truncated for turn in turns if turn.is_sampled]
        if sum(truncated) > self.options.max_truncated_share * len(truncated):
            raise ValueError(
                f"{sum(truncated)} of {len(truncated)} completions were truncated at "
                f"{self.options.max_completion_length} tokens, more than --max_truncated_share "
                f"{self.options.max_truncated_share}; raise --max_completion_length, or train a Boost model "
                f"first, so that completions end with [DONE]"
            )


@dataclass
class _Draws:
    """The draws of one batch, and what was played for them so far."""

    player: RolloutPlayer
    num_here: int  # trajectories of this rank for which `meanwhile` is called
    meanwhile: Callable[[list[Trajectory]], Any] | None  # see `sample_batch`
    played_here: list[Trajectory] = field(default_factory=list)
    played: list[Trajectory] = field(default_factory=list)  # of all ranks
    beside: Any = None  # what `meanwhile` returned

    def play(self, drawn: Sequence[int]) -> list[Group]:
        """Play a group of each prompt, given by index, on all ranks together."""
        player, size = self.player, self.player.options.num_generations
        # With credit `last`, siblings share their first turns.
        keep_whole = player.options.credit == "last"
        share = share_of_groups(drawn, size, keep_whole, player.rank, player.num_ranks)
        prompts = [player.prompts[index] for index in share]
        if self.meanwhile and len(share) == self.num_here:
            sampled, self.beside = player.sample_beside(prompts, self.meanwhile)
        else:
            sampled = player.sample(prompts)
        by_rank = gather_object([sampled])
        if sampled is None or None in by_rank:  # the other ranks learn of it here
            raise GenerationStopped
        self.played_here += sampled
        trajectories = [trajectory for one in by_rank for trajectory in one][: len(drawn) * size]
        self.played += trajectories
        # A further draw may be small, so the limits apply to all trajectories of the batch.
        InfraFailures(player.options.max_infra_share).add(self.played)
        player.check_truncated(self.played)
        siblings = [trajectories[start : start + size] for start in range(0, len(trajectories), size)]
        groups = [player.group(index, group) for index, group in zip(drawn, siblings, strict=True)]
        player.check_rewards(groups)
        return groups


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


def call_beside(pending: Sequence[Future[Any]], call: Callable[[], Item]) -> tuple[Item, float]:
    """Make a call; return its value, and the seconds of it in which one of the results was pending."""
    started = time.perf_counter()
    ends = [started]
    for future in pending:
        if not future.done():
            future.add_done_callback(lambda _: ends.append(time.perf_counter()))
    value = call()
    finished = time.perf_counter()
    last = min(finished, max(ends)) if all(future.done() for future in pending) else finished
    return value, last - started


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
            reshards = accelerator.state.fsdp_plugin.reshard_after_forward
            shard.set_reshard_after_forward(reshards, recurse=False)
            shard.reshard()


@contextmanager
def unchanged_base(model: nn.Module) -> Iterator[None]:
    """Restore the weights under LoRA adapters after the context, bit by bit.

    TRL merges an adapter into them to hand them to vLLM, and subtracts it again. In bfloat16 that changes
    them: over 1,500 updates by 0.5 %, so that the adapter would be saved for a base that does not exist.
    """
    layers = [module.get_base_layer() for module in model.modules() if isinstance(module, BaseTunerLayer)]
    kept = [(layer.weight, layer.weight.detach().clone()) for layer in layers if layer.weight.numel()]
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, before in kept:
                weight.copy_(before)

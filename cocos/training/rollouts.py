"""Rollouts of a training batch: which trajectories the current policy plays, and what they earn.

`rollout.py` has the turn loop, `dynamic_sampling.py` the choice of problems; this module connects them with
the policy that is being trained, on all ranks. It does not know the loss.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn
from torch.distributed.fsdp import FSDPModule
from trl import RLOOTrainer
from trl.models import unwrap_model_for_generation

from cocos.config.trl_configs import CoCoSConfig
from cocos.distributed import share_of_groups
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.generation.trl_engines import ContinuousBatches, VLLMRollouts, sync_weights
from cocos.prompts import PromptProtocol
from cocos.rewards import Objective, RewardKind, turn_reward
from cocos.rollout import rollout
from cocos.training.dynamic_sampling import Batch, Group, ProblemDraw, fill_batch
from cocos.trajectories import Rules, Trajectory, check_infra_failures


class Rollouts(RLOOTrainer):
    """RLOOTrainer that plays trajectories with its policy and scores them; a subclass sets the attributes."""

    args: CoCoSConfig
    prompts: list[Trajectory]
    executor: Executor
    protocol: PromptProtocol
    objective: Objective
    rules: Rules
    draw: ProblemDraw
    _last_loaded_step: int

    def sample_batch(self, indices: list[int]) -> tuple[Batch, list[Trajectory]]:
        """Play the groups of one batch of all ranks.

        Args:
            indices: Prompt of each trajectory of this rank. Dynamic sampling plays prompts of its own draw
                instead.

        Returns:
            The batch, and all trajectories that this rank has played for it.

        """
        size, max_draws = self.args.num_generations, self.args.dynamic_sampling
        rank, num_ranks = self.accelerator.process_index, self.accelerator.num_processes
        played_here: list[Trajectory] = []
        played: list[Trajectory] = []  # of all ranks

        def play(drawn: Sequence[int]) -> list[Group]:
            # With credit `last`, siblings share their first turns.
            share = share_of_groups(drawn, size, self.args.credit == "last", rank, num_ranks)
            sampled = self.sample_trajectories([self.prompts[index] for index in share])
            played_here.extend(sampled)
            trajectories = gather_object(sampled)[: len(drawn) * size]
            played.extend(trajectories)
            # A further draw may be small, so the limits apply to all trajectories of the batch.
            check_infra_failures(played, self.args.max_infra_share)
            self._check_truncated(played)
            groups = []
            for i, index in enumerate(drawn):
                siblings = trajectories[i * size : (i + 1) * size]
                rewards_G_T = [self.rewards(trajectory) for trajectory in siblings]
                binary_G_T = [self.rewards(trajectory, "binary") for trajectory in siblings]
                groups.append(Group(index, siblings, rewards_G_T, binary_G_T, self.objective))
            return groups

        if max_draws:
            batch = fill_batch(play, self.draw, self.args.generation_batch_size // size, max_draws)
        else:
            batch = Batch(play(gather_object(indices)[::size]), dropped=[], num_draws=0)
        return batch, played_here

    def sample_trajectories(self, prompts: Sequence[Trajectory]) -> list[Trajectory]:
        """Sample one trajectory of T turns per entry. With credit `last`, siblings share turns 1..T-1."""
        num_turns, group_size = self.args.num_turns, self.args.num_generations
        rules = self.rules
        trajectories = [replace(prompt, sample=i % group_size) for i, prompt in enumerate(prompts)]
        with self.generator() as generator:
            if self.args.credit == "last" and num_turns > 1:
                shared = rollout(
                    trajectories[::group_size], generator, self.executor, self.protocol, num_turns - 1, rules
                )
                trajectories = [
                    replace(t, turns=shared[i // group_size].turns) for i, t in enumerate(trajectories)
                ]
            trajectories = rollout(trajectories, generator, self.executor, self.protocol, num_turns, rules)
        return trajectories

    @contextmanager
    def generator(self) -> Iterator[Generator]:
        """Yield a generator that samples from the current policy.

        The policy is unwrapped from DDP, ZeRO or FSDP, or its weights are copied to vLLM.
        """
        if self.use_vllm:
            # TRL's own counter: vLLM needs new weights once per update, not once per generation.
            if self.state.global_step != self._last_loaded_step:
                sync_weights(self.vllm_generation)
                self._last_loaded_step = self.state.global_step
            yield VLLMRollouts(self.vllm_generation, self._tokenizer, self.eos_token_ids)
            return
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
            self._dist.summon_full_params(self.model_wrapped, recurse=False),
            whole_weights(self.model_wrapped, self.accelerator),
        ):
            length = self.args.max_completion_length
            if self.use_transformers_continuous_batching:
                yield ContinuousBatches(model, self._tokenizer, self.continuous_batching_config, length)
            else:
                yield HuggingFaceGenerator(model, self._tokenizer, length, self.args.rollout_batch_size)

    def rewards(self, trajectory: Trajectory, kind: RewardKind | None = None) -> list[float | None]:
        """Return r_1..r_T of a trajectory; None where the executor failed.

        Args:
            trajectory: A played trajectory.
            kind: None: the kind of the option --reward.

        """
        args = self.args
        num_unpaid = len(trajectory.problem.test_list) if args.reward_tests == "hidden" else 0
        return [
            turn_reward(turn.result, kind or args.reward, args.reward_in_child, num_unpaid)
            for turn in trajectory.turns
        ]

    def _check_truncated(self, trajectories: Sequence[Trajectory]) -> None:
        truncated = [
            turn.completion.is_truncated for t in trajectories for turn in t.turns if turn.is_sampled
        ]
        if sum(truncated) > self.args.max_truncated_share * len(truncated):
            raise ValueError(
                f"{sum(truncated)} of {len(truncated)} completions were truncated at "
                f"{self.args.max_completion_length} tokens, more than --max_truncated_share "
                f"{self.args.max_truncated_share}; raise --max_completion_length, or train a Boost model "
                f"first, so that completions end with [DONE]"
            )


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

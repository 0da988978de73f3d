"""Estimate of a run's duration: updates, passes over the data, and seconds.

The assumptions are the constants below. Standard library only; `memory.py` estimates the memory.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from cocos.planning.memory import cache_bytes, weight_bytes
from cocos.planning.shapes import Layout, ModelShape, Pass, Workload

LAUNCH_S = 1e-3  # seconds to launch a decoder layer's kernels for one token of every sequence: assumed
UTILISATION = 0.35  # share of a card's peak that large matrix products reach: assumed


@dataclass(frozen=True)
class Card:
    """Data-sheet values of a GPU."""

    name: str  # name in reports
    memory_gib: int  # memory in GiB
    tflops: float  # peak rate of dense bfloat16 matrix products in TFLOP/s
    tb_s: float  # memory bandwidth in TB/s


A10 = Card("A10, 24 GB", 24, 125, 0.6)
A100 = Card("A100, 80 GB", 80, 312, 2.0)


@dataclass(frozen=True)
class Schedule:
    """Sizes of one update, over all GPUs."""

    problems: int  # problems in the training file
    trajectories: int  # trajectories per update
    group: int  # trajectories per problem (the group size)
    turns: int  # turns per trajectory, T
    trained_turns: int  # rows of the loss per trajectory, K
    problems_per_rollout: int  # problems per rollout, that is, sampled together
    updates_per_rollout: int = 1  # updates from the trajectories of one rollout
    shares_prefixes: bool = True  # the passes of the loss compute the common prefixes of rows once

    @property
    def rows(self) -> int:
        """Rows of the loss per update."""
        return self.trajectories * self.trained_turns

    @property
    def programs(self) -> int:
        """Programs per update; the executor runs identical ones only once."""
        return self.trajectories * self.turns

    def loss_tokens(self, trajectories: float, prompts_T: list[int], answer: int) -> int:
        """Return the tokens that one pass of the loss over some trajectories computes, padding included.

        A row of the loss is padded to the longest row. With shared prefixes, a group computes the prompt of
        its first trained turn once, and each of its trajectories the tokens after it.

        Example: a group of two with prompts of 100 and 160 and answers of 50 has four rows of 210 tokens, or
        a tree of 100 + 2 * 110 = 320.
        """
        transcript = prompts_T[-1] + answer
        if not self.shares_prefixes:
            return round(trajectories * self.trained_turns * transcript)
        first = prompts_T[-self.trained_turns]
        return round(math.ceil(trajectories / self.group) * first + trajectories * (transcript - first))

    def workload(
        self, prompts_T: list[int], answer: int, num_gpus: int, rollout_batch_size: int, per_device: int
    ) -> Workload:
        """Return the sizes of each phase on one GPU; `per_device` trajectories make a micro-batch."""
        local = self.problems_per_rollout * self.group // num_gpus
        rows, longest = local * self.trained_turns, prompts_T[-1] + answer
        tokens = self.loss_tokens(local, prompts_T, answer)
        scored_together = min(tokens, rollout_batch_size * longest)
        return Workload(
            rollout_rows=min(rollout_batch_size, local),
            prompt=prompts_T[-1],
            answer=answer,
            scoring=Pass(scored_together, rows * answer * scored_together // tokens),
            update=Pass(
                self.loss_tokens(per_device, prompts_T, answer), per_device * self.trained_turns * answer
            ),
        )

    @property
    def updates_per_pass(self) -> int:
        """Updates in one pass over the problems.

        Remaining problems that do not fill a rollout are skipped. It is 0 if no rollout can be filled.
        """
        return self.problems // self.problems_per_rollout * self.updates_per_rollout


def prompt_lengths(first: int, answer: int, instruction: int, turns: int) -> list[int]:
    """Return the number of tokens before each turn's answer if every answer has `answer` tokens.

    Example: a first prompt of 100, answers of 50 and an instruction of 10 give 100, 160, 220.
    """
    return [first + turn * (answer + instruction) for turn in range(turns)]


class Seconds(NamedTuple):
    """Seconds of one update, by phase."""

    rollout: float
    scoring: float
    update: float

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return sum(self)


def seconds_per_update(
    shape: ModelShape,
    layout: Layout,
    schedule: Schedule,
    card: Card,
    prompts_T: list[int],
    answer: int,
    rollout_rows: int,
) -> Seconds:
    """Estimate the seconds of one update, without programs and communication.

    Each batch of `rollout_rows` takes `answer` steps per turn. A step takes the time of launching its
    kernels, or of reading weights and cache once, whichever is longer. All other time is arithmetic with P
    parameters. Prefill takes 2 P operations per token of the prompts. Scoring takes 2 P per token of the loss
    for the policy, and as many for the reference. With one update per rollout and no reference there is no
    scoring, because the update computes the log-probabilities itself. The update takes `training_seconds`.

    Args:
        prompts_T: Tokens before each turn's answer, including padding.

    """
    trajectories = schedule.trajectories / layout.num_gpus
    batches = math.ceil(trajectories / rollout_rows)
    rows = min(rollout_rows, trajectories)
    gathered = layout.num_gpus if layout.zero_stage >= 3 else 1  # sampling reads the weights of all GPUs
    weights = weight_bytes(shape, layout) * gathered
    rollout = 0.0
    for prompt in prompts_T:
        cache = cache_bytes(shape, round(rows * (prompt + answer / 2)), layout.compute)
        step = max(LAUNCH_S * shape.layers, (weights + cache) / (card.tb_s * 1e12))
        rollout += batches * answer * step + _seconds(2 * shape.parameters * trajectories * prompt, card)
    tokens = schedule.loss_tokens(trajectories, prompts_T, answer)
    forwards = 2 if layout.has_reference else int(schedule.updates_per_rollout > 1)
    return Seconds(
        rollout=rollout,
        scoring=_seconds(forwards * 2 * shape.parameters * tokens, card),
        update=training_seconds(shape, layout, card, tokens),
    )


def training_seconds(shape: ModelShape, layout: Layout, card: Card, tokens: float) -> float:
    """Estimate the seconds of a forward and backward pass over `tokens` tokens on one GPU.

    Operations per token with P parameters: 2 P forward, 4 P backward (2 P under an adapter, because its base
    has no weight gradients), and 2 P to repeat the forward pass under activation checkpointing.
    """
    backward = 2 if shape.adapter_parameters else 4
    passes = 2 + backward + 2 * layout.checkpoints_activations
    return _seconds(passes * shape.parameters * tokens, card)


def _seconds(operations: float, card: Card) -> float:
    return operations / (card.tflops * 1e12 * UTILISATION)

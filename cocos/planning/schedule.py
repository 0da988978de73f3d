"""Estimate of a run's duration: updates, passes over the data, and seconds.

The assumptions are the constants below. Standard library only; `memory.py` estimates the memory.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from cocos.planning.memory import cache_bytes, weight_bytes
from cocos.planning.shapes import GIB, Layout, ModelShape, Pass, Workload

# Seconds to launch a decoder layer's kernels for one token of every sequence, by sampler: assumed. vLLM
# replays CUDA graphs: 2.5 ms for the 28 layers of Qwen2.5-1.5B.
LAUNCH_S = {"transformers": 1e-3, "vLLM": 0.09e-3}
UTILISATION = 0.35  # share of a card's peak that large matrix products reach: assumed
ENDLESS = 0.02  # share of the programs that run until their time limit: assumed
ENGINE_OVERHEAD = 1.0 * GIB  # activations and graphs of a vLLM engine: assumed
CALIBRATED_S = 1.0  # shortest time limit that follows from references (executor/calibration.py)


@dataclass(frozen=True)
class Card:
    """Data-sheet values of a GPU."""

    name: str  # name in reports
    memory_gib: int  # memory in GiB
    tflops: float  # peak rate of dense bfloat16 matrix products in TFLOP/s
    tb_s: float  # memory bandwidth in TB/s


A10 = Card("A10, 24 GB", 24, 125, 0.6)
A100 = Card("A100, 80 GB", 80, 312, 2.0)
H100 = Card("H100, 80 GB", 80, 989, 3.35)
H200 = Card("H200, 141 GB", 141, 989, 4.8)


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
    timeout_s: float = 10.0  # time limit of a program
    waits_for_programs: bool = False  # a turn needs the results of the one before: feedback or early stop

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

    def attended(self, trajectories: float, prompts_T: list[int], answer: int) -> float:
        """Return the pairs of tokens that attention computes in one pass of the loss: segments of trees.

        Example: the tree of `loss_tokens` has 100^2 / 2 pairs of the prompt, and (210^2 - 100^2) / 2 for
        each trajectory.
        """
        transcript = prompts_T[-1] + answer
        if not self.shares_prefixes:
            return trajectories * self.trained_turns * transcript**2 / 2
        first = prompts_T[-self.trained_turns]
        shared = math.ceil(trajectories / self.group) * first**2
        return (shared + trajectories * (transcript**2 - first**2)) / 2

    def seconds_of_programs(self) -> float:
        """Return the expected seconds that an update waits for programs that do not end.

        The programs of the last turn have no sampling beside them; with `waits_for_programs` no turn has. A
        turn of n programs waits for the time limit with probability 1 - (1 - ENDLESS)^n, however many run
        to it.
        """
        waits = self.turns if self.waits_for_programs else 1
        return waits * (1 - (1 - ENDLESS) ** self.trajectories) * self.timeout_s

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

        Remaining problems that do not fill a rollout are skipped. If there are too few for one, they are
        repeated, and a pass is one rollout.
        """
        return max(1, self.problems // self.problems_per_rollout) * self.updates_per_rollout


def prompt_lengths(first: int, answer: int, instruction: int, turns: int) -> list[int]:
    """Return the number of tokens before each turn's answer if every answer has `answer` tokens.

    Example: a first prompt of 100, answers of 50 and an instruction of 10 give 100, 160, 220.
    """
    return [first + turn * (answer + instruction) for turn in range(turns)]


class Seconds(NamedTuple):
    """Seconds of one update, by phase."""

    rollout: float
    programs: float
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
    """Estimate the seconds of one update, without communication.

    Each batch takes `answer` steps per turn: a batch of `rollout_rows` with transformers, as many rows as fit
    into its cache with vLLM (`engine_rows`). A step takes the time of launching its kernels, or of reading
    weights and cache once, whichever is longer. All other time is arithmetic with P parameters. Prefill takes
    2 P operations per new token of the prompts: the first prompt once per group, then what stands between two
    answers. Scoring is a forward pass over the tokens of the loss for the policy, and one for the reference.
    With one update per rollout and no reference there is no scoring, because the update computes the
    log-probabilities itself. The update takes `training_seconds`.

    Args:
        prompts_T: Tokens before each turn's answer, including padding.

    """
    trajectories = schedule.trajectories / layout.num_gpus
    if layout.engine_share:
        rollout_rows = engine_rows(shape, layout, card, prompts_T[-1] + answer)
    batches = math.ceil(trajectories / rollout_rows)
    rows = min(rollout_rows, trajectories)
    gathered = layout.num_gpus if layout.zero_stage >= 3 else 1  # sampling reads the weights of all GPUs
    weights = weight_bytes(shape, layout) * gathered
    between = prompts_T[-1] - prompts_T[0] - (len(prompts_T) - 1) * answer
    rollout = _seconds(2 * shape.parameters * trajectories * (prompts_T[0] / schedule.group + between), card)
    for prompt in prompts_T:
        cache = cache_bytes(shape, rows * (prompt + answer / 2), layout.cached)
        step = max(LAUNCH_S[layout.sampler] * shape.layers, (weights + cache) / (card.tb_s * 1e12))
        rollout += batches * answer * step
    tokens = schedule.loss_tokens(trajectories, prompts_T, answer)
    pairs = schedule.attended(trajectories, prompts_T, answer)
    forwards = 2 if layout.has_reference else int(schedule.updates_per_rollout > 1)
    return Seconds(
        rollout=rollout,
        programs=schedule.seconds_of_programs(),
        scoring=_seconds(forwards * _forward_operations(shape, tokens, pairs), card),
        update=training_seconds(shape, layout, card, tokens, pairs),
    )


def engine_rows(shape: ModelShape, layout: Layout, card: Card, longest: int) -> int:
    """Return how many transcripts of `longest` tokens the cache of a colocated vLLM engine holds, at least 1.

    The engine's weights are a copy of its own, in bfloat16.
    """
    room = layout.engine_share * card.memory_gib * GIB - 2 * shape.parameters - ENGINE_OVERHEAD
    return max(1, int(room / cache_bytes(shape, longest)))


def training_seconds(
    shape: ModelShape, layout: Layout, card: Card, tokens: float, pairs: float = 0.0
) -> float:
    """Estimate the seconds of a forward and backward pass over `tokens` tokens on one GPU.

    The backward pass takes twice the operations of the forward pass; under an adapter its products with
    weights take as many, because the base has no weight gradients. Activation checkpointing repeats the
    forward pass.

    Args:
        pairs: Pairs of tokens that attention computes; 0 leaves attention out.

    """
    forward = _forward_operations(shape, tokens, pairs)
    backward = 2 * forward - (2 * shape.parameters * tokens if shape.adapter_parameters else 0)
    return _seconds(forward + backward + forward * layout.checkpoints_activations, card)


def _forward_operations(shape: ModelShape, tokens: float, pairs: float) -> float:
    """Return the operations of a forward pass: 2 P per token, and two products per pair, head and layer."""
    return 2 * shape.parameters * tokens + 4 * shape.layers * shape.heads * shape.head_dim * pairs


def _seconds(operations: float, card: Card) -> float:
    return operations / (card.tflops * 1e12 * UTILISATION)

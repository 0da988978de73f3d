"""How long a run is: updates, passes over the data, tokens, seconds, and processors for its programs.

Worked out on paper from a few named assumptions. Standard library only; `memory.py` holds the other half of
the estimate, `dry_run.py` reads the configuration.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from cocos.planning.memory import GIB, ModelShape, Setting, cache_bytes, weight_bytes

LAUNCH_S = 1e-3  # per decoder layer and sampled token, whatever the batch: eager kernels, assumed
UTILISATION = 0.35  # share of a card's peak that large matrix products reach, assumed
PROGRAMS_PER_CORE_S = 640  # docs/executor.md: 1,281 programs/s with two workers at level namespaces
TIMEOUT_SHARE = 0.02  # of programs that run into their limit, assumed: these decide about the cores


@dataclass(frozen=True)
class Card:
    """A GPU, from its data sheet: GiB, dense bfloat16 TFLOP/s, TB/s of memory."""

    name: str
    memory_gib: int
    tflops: float
    tb_s: float


A10 = Card("A10, 24 GB", 24, 125, 0.6)
A100 = Card("A100, 80 GB", 80, 312, 2.0)


@dataclass(frozen=True)
class Schedule:
    """What one update is made of, over all GPUs.

    Attributes:
        problems: In the training file.
        trajectories: Per update.
        group: Trajectories per problem, k.
        turns: T.
        trained_turns: K, rows that a trajectory gives the loss.
        problems_per_rollout: Problems that are sampled together.
        updates_per_rollout: Updates made from what was sampled together.

    """

    problems: int
    trajectories: int
    group: int
    turns: int
    trained_turns: int
    problems_per_rollout: int
    updates_per_rollout: int = 1

    @property
    def rows(self) -> int:
        """Rows of the loss per update."""
        return self.trajectories * self.trained_turns

    @property
    def programs(self) -> int:
        """Programs per update, before identical ones are merged."""
        return self.trajectories * self.turns

    @property
    def updates_per_pass(self) -> int:
        """Updates until every problem was played once; what is left over of the last batch is skipped, so 0
        where there are fewer problems than one batch takes.
        """
        return self.problems // self.problems_per_rollout * self.updates_per_rollout


def prompt_lengths(first: int, answer: int, instruction: int, turns: int) -> list[int]:
    """Tokens before the answer of each turn, where every answer is `answer` long.

    Example: a first prompt of 100, answers of 50 and an instruction of 10: 100, 160, 220.
    """
    return [first + turn * (answer + instruction) for turn in range(turns)]


class Seconds(NamedTuple):
    """Seconds of one update, by phase."""

    rollout: float
    scoring: float
    update: float

    @property
    def total(self) -> float:
        """Of all phases, one after the other."""
        return sum(self)


def seconds_per_update(
    shape: ModelShape,
    setting: Setting,
    schedule: Schedule,
    card: Card,
    prompts_T: list[int],
    answer: int,
    rollout_rows: int,
) -> Seconds:
    """Seconds of one update, programs and communication left out.

    Sampling takes as many steps as the longest answer, per turn and per batch of `rollout_rows`; a step takes
    the time of launching its kernels, or of reading weights and cache once, whichever is longer. The rest is
    arithmetic: 2 P operations per token (P parameters) for the transcripts, for each row under the policy and
    under the reference, and `training_seconds`.

    Args:
        prompts_T: Tokens before each turn's answer, padding included.
        answer: Tokens of each answer.
        rollout_rows: Sequences that are sampled at a time on one GPU.

    """
    trajectories = schedule.trajectories / setting.num_gpus
    batches = math.ceil(trajectories / rollout_rows)
    rows = min(rollout_rows, trajectories)
    read = weight_bytes(shape, setting) * (setting.num_gpus if setting.zero_stage >= 3 else 1)
    rollout = 0.0
    for prompt in prompts_T:
        cache = cache_bytes(shape, round(rows * (prompt + answer / 2)), setting.compute)
        step = max(LAUNCH_S * shape.layers, (read + cache) / (card.tb_s * 1e12))
        rollout += batches * answer * step + _seconds(2 * shape.parameters * trajectories * prompt, card)
    trained = prompts_T[len(prompts_T) - schedule.trained_turns :]
    tokens = trajectories * len(trained) * (max(trained) + answer)
    forwards = 1 + (setting.has_reference or bool(shape.adapter_parameters))
    return Seconds(
        rollout=rollout,
        scoring=_seconds(forwards * 2 * shape.parameters * tokens, card),
        update=training_seconds(shape, setting, card, tokens),
    )


def training_seconds(shape: ModelShape, setting: Setting, card: Card, tokens: float) -> float:
    """Seconds of forward and backward over so many tokens on one GPU: 2 P operations per token forward, 4 P
    backward (2 P under an adapter: the base has no gradients), 2 P for what was checkpointed.
    """
    backward = 2 if shape.adapter_parameters else 4
    passes = 2 + backward + 2 * setting.checkpoints_activations
    return _seconds(passes * shape.parameters * tokens, card)


def _seconds(operations: float, card: Card) -> float:
    return operations / (card.tflops * 1e12 * UTILISATION)


def executor_cores(
    programs: float,
    seconds: float,
    timeout_s: float,
    timeout_share: float = TIMEOUT_SHARE,
    per_core_s: float = PROGRAMS_PER_CORE_S,
) -> int:
    """Workers, a processor each, that finish one turn's programs while another turn is sampled; never more
    than there are programs.

    Example: 64 programs in 14 s, 2 % of them endless, cut off at 10 s: 64 * (1 / 640 + 0.02 * 10) = 12.9
    processor seconds, so 1 processor.
    """
    work_s = programs * (1 / per_core_s + timeout_share * timeout_s)
    return max(1, min(math.ceil(work_s / seconds), math.ceil(programs)))


def gib(size: float) -> str:
    """Bytes in GiB, for tables."""
    return f"{size / GIB:.1f}"

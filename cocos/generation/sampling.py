"""Completions that are being sampled, and draws of the next ids of a batch, from a seed per row.

Axes: B rows of the batch, C completion ids at most, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

BLOCK_IDS = 1024  # a power of two; with some 150,000 ids, as many blocks as ids of a block are the least work

CPU_ROWS = 4  # sampled at a time, so that their logits stay in a processor's cache


@dataclass(eq=False)
class Draft:
    """Completion that is being sampled."""

    number: int  # of its prompt
    prompt: Sequence[int]
    ids: list[int] = field(default_factory=list)
    logps: list[float] = field(default_factory=list)  # of the ids; empty with greedy decoding
    has_ended: bool = False

    @property
    def computed(self) -> list[int]:
        """Ids with keys and values: the last sampled one was never an input."""
        return [*self.prompt, *self.ids[:-1]]


def uniform_draws(seeds: Sequence[int], count: int) -> torch.Tensor:
    """Return `count` random numbers in [0, 1) per seed. Drawn on the CPU, they are equal on every device."""
    generator = torch.Generator()
    return torch.stack(
        [torch.rand(count, dtype=torch.float64, generator=generator.manual_seed(seed)) for seed in seeds]
    )


def sample_ids(
    logits: torch.Tensor, temperature: float, draws: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return one id per row of logits, by inverse transform sampling, and its log-probability.

    A draw first selects a block of ids by the sum of their probabilities, then an id of that block. Up to
    rounding that is the id that it selects among all, but only one block needs float64.

    Args:
        logits: Logits of shape (B, V).
        temperature: Sampling temperature above 0; not used without draws.
        draws: Uniform random numbers in [0, 1) of shape (B); None decodes greedily.

    Returns:
        The ids (B), and their log-probabilities at the temperature (B); None with greedy decoding.

    """
    if draws is None:
        return logits.argmax(-1), None
    size = CPU_ROWS if logits.device.type == "cpu" else len(logits)
    parts = zip(logits.split(size), draws.split(size), strict=True)
    sampled = [_sample_ids(part, temperature, own) for part, own in parts]
    return torch.cat([ids for ids, _ in sampled]), torch.cat([logps for _, logps in sampled])


def _sample_ids(
    logits: torch.Tensor, temperature: float, draws: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, vocabulary = logits.shape
    if vocabulary <= BLOCK_IDS:
        probabilities = (logits.double() / temperature).softmax(-1)
        ids = _pick(probabilities, draws)[0]
        return ids, probabilities.gather(1, ids[:, None])[:, 0].log()
    num_blocks = math.ceil(vocabulary / BLOCK_IDS)
    scaled = logits.new_empty((rows, num_blocks * BLOCK_IDS), dtype=torch.float32)
    scaled[:, :vocabulary], scaled[:, vocabulary:] = logits, -torch.inf
    # Less the maximum first, so that the ids that matter have small numbers, which rounding hardly changes.
    scaled.sub_(scaled.amax(-1, keepdim=True)).div_(temperature)
    scaled = scaled.view(rows, num_blocks, BLOCK_IDS)
    sums = scaled.exp().sum(-1).double()  # (B, blocks)
    blocks, draws = _pick(sums, draws)
    selected = scaled[torch.arange(rows, device=logits.device), blocks].double()  # (B, BLOCK_IDS)
    indices = _pick(selected.exp(), draws)[0]
    logps = selected.gather(1, indices[:, None])[:, 0] - sums.sum(-1).log()
    return blocks * BLOCK_IDS + indices, logps


def _pick(weights: torch.Tensor, draws: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Select an index per row with probability proportional to its weight.

    Args:
        weights: Weights of shape (B, N), float64.
        draws: Uniform random numbers in [0, 1) of shape (B).

    Returns:
        The indices (B), and what is left of the draws: uniform random numbers in [0, 1), independent of the
        indices.

    """
    # As integers, because CUDA has no deterministic cumulative sum of floating-point numbers.
    shares = (weights * (2.0**52 / weights.sum(-1, keepdim=True))).long()
    ends = shares.cumsum(-1)
    thresholds = (draws * ends[:, -1]).long()[:, None]
    indices = torch.searchsorted(ends, thresholds, right=True).clamp(max=weights.shape[1] - 1)
    share = shares.gather(1, indices)
    rest = (thresholds - ends.gather(1, indices) + share) / share.clamp(min=1)
    return indices[:, 0], rest[:, 0]

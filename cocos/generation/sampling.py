"""Draws of the next ids of a batch, from a seed per row.

Axes: B rows of the batch, C completion ids at most, V vocabulary.
"""

from collections.abc import Sequence

import torch


def uniform_draws(seeds: Sequence[int], count: int) -> torch.Tensor:
    """Return `count` random numbers in [0, 1) per seed. Drawn on the CPU, they are equal on every device."""
    generator = torch.Generator()
    return torch.stack(
        [torch.rand(count, dtype=torch.float64, generator=generator.manual_seed(seed)) for seed in seeds]
    )


def sample_ids(logits: torch.Tensor, temperature: float, draws: torch.Tensor | None) -> torch.Tensor:
    """Return one id per row of logits, by inverse transform sampling.

    Args:
        logits: Logits of shape (B, V).
        temperature: Sampling temperature above 0; not used without draws.
        draws: Uniform random numbers in [0, 1) of shape (B); None decodes greedily.

    """
    if draws is None:
        return logits.argmax(-1)
    # float64, because a cumulative sum in float32 rounds away the small probabilities at its end.
    cumulative = (logits.double() / temperature).softmax(-1).cumsum(-1)
    # Scale the draws by the last sum, which rounding keeps from being 1. Clamp, because a scaled draw can
    # round up to that sum.
    ids = torch.searchsorted(cumulative, draws[:, None] * cumulative[:, -1:], right=True)
    return ids[:, 0].clamp(max=logits.shape[1] - 1)

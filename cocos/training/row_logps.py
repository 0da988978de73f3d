"""Log-probabilities of a batch before its update: under the old policy, the reference and the engine.

Passes over a batch, by number of updates per batch and KL penalty:

    one update                the update alone
    one update, KL            policy, reference, update
    several updates           policy, the updates
    several updates, KL       policy, reference, the updates

With a foreign engine, the policy's pass is always made, to compare it with the engine (`engine_gap`). An
engine rounds differently from the policy, may compute in another data type, and may miss an update of the
weights. So its samples are not exactly the policy's. The trainer's own sampler only rounds differently. Its
gap is measured in a pass that is made anyway, or else in the update.

With one update per batch, the old policy is the policy, so its log-probabilities are those that the update
computes, detached. The ratio exp(log p - log p_old) is then 1 without rounding, and its gradient is that of
log p. A pass of its own would round differently.

The policy's term of the KL comes from a pass over the rows as the reference's does, not from sampling, whose
passes over single tokens round differently. So a policy that equals its reference has a KL of exactly 0. Both
terms are summed in float32. Without a KL penalty, an adapter's run makes both passes at every `KL_EVERY`-th
update, to log how far the policy is from its start.

`tree_logps.py` knows how a single pass is made. Axes: R rows, P and C prompt and completion tokens.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

# Limit of a token's weight p_policy / p_engine, as in IMPALA (arXiv 1802.01561): it bounds the variance.
MAX_WEIGHT = 2.0
KL_EVERY = 5  # updates


class EngineGap(NamedTuple):
    """Gap between policy and engine on the completions of a batch.

    Attributes:
        kl_R_C: Estimate of KL(policy || engine) per token, in nats, 0 or more; shape (R, C).
        weights_R_C: Weight of each token in the gradient, p_policy / p_engine up to MAX_WEIGHT; shape (R, C).

    """

    kl_R_C: torch.Tensor
    weights_R_C: torch.Tensor


def engine_gap(policy: torch.Tensor, engine: torch.Tensor, mask: torch.Tensor) -> EngineGap:
    """Compare log-probabilities of sampled tokens under the policy and under the engine.

    With r = p_policy / p_engine, a token's estimate is r log r - (r - 1). Its mean over samples of the engine
    is KL(policy || engine), because the mean of r is 1. Example: p_policy = 0.2 and p_engine = 0.1 give r = 2
    and 2 log 2 - 1 = 0.386; equal probabilities give 0.

    The gradient of a token gets the weight min(r, MAX_WEIGHT), which makes up for the engine's distribution
    token by token. A ratio of whole rows would grow with their length, and a limit on it would leave out the
    long ones.

    Args:
        policy: log p under the policy at the sampling temperature; shape (R, C).
        engine: The same under the engine; NaN where the engine stated none, which counts as no difference.
        mask: 1 for completion tokens, else 0; shape (R, C).

    """
    # float64: the ratio of a token whose log-probabilities differ by 90 overflows in float32.
    log_ratio = (policy.double() - engine.double()).nan_to_num(nan=0.0) * mask  # (R, C)
    kl = log_ratio.exp() * log_ratio - log_ratio.expm1()
    return EngineGap(kl, log_ratio.exp().clamp(max=MAX_WEIGHT).float())


class RowStatistics(NamedTuple):
    """Log-probabilities and KL of each row of a batch, from the passes before the update.

    Attributes:
        old_logps: Log-probability of the completion under the policy that sampled, in float32; shape (R,).
            None with one update per batch: the update itself gives it.
        kl_R_C: k1 estimate of the KL to the reference, log p - log p_ref of each token, in float32; shape
            (R, C). 0 without a reference.
        gap: Gap to the engine that sampled the rows; None if no pass was made or the engine stated nothing.

    """

    old_logps: torch.Tensor | None
    kl_R_C: torch.Tensor
    gap: EngineGap | None


def divergence(kl_R_C: torch.Tensor) -> torch.Tensor:
    """Return the k3 estimate of KL(policy || reference) of each token, from its k1 estimate; shape (R, C).

    With r = p_ref / p it is r - 1 - log r: never negative and less noisy than k1 = -log r, whose mean it has,
    since the mean of r is 1. Example: p = 0.2 and p_ref = 0.1 give -0.5 + log 2 = 0.193.
    """
    k1 = kl_R_C.double()  # the ratio of a token whose log-probabilities differ by 90 overflows in float32
    return torch.expm1(-k1) + k1


def row_statistics(
    rows: Mapping[str, torch.Tensor],
    policy: Callable[[], torch.Tensor],
    reference: Callable[[], torch.Tensor] | None,
    needs_old_logps: bool,
    needs_gap: bool,
) -> RowStatistics:
    """Make the passes of a batch before its update, no more than it needs.

    Args:
        rows: The batch; `engine_logps`, shape (R, C), are the log-probabilities that the engine stated.
        policy: Makes the policy's pass: log p of every completion token at the sampling temperature, (R, C).
        reference: Makes the reference's pass; None: the KL is neither a penalty nor measured.
        needs_old_logps: The update does not give the old log-probabilities by itself.
        needs_gap: The engine is a foreign one, whose tokens are weighted.

    """
    mask = rows["completion_mask"]
    zeros = torch.zeros(mask.shape, device=mask.device)
    if reference is None and not needs_old_logps and not needs_gap:
        return RowStatistics(None, zeros, None)
    logps = policy()
    return RowStatistics(
        old_logps=(logps * mask).sum(1) if needs_old_logps else None,
        kl_R_C=zeros if reference is None else (logps - reference()) * mask,
        gap=engine_gap(logps, rows["engine_logps"], mask),
    )

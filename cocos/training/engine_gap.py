"""Gap between the policy and the engine that samples for it.

An engine rounds differently from the policy, may compute in another data type, and may miss an update of the
weights. So its samples are not exactly the policy's. Axes: R rows, C completion tokens.
"""

import math
from typing import NamedTuple

import torch

# A row is an outlier if its probabilities under policy and engine differ by more than this factor, the limit
# of TRL's GRPO. It is no sample of the policy: its gradient would be that of another distribution.
MAX_RATIO = 3.0


class EngineGap(NamedTuple):
    """Gap between policy and engine on the completions of a batch.

    Attributes:
        kl_R_C: Estimate of KL(policy || engine) per token, in nats, 0 or more; shape (R, C).
        is_outlier_R: The row's ratio of probabilities is above MAX_RATIO or below its inverse; shape (R,).

    """

    kl_R_C: torch.Tensor
    is_outlier_R: torch.Tensor


def engine_gap(policy: torch.Tensor, engine: torch.Tensor, mask: torch.Tensor) -> EngineGap:
    """Compare log-probabilities of sampled tokens under the policy and under the engine.

    With r = p_policy / p_engine, a token's estimate is r log r - (r - 1). Its mean over samples of the engine
    is KL(policy || engine), because the mean of r is 1. Example: p_policy = 0.2 and p_engine = 0.1 give r = 2
    and 2 log 2 - 1 = 0.386; equal probabilities give 0.

    Args:
        policy: log p under the policy at the sampling temperature; shape (R, C).
        engine: The same under the engine; NaN where the engine stated none, which counts as no difference.
        mask: 1 for completion tokens, else 0; shape (R, C).

    """
    # float64: the ratio of a token whose log-probabilities differ by 90 overflows in float32.
    log_ratio = (policy.double() - engine.double()).nan_to_num(nan=0.0) * mask  # (R, C)
    kl = log_ratio.exp() * log_ratio - log_ratio.expm1()
    return EngineGap(kl, log_ratio.sum(1).abs() > math.log(MAX_RATIO))

"""Forward passes of a batch: its micro-batches, its old log-probabilities, and its KL to the reference.

Passes over a batch, by number of updates per batch and KL penalty:

    one update                the update alone
    one update, KL            policy, reference, update
    several updates           policy, the updates
    several updates, KL       policy, reference, the updates

With an engine, the policy's pass is always made, to compare it with the engine (`engine_gap`).

With one update per batch, the old policy is the policy, so its log-probabilities are those that the update
computes, detached. The ratio exp(log p - log p_old) is then 1 without rounding, and its gradient is that of
log p. A pass of its own would round differently.

The policy's term of the KL comes from a pass over the rows as the reference's does, not from sampling, whose
passes over single tokens round differently. So a policy that equals its reference has a KL of exactly 0. Both
terms are summed in float32.

`tree_logps.py` knows how a single pass is made. Axes: R rows, P and C prompt and completion tokens.
"""

import math
from typing import Any, NamedTuple

import torch
from trl import RLOOTrainer
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import split_tensor_dict, use_adapter


class RowStatistics(NamedTuple):
    """Log-probabilities and KL of each row of a batch, from the passes before the update.

    Attributes:
        old_logps: Log-probability of the completion under the policy that sampled, in float32; shape (R,).
            None with one update per batch: the update itself gives it.
        kl: k1 estimate of the KL to the reference, summed over the completion, in float32; shape (R,).
        is_outlier: The engine that sampled the row gives it a very different probability; shape (R,).

    """

    old_logps: torch.Tensor | None
    kl: torch.Tensor
    is_outlier: torch.Tensor


class ForwardPasses(RLOOTrainer):
    """RLOOTrainer that keeps siblings together and makes no pass whose result another pass gives."""

    _buffered_inputs: list[dict[str, torch.Tensor]] | None

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """Return the next micro-batch, of equally many rows on every rank, as TRL's metrics require.

        TRL shuffles the rows. Here they keep the order of the sampler, in which siblings are neighbours, so
        that a micro-batch of a multiple of `num_generations` trajectories consists of whole groups.
        """
        if not self.model.training:
            return super()._prepare_inputs(generation_batch)
        steps = self.args.steps_per_generation
        if self._step % (steps * self.num_iterations) == 0 or self._buffered_inputs is None:
            rows = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(rows, steps)
        return self._buffered_inputs[self._step % steps]

    @property
    def has_one_update_per_batch(self) -> bool:
        """Return True if the policy that is updated is the one that sampled, so that every ratio is 1."""
        num_passes = self.args.steps_per_generation * self.num_iterations
        return num_passes == self.args.gradient_accumulation_steps

    def row_statistics(self, rows: dict[str, torch.Tensor]) -> RowStatistics:
        """Make the passes of a batch before its update; log the gap to the engine if there is one.

        Args:
            rows: The batch; with an engine also its `engine_logps`, shape (R, C).

        """
        mask = rows["completion_mask"]
        none = torch.zeros(len(mask), dtype=torch.bool, device=mask.device)
        zeros = none.float()
        if self.beta == 0.0 and self.has_one_update_per_batch and "engine_logps" not in rows:
            return RowStatistics(None, zeros, none)
        with (
            torch.no_grad(),
            disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs),
        ):
            policy = self._row_logps(self.model, rows)
            old_logps = None if self.has_one_update_per_batch else (policy * mask).sum(1)
            is_outlier = self._outliers(policy, rows) if "engine_logps" in rows else none
            if self.beta == 0.0:
                return RowStatistics(old_logps, zeros, is_outlier)
            if self.ref_model is not None:
                reference = self._row_logps(self.ref_model, rows)
            else:  # LoRA: the reference is the same model without the trained adapter
                unwrapped = self.accelerator.unwrap_model(self.model)
                with use_adapter(unwrapped, adapter_name="ref" if "ref" in unwrapped.peft_config else None):
                    reference = self._row_logps(self.model, rows)
        return RowStatistics(old_logps, ((policy - reference) * mask).sum(1), is_outlier)

    def _outliers(self, policy: torch.Tensor, rows: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return which rows are outliers, shape (R,), and log the gap of all ranks' rows."""
        mask = rows["completion_mask"]
        gap = engine_gap(policy, rows["engine_logps"], mask)
        counts = [gap.kl_R_C.sum(), mask.sum(), gap.is_outlier_R.sum(), mask.any(1).sum()]
        kl, tokens, outliers, num_rows = self.accelerator.reduce(
            torch.stack([count.double() for count in counts]), reduction="sum"
        ).tolist()
        self._metrics["train"]["engine/kl"].append(kl / max(tokens, 1))
        self._metrics["train"]["engine/outliers"].append(outliers / max(num_rows, 1))
        return gap.is_outlier_R

    def _row_logps(self, model: Any, rows: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return log p of every completion token at the sampling temperature. Shape (R, C)."""
        logps, _, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            logits_to_keep=rows["completion_ids"].size(1),
            batch_size=self.args.rollout_batch_size,
        )
        return logps.float()

    def _compute_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return TRL's loss; without `old_logps`, the loss's own log-probabilities take their place."""
        self._micro_batch = dict(inputs)
        return super()._compute_loss(model, self._micro_batch)

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        """Return what TRL's method returns. In the loss, TRL reads `old_logps` after this call."""
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        if torch.is_grad_enabled():
            own = (result[0].detach() * self._micro_batch["completion_mask"]).sum(1)
            self._micro_batch.setdefault("old_logps", own)
        return result


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

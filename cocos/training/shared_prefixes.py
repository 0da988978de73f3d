"""Log-probabilities over prefix trees: a trainer that computes each shared token once.

TRL's loss asks `_get_per_token_logps_and_entropies` for the log-probabilities of its rows. Here this method
lays the rows out as trees (`prefix_tree.py`), runs the model over the packed tokens, and gathers the results
back into rows. So loss, old log-probabilities and reference gain alike, and TRL's code stays as it is.

Axes: R rows, C completion tokens, M packed sequences of N tokens.
"""

import logging
import math
from typing import Any

import torch
from transformers import PreTrainedConfig
from trl import RLOOTrainer
from trl.trainer.utils import split_tensor_dict

from cocos.training.prefix_tree import PackedTrees, Row, pack

logger = logging.getLogger(__name__)

# Mean difference of a token's log-probability from that of plain rows, in nats, above which the self-check
# rejects the trees. In half precision, plain rows in batches of two sizes differ by about a tenth of this.
TOLERANCE = {torch.bfloat16: 1e-1, torch.float16: 2e-2, torch.float32: 1e-3, torch.float64: 1e-3}


class SharedPrefixes(RLOOTrainer):
    """RLOOTrainer whose forward passes compute the common prefixes of rows once.

    The first batch is computed both ways. If the model cannot attend along a tree, or its results differ, a
    warning says so and the run goes on with plain rows. The option `share_prefixes` switches trees off.
    """

    _uses_trees: bool | None = None  # None: not yet checked
    _buffered_inputs: list[dict[str, torch.Tensor]] | None

    @property
    def has_one_update_per_batch(self) -> bool:
        """Whether the policy that is updated is the one that sampled, so that every ratio is 1."""
        num_passes = self.args.steps_per_generation * self.num_iterations
        return num_passes == self.args.gradient_accumulation_steps

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """Return the next micro-batch. Keep the order of rows, so that siblings share a micro-batch."""
        if not self.model.training:
            return super()._prepare_inputs(generation_batch)
        steps = self.args.steps_per_generation
        if self._step % (steps * self.num_iterations) == 0 or self._buffered_inputs is None:
            rows = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(rows, steps)
        return self._buffered_inputs[self._step % steps]

    def _compute_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return TRL's loss; without `old_logps`, its own log-probabilities take their place."""
        return super()._compute_loss(model, _OwnLogps(inputs, self))

    def _get_per_token_logps_and_entropies(
        self, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        result = self._compute_logps(*args, **kwargs)
        self._log_probs = result[0].detach()
        return result

    def _compute_logps(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **multimodal: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return log p and, if requested, the entropy of every completion token. Shapes (R, C)."""

        def plain_rows() -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
            compute = super(SharedPrefixes, self)._get_per_token_logps_and_entropies
            options = (batch_size, compute_entropy, compute_aux_loss)
            return compute(model, input_ids, attention_mask, logits_to_keep, *options, **multimodal)

        if not self.args.share_prefixes or compute_aux_loss or self._uses_trees is False:
            return plain_rows()
        if self._uses_trees is None and (reason := why_not_shared(self.model.config.get_text_config())):
            logger.warning("prefixes are not shared, so training is slower: %s", reason)
            self._uses_trees = False
            return plain_rows()
        trees = pack(_rows(input_ids, attention_mask, logits_to_keep), logits_to_keep)
        # As many tokens in one pass as `batch_size` padded rows have.
        length = trees.input_ids.size(1)
        per_pass = math.inf if batch_size is None else max(1, batch_size * input_ids.size(1) // length)
        mask = attention_mask[:, -logits_to_keep:]
        index = trees.index.to(mask.device)
        log_probs, entropies = self._over_trees(model, trees, per_pass)
        log_probs = log_probs.flatten()[index] * mask
        if self._uses_trees is None:
            with torch.no_grad():
                expected, *_ = plain_rows()
            self._uses_trees = self._agree(log_probs, expected, mask)
            if not self._uses_trees:
                return plain_rows()
        if torch.is_grad_enabled():
            self._metrics["train"]["packing_ratio"].append(input_ids.numel() / trees.input_ids.numel())
        return log_probs, entropies.flatten()[index] * mask if compute_entropy else None, None

    def _over_trees(
        self, model: Any, trees: PackedTrees, per_pass: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the model over packed trees, `per_pass` sequences at a time.

        Returns:
            Log-probabilities and entropies, shapes (M, N). A reference model has no entropies, but zeros.

        """
        device = self.accelerator.device
        num_sequences = len(trees.input_ids)
        num_passes = math.ceil(num_sequences / per_pass) if math.isfinite(per_pass) else 1
        if self.accelerator.num_processes > 1:
            # With sharded weights every rank must run equally many passes.
            passes = torch.tensor([num_passes], device=device)
            num_passes = int(self.accelerator.gather(passes).max())
        log_probs, entropies = [], []
        for number in range(num_passes):
            start, end = (num_sequences * i // num_passes for i in (number, number + 1))
            part = trees[start:end] if end > start else trees[:1]  # another rank's share is larger
            part = part.to(device)
            with self.accelerator.autocast():
                output = model(
                    input_ids=part.input_ids,
                    attention_mask=self._mask(part),
                    position_ids=part.position_ids,
                    shift_labels=part.labels,
                    fused_lm_head=True,
                )
            log_probs.append(output.log_probs[: end - start])
            entropy = torch.zeros_like(output.log_probs) if output.entropy is None else output.entropy
            entropies.append(entropy[: end - start])
        return torch.cat(log_probs), torch.cat(entropies)

    def _mask(self, part: PackedTrees) -> torch.Tensor:
        """Return the attention mask, shape (M, 1, N, N), in the form that the model's attention takes."""
        allowed = part.attention_mask()
        if self.model.config.get_text_config()._attn_implementation == "sdpa":
            return allowed
        dtype = self.model.dtype  # eager attention adds the mask to its scores
        return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(
            ~allowed, torch.finfo(dtype).min
        )

    def _agree(self, shared: torch.Tensor, expected: torch.Tensor, mask: torch.Tensor) -> bool:
        """Return whether trees and plain rows give the same log-probabilities, on all ranks; warn if not."""
        difference = ((shared.detach() - expected).abs() * mask).sum() / mask.sum().clamp(min=1)
        worst = self.accelerator.gather(difference.float().reshape(1)).max().item()
        dtype = torch.bfloat16 if self.args.bf16 else torch.float16 if self.args.fp16 else self.model.dtype
        if worst <= TOLERANCE[dtype]:
            return True
        logger.warning(
            "prefixes are not shared, so training is slower: on the first batch, log-probabilities with "
            "shared prefixes differ by %.2g nats a token from those of plain rows",
            worst,
        )
        return False


class _OwnLogps(dict):
    """Micro-batch whose `old_logps`, if missing, are those that the loss has just computed, detached.

    With one update per batch they are equal, and a forward pass is saved. The ratio is 1 without rounding.
    """

    def __init__(self, inputs: dict[str, torch.Tensor], trainer: SharedPrefixes) -> None:
        super().__init__(inputs)
        self._trainer = trainer

    def __missing__(self, name: str) -> torch.Tensor:
        if name != "old_logps":
            raise KeyError(name)
        return (self._trainer._log_probs * self["completion_mask"]).sum(1)


def why_not_shared(config: PreTrainedConfig) -> str:
    """Return why a model cannot attend along a tree; "" if it can."""
    if getattr(config, "_attn_implementation", None) not in ("sdpa", "eager"):
        return f"attention {config._attn_implementation!r} takes no mask; use --attn_implementation sdpa"
    if other := set(getattr(config, "layer_types", None) or ()) - {"full_attention"}:
        return f"the model has layers of type {', '.join(sorted(other))}, which see a row from its start"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return "the model attends to a sliding window"
    return ""


def _rows(input_ids: torch.Tensor, attention_mask: torch.Tensor, num_completion: int) -> list[Row]:
    """Return the token ids of padded rows, whose prompts are padded on the left."""
    real = attention_mask.bool()
    prompt_lengths = real[:, :-num_completion].sum(1).tolist()
    return [
        Row(ids[mask].tolist(), length)
        for ids, mask, length in zip(input_ids.cpu(), real.cpu(), prompt_lengths, strict=True)
    ]

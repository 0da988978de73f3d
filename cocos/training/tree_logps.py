"""Log-probabilities over prefix trees: a trainer that computes each shared token once.

TRL's loss asks `_get_per_token_logps_and_entropies` for the log-probabilities of its rows. Here this method
lays the rows out as trees (`prefix_tree.py`), runs the model over them, and gathers the results into rows. So
loss, old log-probabilities and reference gain alike, and TRL's code stays as it is.
"""

import logging
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedConfig
from trl import RLOOTrainer

from cocos.training.prefix_tree import pack
from cocos.training.trl_patches import narrow_tiles

logger = logging.getLogger(__name__)

# Mean difference of a token's log-probability from that of plain rows, in nats, above which the first batch
# rejects the trees. In half precision, plain rows in batches of two sizes differ by about a tenth of this.
TOLERANCE = {torch.bfloat16: 1e-1, torch.float16: 2e-2, torch.float32: 1e-3, torch.float64: 1e-3}

narrow_tiles()


class SharedPrefixes(RLOOTrainer):
    """RLOOTrainer that computes common prefixes of rows once, unless `share_prefixes` is off.

    If the model cannot attend along a tree, or differs on the first batch, it warns and takes plain rows.
    """

    _uses_trees: bool | None = None  # None: not yet checked

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **multimodal: Any,
    ) -> Any:
        """Return log p and, if requested, the entropy of every completion token of every row, and None."""
        rows = (model, input_ids, attention_mask, logits_to_keep, batch_size)
        plain = partial(super()._get_per_token_logps_and_entropies, *rows)
        if self.args.share_prefixes and self._uses_trees is None:
            reason = why_not_shared(self.model.config.get_text_config()) or self._difference(plain, rows)
            if reason:
                logger.warning("prefixes are not shared, so training is slower: %s", reason)
            self._uses_trees = not reason
        if compute_aux_loss or not (self.args.share_prefixes and self._uses_trees):
            return plain(compute_entropy, compute_aux_loss, **multimodal)
        return self._over_trees(*rows, compute_entropy)

    def _over_trees(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None,
        compute_entropy: bool = False,
    ) -> Any:
        """Return what TRL's method returns, in passes of at most as many tokens as `batch_size` rows have."""
        trees, index = pack(input_ids, attention_mask, logits_to_keep)
        if torch.is_grad_enabled():
            self._metrics["train"]["packing_ratio"].append(input_ids.numel() / trees.input_ids.numel())
        parts = [trees]
        if batch_size is not None:
            parts = trees.split(max(1, batch_size * input_ids.size(1) // trees.input_ids.size(1)))
            # With sharded weights every rank must run equally many passes. The index skips the surplus.
            num_passes = self.accelerator.gather(index.new_tensor([len(parts)])).max()
            parts += parts[:1] * (int(num_passes) - len(parts))
        in_blocks = self.model.config.get_text_config()._attn_implementation == "flex_attention"
        outputs = []
        for part in parts:
            mask = part.attention_mask(in_blocks)
            inputs = {"input_ids": part.input_ids, "attention_mask": mask, "position_ids": part.position_ids}
            with self.accelerator.autocast():
                outputs.append(model(**inputs, shift_labels=part.labels, fused_lm_head=True))

        def in_rows(values: list[torch.Tensor]) -> torch.Tensor:
            return torch.cat(values).flatten()[index] * attention_mask[:, -logits_to_keep:]

        log_probs = in_rows([output.log_probs for output in outputs])
        return log_probs, in_rows([output.entropy for output in outputs]) if compute_entropy else None, None

    @torch.no_grad()
    def _difference(self, plain: Any, rows: Any) -> str:
        """Return how log-probabilities over trees differ from those of plain rows; "" if they agree."""
        expected, found, mask = plain()[0], self._over_trees(*rows)[0], rows[2][:, -rows[3] :]
        mean = ((found - expected).abs() * mask).sum() / mask.sum().clamp(min=1)
        worst = self.accelerator.gather(mean.float().reshape(1)).max().item()  # of all ranks
        dtype = torch.bfloat16 if self.args.bf16 else torch.float16 if self.args.fp16 else self.model.dtype
        reason = f"log-probabilities of the first batch differ by {worst:.2g} nats a token from plain rows"
        return reason if worst > TOLERANCE[dtype] else ""


def why_not_shared(config: PreTrainedConfig) -> str:
    """Return why a model cannot attend along a tree; "" if it can."""
    if config._attn_implementation not in ("sdpa", "flex_attention"):
        return f"attention {config._attn_implementation!r} takes no such mask; use --attn_implementation sdpa"
    if other := set(getattr(config, "layer_types", None) or ()) - {"full_attention"}:
        return f"the model has layers of type {', '.join(sorted(other))}, which see a row from its start"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return "the model attends to a sliding window"
    return ""

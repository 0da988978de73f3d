"""Log-probabilities over prefix trees: each token that rows share is computed once.

Rows are laid out as trees (`prefix_tree.py`), the model runs over them, and the results are gathered into
rows. So loss, old log-probabilities and reference gain alike, and TRL's loss stays as it is. A pass is one
sequence without padding, whose attention follows the trees (`tree_attention.py`).
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from accelerate import Accelerator
from torch import nn
from transformers import PreTrainedConfig
from trl.trainer.utils import FusedCausalLMOutput

from cocos.generation.clocks import Clocks
from cocos.training import tree_attention
from cocos.training.prefix_tree import Trees, pack
from cocos.training.tree_attention import SegmentedAttention

logger = logging.getLogger(__name__)

# Mean difference of a token's log-probability from that of plain rows, in nats, above which the first batch
# rejects the trees. In half precision, plain rows in batches of two sizes differ by about a tenth of this.
TOLERANCE = {torch.bfloat16: 1e-1, torch.float16: 2e-2, torch.float32: 1e-3, torch.float64: 1e-3}


class Rows(NamedTuple):
    """Padded rows of one pass, as TRL's trainer has them. R rows, P and C prompt and completion tokens."""

    input_ids: torch.Tensor  # (R, P + C); prompts are padded on the left, completions on the right
    attention_mask: torch.Tensor  # (R, P + C)
    num_completion_tokens: int  # C

    @property
    def completion_mask(self) -> torch.Tensor:
        """1 for completion tokens, else 0. Shape (R, C)."""
        return self.attention_mask[:, -self.num_completion_tokens :]


class RowLogps(NamedTuple):
    """Results of a pass over rows."""

    log_probs: torch.Tensor  # of every completion token; (R, C)
    entropies: torch.Tensor | None  # of the distribution that each was drawn from; (R, C)


@dataclass
class TreeLogps:
    """Passes over prefix trees, unless the model cannot attend along a tree or differs on the first batch."""

    config: PreTrainedConfig  # of the language model
    accelerator: Accelerator  # knows the ranks and the autocast of the run
    clocks: Clocks  # measure the part `trees`, the layout of rows
    num_checked: int = 8  # rows that the first batch compares with plain rows; enough for two siblings
    is_used: bool | None = field(default=None, init=False)  # passes go over trees; None: not yet checked
    # Tokens of the padded rows of the last pass, divided by those of its trees.
    packing_ratio: float = field(default=1.0, init=False)

    def check(self, model: nn.Module, rows: Rows, plain: Callable[[Rows], torch.Tensor]) -> bool:
        """Return whether to use trees; on the first call, compare them with plain rows on some of the rows.

        Args:
            model: The model of the pass.
            rows: Rows of a pass, in which siblings are neighbours.
            plain: Computes the log-probabilities of rows without trees.

        """
        if self.is_used is None:
            first = slice(self.num_checked)
            some = Rows(rows.input_ids[first], rows.attention_mask[first], rows.num_completion_tokens)
            reason = why_not_shared(self.config) or self._difference(model, some, plain)
            if reason:
                logger.warning("prefixes are not shared, so training is slower: %s", reason)
            self.is_used = not reason
        return self.is_used

    def __call__(
        self, model: nn.Module, rows: Rows, batch_size: int | None = None, compute_entropy: bool = False
    ) -> RowLogps:
        """Make passes of at most as many tokens as `batch_size` rows have; None: a single pass."""
        device = rows.input_ids.device
        max_tokens = math.inf if batch_size is None else batch_size * rows.input_ids.size(1)
        with self.clocks.part("trees"):
            passes, index = pack(*rows, max_tokens)
        self.packing_ratio = rows.input_ids.numel() / sum(map(len, passes))
        if batch_size is not None:
            # With sharded weights every rank must run equally many passes. The index skips the surplus.
            num_passes = self.accelerator.gather(torch.tensor([len(passes)], device=device)).max()
            passes += passes[:1] * (int(num_passes) - len(passes))
        outputs = [self._pass(model, trees, device) for trees in passes]
        index = index.to(device)

        def in_rows(values: list[torch.Tensor]) -> torch.Tensor:
            return torch.cat(values, dim=1)[0][index] * rows.completion_mask

        entropies = in_rows([output.entropy for output in outputs]) if compute_entropy else None
        return RowLogps(in_rows([output.log_probs for output in outputs]), entropies)

    def _pass(self, model: nn.Module, trees: Trees, device: torch.device) -> FusedCausalLMOutput:
        """Return the model's output for each token of the trees and its label. Shapes (1, n)."""
        inputs = {
            "input_ids": torch.tensor([trees.input_ids]),
            "position_ids": torch.tensor([trees.position_ids]),
            "shift_labels": torch.tensor([trees.labels]),
            "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool),  # 4-D: transformers makes none
        }
        with self.clocks.part("trees"):
            segments = SegmentedAttention(trees.segments())
        on_device = {name: values.to(device) for name, values in inputs.items()}
        with self.accelerator.autocast():
            return model(**on_device, segments=segments, fused_lm_head=True)

    @torch.no_grad()
    def _difference(self, model: nn.Module, rows: Rows, plain: Callable[[Rows], torch.Tensor]) -> str:
        """Return how log-probabilities over trees differ from those of plain rows; "" if they agree."""
        expected, found, mask = plain(rows), self(model, rows).log_probs, rows.completion_mask
        mean = ((found - expected).abs() * mask).sum() / mask.sum().clamp(min=1)
        worst = self.accelerator.gather(mean.float().reshape(1)).max().item()  # of all ranks
        precision = {"bf16": torch.bfloat16, "fp16": torch.float16}
        dtype = precision.get(self.accelerator.mixed_precision, next(model.parameters()).dtype)
        reason = f"log-probabilities of the first batch differ by {worst:.2g} nats a token from plain rows"
        return "" if worst <= TOLERANCE[dtype] else reason  # NaN does not agree


def why_not_shared(config: PreTrainedConfig) -> str:
    """Return why a model cannot attend along a tree; "" if it can."""
    if config._attn_implementation != tree_attention.NAME:
        return f"attention {config._attn_implementation!r} knows no trees; use --attn_implementation sdpa"
    if other := set(getattr(config, "layer_types", None) or ()) - {"full_attention"}:
        return f"the model has layers of type {', '.join(sorted(other))}, which see a row from its start"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return "the model attends to a sliding window"
    return ""

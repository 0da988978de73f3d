"""Attention along prefix trees, as an attention implementation of transformers.

The tokens of a segment attend to all tokens of its path from the root, and causally to their own segment
(`prefix_tree.py`). So attention over trees is causal attention of variable length with gathered keys and
values, and nothing of the size n x n exists.

    GPU, half precision   torch's varlen_attn, one call for all segments
    otherwise             scaled_dot_product_attention, a call per segment

Without `segments`, the implementation is SDPA: plain rows, and sampling with cached keys, are as without
trees. Layers pass `segments` on by keyword, so that gradient checkpointing recomputes with it.

Axes: H heads of queries, H_kv of keys and values, G = H / H_kv; n tokens, D channels of a head.
"""

from itertools import accumulate
from typing import Any

import torch
from torch import nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from cocos.generation.grouped_attention import grouped_attention
from cocos.training.prefix_tree import Segments

NAME = "prefix_tree"  # the configuration's _attn_implementation
CHUNK = 512  # queries per call of SDPA; bounds the mask and the work above the diagonal


def attend_along_trees(model: PreTrainedModel) -> None:
    """Give a model that attends with SDPA the attention along trees, which is SDPA for everything else."""
    if model.config.get_text_config()._attn_implementation == "sdpa":
        AttentionInterface.register(NAME, tree_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        model.set_attn_implementation(NAME)


def tree_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    segments: "SegmentedAttention | None" = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Return what transformers' attention functions return: the output, of shape (B, n, H, D), and None."""
    if segments is None:
        return grouped_attention(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    if query.is_cuda and query.dtype in (torch.float16, torch.bfloat16) and not dropout:
        return segments.in_one_call(query, key, value, scaling), None
    return segments.one_by_one(query, key, value, scaling, dropout), None


class SegmentedAttention:
    """Attention by segment in all layers of a pass, with what the layers share: masks and indices.

    Args:
        segments: Segments of the tokens of the pass.

    """

    def __init__(self, segments: Segments) -> None:
        self.lengths, self.paths = segments.lengths, segments.paths
        self._prefixes = [sum(self.lengths[number] for number in path[:-1]) for path in self.paths]
        self._mask: torch.Tensor | None = None
        self._width = 0  # of the mask's columns of zeros
        self._gathered: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def one_by_one(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float | None,
        dropout: float = 0.0,
    ) -> torch.Tensor:
        """Return the attention's output, one segment after another.

        Args:
            query: Shape (1, H, n, D).
            key: Shape (1, H_kv, n, D).
            value: Shape (1, H_kv, n, D).
            scale: Factor of the products; None: D^-0.5.
            dropout: Probability that a weight is dropped.

        """
        group = query.size(1) // key.size(1)
        # The queries of a group share their keys, so they become one head of G times as many rows.
        rows = query.unflatten(1, (-1, group)).permute(0, 1, 3, 2, 4)  # (1, H_kv, n, G, D)
        # Split once: a slice per segment would have a gradient of n tokens each.
        queries, keys, values = (states.split(self.lengths, dim=2) for states in (rows, key, value))
        outputs = []
        for number, path in enumerate(self.paths):
            path_keys, path_values = (
                states[number] if len(path) == 1 else torch.cat([states[other] for other in path], dim=2)
                for states in (keys, values)
            )
            seen = self._prefixes[number]
            for chunk in queries[number].split(CHUNK, dim=2):
                mask = self._mask_of(chunk.size(2), seen, group, query)
                seen += chunk.size(2)
                folded = chunk.flatten(2, 3)  # (1, H_kv, length * G, D)
                output = scaled_dot_product_attention(
                    folded, path_keys[:, :, :seen], path_values[:, :, :seen], mask, dropout, scale=scale
                )
                outputs.append(output.unflatten(2, (-1, group)))
        return torch.cat(outputs, dim=2).permute(0, 2, 1, 3, 4).flatten(2, 3)

    def _mask_of(self, length: int, num_before: int, group: int, like: torch.Tensor) -> torch.Tensor:
        """Return the mask of a chunk: its tokens see all that precede it, and itself causally.

        Every mask is a part of one: columns of zeros, then a triangle, with G equal rows per token. Shape
        (length * G, num_before + length).
        """
        if self._mask is None or self._mask.dtype != like.dtype:
            side = min(CHUNK, max(self.lengths))
            pairs = zip(self._prefixes, self.lengths, strict=True)
            self._width = max(before + (length - 1) // CHUNK * CHUNK for before, length in pairs)
            triangle = torch.full((side, side), float("-inf"), device=like.device, dtype=like.dtype).triu(1)
            mask = torch.cat([triangle.new_zeros(side, self._width), triangle], dim=1)
            self._mask = mask.repeat_interleave(group, dim=0)
        return self._mask[: length * group, self._width - num_before : self._width + length]

    def in_one_call(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float | None
    ) -> torch.Tensor:
        """Return the attention's output from one call of variable length; arguments as in `one_by_one`."""
        if self._gathered is None:
            self._gathered = self._indices(query.device)
        index, query_ends, key_ends = self._gathered
        group = query.size(1) // key.size(1)
        keys, values = (
            states[0].transpose(0, 1)[index].repeat_interleave(group, dim=1) for states in (key, value)
        )  # (keys of all segments, H, D)
        output = varlen_attn(
            query[0].transpose(0, 1).contiguous(),
            keys,
            values,
            query_ends,
            key_ends,
            max(self.lengths),
            max(before + length for before, length in zip(self._prefixes, self.lengths, strict=True)),
            scale=scale,
            window_size=(-1, 0),  # causal, aligned at the last query and the last key
        )
        assert isinstance(output, torch.Tensor)
        return output[None]

    def _indices(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the tokens of every segment's path, and where the queries and the keys of each end."""
        starts = [0, *accumulate(self.lengths)]
        numbers = [number for path in self.paths for number in path]
        index = torch.cat([torch.arange(starts[number], starts[number + 1]) for number in numbers])
        num_keys = [sum(self.lengths[number] for number in path) for path in self.paths]
        query_ends, key_ends = torch.tensor(starts), torch.tensor([0, *accumulate(num_keys)])
        return index.to(device), query_ends.int().to(device), key_ends.int().to(device)

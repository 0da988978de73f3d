"""Batch of left-padded transcripts during generation, with a cache that grows and shrinks in place.

This module knows neither models nor sampling.

Axes: B rows of the batch, W columns of its longest prompt, C new ids at most, H heads, D head size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

MIN_IDS = 256  # per forward pass; with fewer a CPU does not reach its full matrix rate
# Ids of padding in a batch, over which every step attends. For SmolLM2-135M, reading the keys and values of a
# third as many takes as long as reading the weights.
MAX_PADDING = 32_768


@dataclass
class PaddedBatch:
    """Left-padded transcripts during generation, one per row."""

    cache: Cache  # keys and values of the first `end` columns
    mask: torch.Tensor  # Attention mask: 0 on a row's padding, 1 from its first id on. Shape (B, W + C).
    positions: torch.Tensor  # Position of every id in its transcript; 0 on padding. Shape (B, W + C).
    end: int  # number of columns computed so far, including those of a forward pass that is about to run

    def select(self, rows: torch.Tensor) -> None:
        """Replace the batch by the given rows, in this order. A row may be given more than once."""
        self.cache.batch_select_indices(rows)
        self.mask, self.positions = self.mask[rows], self.positions[rows]

    def remove(self, rows: Sequence[int]) -> list[int]:
        """Remove rows and return the former number of each remaining row.

        The last rows take the places of the removed ones, so that only those are copied.
        """
        removed, count = set(rows), len(self.mask) - len(rows)
        places = [row for row in rows if row < count]
        movers = [row for row in range(count, len(self.mask)) if row not in removed]
        for layer in self.cache.layers:
            if layer.is_initialized:
                layer.move_rows(places, movers, count)
        order = list(range(count))
        for place, mover in zip(places, movers, strict=True):
            order[place] = mover
        self.mask, self.positions = self.mask[order], self.positions[order]
        return order

    def start_part(self, part: "Pass") -> "PaddedBatch":
        """Return a batch of a pass's rows, whose cache has the columns before the new ones.

        Its width is that of the rows' longest prompt.
        """
        width = int(self.mask[part.rows, : self.end].sum(1).max())
        columns = slice(self.end - width, None)
        stored = slice(self.end - width, self.end - part.num_new)
        layers = [PreallocatedLayer() for _ in self.cache.layers]
        for layer, own in zip(layers, self.cache.layers, strict=True):
            if own.is_initialized and width > part.num_new:
                layer.update(own.keys[part.rows, :, stored], own.values[part.rows, :, stored])
        mask, positions = self.mask[part.rows, columns], self.positions[part.rows, columns]
        return PaddedBatch(Cache(layers=layers), mask, positions, width)

    def finish_part(self, part: "Pass", computed: "PaddedBatch") -> None:
        """Copy the new keys and values of a batch from `start_part`, which cannot be used afterwards."""
        for layer, other in zip(self.cache.layers, computed.cache.layers, strict=True):
            if other.is_initialized:
                new = (slice(None), slice(None), slice(other.length - part.num_new, other.length))
                layer.write(part.rows, len(self.mask), self.end, self.end, other.keys[new], other.values[new])
                other.reset()


class Pass(NamedTuple):
    """A forward pass over the prompts of a batch."""

    rows: list[int]  # rows of the batch
    num_new: int  # number of ids that it computes in every row, its last ones


class PreallocatedLayer(DynamicLayer):
    """Cache layer with spare capacity, so that appending an id rarely copies the earlier ones."""

    SPARE_COLUMNS = 64  # capacity added whenever the buffers are full

    def __init__(self) -> None:
        super().__init__()
        self.length = 0  # columns in use

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = key_states, value_states
        self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        start, self.length = self.length, self.length + key_states.shape[2]
        if not self.is_initialized:
            # These are the prompts. Spare columns are added with the first sampled ids.
            self.lazy_initialization(key_states, value_states)
            return self.keys, self.values
        if self.length > self.keys.shape[2]:
            self.keys, self.values = (
                torch.cat(
                    [old[:, :, :start], new, old.new_empty(*old.shape[:2], self.SPARE_COLUMNS, old.shape[3])],
                    2,
                )
                for old, new in ((self.keys, key_states), (self.values, value_states))
            )
        else:
            self.keys[:, :, start : self.length] = key_states
            self.values[:, :, start : self.length] = value_states
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def get_seq_length(self) -> int:
        return self.length

    def move_rows(self, places: Sequence[int], movers: Sequence[int], count: int) -> None:
        """Copy the rows `movers` to `places`, then keep the first `count` rows."""
        for states in (self.keys, self.values):
            for place, mover in zip(places, movers, strict=True):
                states[place, :, : self.length] = states[mover, :, : self.length]
        self.keys, self.values = self.keys[:count], self.values[:count]
        # A view keeps the memory of all rows. It is copied once half of that is unused.
        if 2 * self.keys.nbytes <= self.keys.untyped_storage().nbytes():
            self.keys, self.values = self.keys.clone(), self.values.clone()

    def write(
        self,
        rows: int | Sequence[int],
        num_rows: int,
        width: int,
        end: int,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """Write keys and values into the columns before `end`.

        Args:
            rows: Row of keys and values of shape (H, ids, D), or rows of those of shape (rows, H, ids, D).
            num_rows: Number of rows of the layer (B), used by the first call, which allocates it.
            end: Column after the last one to write.

        """
        if not self.is_initialized:
            # Not `new_empty`: attention multiplies masked columns by 0, and 0 * NaN is NaN.
            capacity = width + self.SPARE_COLUMNS
            # Each has its own data type: under autocast, keys are float32 and values bfloat16.
            self.lazy_initialization(
                *(
                    like.new_zeros(num_rows, like.shape[-3], capacity, like.shape[-1])
                    for like in (keys, values)
                )
            )
            self.length = width
        columns = slice(end - keys.shape[-2], end)
        self.keys[rows, :, columns] = keys
        self.values[rows, :, columns] = values


def batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return batches of prompts of similar length, each as indices in ascending order of their length.

    Args:
        lengths: Length of each prompt in ids.
        size: Largest number of prompts in a batch. One with more than MAX_PADDING ids of padding is divided.

    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    found: list[list[int]] = []
    padding = 0
    for i in order:
        added = len(found[-1]) * (lengths[i] - lengths[found[-1][-1]]) if found else 0
        if not found or len(found[-1]) == size or padding + added > MAX_PADDING:
            found.append([])
            padding = added = 0
        found[-1].append(i)
        padding += added
    return found


def passes(num_new: Sequence[int]) -> list[Pass]:
    """Return forward passes in which prompts with similarly many new ids are together.

    A pass ends before a prompt that would add more than an eighth of padding, provided that the pass or that
    padding has at least MIN_IDS ids.
    """
    rows = sorted(range(len(num_new)), key=lambda row: num_new[row])
    lengths = [num_new[row] for row in rows]
    found, start = [], 0
    for end, length in enumerate([*lengths[1:], math.inf], 1):
        width, count = lengths[end - 1], end - start
        is_large = count * max(width, length - width) >= MIN_IDS
        if length == math.inf or (8 * length > 9 * lengths[start] and is_large):
            found.append(Pass(rows[start:end], width))
            start = end
    return found

"""Attention keys and values of transcripts, kept from turn to turn, so that a turn computes only its new ids.

A batch of transcripts lies left-padded in one cache. Between calls its rows are kept apart, each with the ids
that it holds; a prompt takes over the row that it shares most ids with. Which rows are at hand decides about
time, never about what is generated. Knows caches and ids; does not know models, sampling or turns.

Axes: B rows, W ids of the longest prompt, M of them yet to be computed, C ids to come at most, H heads, D
head size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer


@dataclass
class Batch:
    """Transcripts in flight, a row each.

    Attributes:
        cache: Keys and values of the first `end` columns.
        mask: 1 from a row's first id on, 0 on its padding. Shape (B, W + C).
        positions: Of the ids in their transcripts; 0 on padding. Shape (B, W + C).
        end: Columns computed so far, or about to be.

    """

    cache: Cache
    mask: torch.Tensor
    positions: torch.Tensor
    end: int

    def select(self, rows: torch.Tensor) -> None:
        """Go on with these rows, in this order; a row may come more than once."""
        self.cache.batch_select_indices(rows)
        self.mask, self.positions = self.mask[rows], self.positions[rows]


class KeptTranscripts:
    """The transcripts whose keys and values are at hand.

    Args:
        config: Of the model.

    Attributes:
        is_possible: Every layer keeps keys and values of ids. Where one keeps something else (a recurrent
            state), nothing is kept, rows cannot be selected, and every batch starts afresh.

    """

    def __init__(self, config: PretrainedConfig):
        self.config = config
        kinds = [type(layer) for layer in DynamicCache(config=config).layers]
        self.num_layers = len(kinds)
        self.is_possible = {*kinds} <= {DynamicLayer, DynamicSlidingWindowLayer}
        self.rows: list[_Row] = []

    def open(
        self, prompts: Sequence[Sequence[int]], room: int, max_rows: int, device: torch.device
    ) -> tuple[Batch, torch.Tensor]:
        """A batch of prompts, and the last ids of each, which remain to be computed.

        Their number M is the same for all: the largest that a prompt has beyond what is known of it.

        Args:
            prompts: All different.
            room: The number of ids to come at most (C).
            max_rows: Transcripts kept are dropped, the oldest first, until they and the batch are no more.
            device: Of the model.

        Returns:
            The batch, and ids of shape (B, M).

        """
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        width = max(map(len, prompts))
        columns = torch.arange(width + room, device=device) - (width - lengths[:, None])  # (B, W + C)
        found = self._longest_known(prompts)
        num_new = max(len(prompt) - known for prompt, (_, known) in zip(prompts, found, strict=True))
        taken = {row for row, _ in found if row}
        self.rows = [row for row in self.rows if row not in taken]
        del self.rows[: max(0, len(self.rows) + len(prompts) - max_rows)]
        known = [(row, len(prompt) - num_new) for prompt, (row, _) in zip(prompts, found, strict=True)]
        cache = self._cache(known, width - num_new)
        new_ids = [[0] * (num_new - len(prompt)) + list(prompt[-num_new:]) for prompt in prompts]
        batch = Batch(cache, (columns >= 0).long(), columns.clamp(min=0), width)
        return batch, torch.tensor(new_ids, device=device)

    def keep(self, batch: Batch, transcripts: Mapping[int, Sequence[int]], is_last_use: bool) -> None:
        """Keep transcripts of a batch.

        Args:
            batch: From `open`.
            transcripts: The ids of some of its rows, computed to the last.
            is_last_use: The batch is given up: each layer is freed as soon as it is copied.

        """
        if not self.is_possible:
            return
        rows = {number: _Row(np.array(ids), []) for number, ids in transcripts.items()}
        starts = (batch.mask == 0).sum(1).tolist()
        for layer in batch.cache.layers:
            for number, row in rows.items():
                place = (number, slice(None), slice(starts[number], starts[number] + len(row.ids)))
                is_used = layer.is_initialized  # some models' layers share those of another
                row.layers.append(
                    (layer.keys[place].clone(), layer.values[place].clone()) if is_used else None
                )
            if is_last_use:
                layer.reset()
        self.rows += rows.values()

    def _longest_known(self, prompts: Sequence[Sequence[int]]) -> list[tuple["_Row | None", int]]:
        """For each prompt the row that shares most of its first ids, and how many; never the last id, whose
        logits are wanted.
        """
        if not self.rows:
            return [(None, 0) for _ in prompts]
        width = max(len(row.ids) for row in self.rows) + 1
        rows = np.stack([np.pad(row.ids, (0, width - len(row.ids)), constant_values=-1) for row in self.rows])
        found: list[tuple[_Row | None, int]] = []
        for prompt in prompts:
            ids = np.full(width, -2)
            head = prompt[: min(len(prompt) - 1, width)]
            ids[: len(head)] = head
            shared = (rows == ids).argmin(axis=1)  # where they part; in the last column all have
            best = int(shared.argmax())
            found.append((self.rows[best], int(shared[best])) if shared[best] else (None, 0))
        return found

    def _cache(self, known: Sequence[tuple["_Row | None", int]], width: int) -> Cache:
        """A cache of `width` columns whose row i ends with the first ids of the row that is known of it, as
        many as `known` says.
        """
        if not self.is_possible:
            return DynamicCache(config=self.config)
        layers = [_RoomyLayer() for _ in range(self.num_layers)]
        sources = {row for row, _ in known if row} if width else set()
        for number, layer in enumerate(layers):
            for i, (row, length) in enumerate(known):
                if row in sources and length > 0 and (pair := row.layers[number]):
                    layer.put(i, len(known), width, pair[0][:, :length], pair[1][:, :length])
            for row in sources:
                row.layers[number] = None  # freed layer by layer: never is there twice the memory
        return Cache(layers=layers)


@dataclass(eq=False)
class _Row:
    """One transcript: its ids, and per layer the keys and values (H, ids, D) of each of them."""

    ids: np.ndarray
    layers: list[tuple[torch.Tensor, torch.Tensor] | None]


class _RoomyLayer(DynamicLayer):
    """A layer's keys and values in buffers with some room: not every id that is appended copies all before
    it.
    """

    ROOM = 64  # ids

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = key_states, value_states
        self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        start, self.length = self.length, self.length + key_states.shape[2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            return self.keys, self.values
        if self.length > self.keys.shape[2]:
            self.keys, self.values = (
                torch.cat([old[:, :, :start], new, old.new_empty(*old.shape[:2], self.ROOM, old.shape[3])], 2)
                for old, new in ((self.keys, key_states), (self.values, value_states))
            )
        else:
            self.keys[:, :, start : self.length] = key_states
            self.values[:, :, start : self.length] = value_states
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def get_seq_length(self) -> int:
        return self.length

    def put(self, row: int, num_rows: int, width: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Fill a row's last ids, (H, ids, D), of the first `width` columns."""
        if not self.is_initialized:
            # Zeros, for what is masked is still multiplied by 0.
            shapes = ((num_rows, like.shape[0], width, like.shape[2]) for like in (keys, values))
            self.lazy_initialization(*(keys.new_zeros(shape) for shape in shapes))
            self.length = width
        self.keys[row, :, width - keys.shape[1] :] = keys
        self.values[row, :, width - values.shape[1] :] = values

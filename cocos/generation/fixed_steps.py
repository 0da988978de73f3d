"""Decoding steps of fixed shape, which a GPU replays as one CUDA graph.

A step of a small model has a thousand kernels or more, each shorter than its launch, so that a GPU waits for
Python. A graph launches all of them at once. It reads the same memory at every step: keys and values have a
block of columns from the start, and a mask hides those that are not computed yet. When the block is full,
rows that have ended leave, and the steps of the next block are recorded.

Axes: B rows of the batch, W columns of the block and all before it, V vocabulary, H heads, D head size.
"""

import logging
from collections.abc import Callable

import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from cocos.generation.batch import PaddedBatch, PreallocatedLayer

logger = logging.getLogger(__name__)

BLOCK = 256  # new columns; recording a step takes as long as two of them without a graph
ALIGNMENT = 8  # columns of a mask that the kernels of attention accept without a copy


class FixedLayer(PreallocatedLayer):
    """Cache layer with columns to fill, of which a tensor names the next one.

    Args:
        layer: Layer with the keys and values so far.
        used: Number of their columns.
        width: Number of columns (W).
        column: Column that `update` writes, of shape (1).

    """

    def __init__(self, layer: DynamicLayer, used: int, width: int, column: torch.Tensor) -> None:
        super().__init__()
        # Zeros, because attention multiplies masked columns by 0, and 0 * NaN is NaN.
        keys, values = (
            old.new_zeros(*old.shape[:2], width, old.shape[3]) for old in (layer.keys, layer.values)
        )
        keys[:, :, :used], values[:, :, :used] = layer.keys[:, :, :used], layer.values[:, :, :used]
        self.lazy_initialization(keys, values)
        self.length, self.column = width, column

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys.index_copy_(2, self.column, key_states)
        self.values.index_copy_(2, self.column, value_states)
        return self.keys, self.values


class FixedSteps:
    """Decoding steps of a batch, whose cache it replaces by one with a block of columns to fill.

    Args:
        forward: Returns the logits (B, V) of ids (B, 1), an attention mask (B, 1, 1, W), positions (B, 1) and
            a cache.
        batch: Batch whose columns before `end` are computed.

    """

    def __init__(
        self,
        forward: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Cache], torch.Tensor],
        batch: PaddedBatch,
    ) -> None:
        self.forward, self.batch = forward, batch
        rows, most = batch.mask.shape
        width = min(batch.end + BLOCK, most)
        width += -width % ALIGNMENT
        self.column = batch.mask.new_tensor([batch.end])
        self.ids, self.positions = batch.mask.new_zeros(rows, 1), batch.positions.new_zeros(rows, 1)
        self.mask = batch.mask.new_zeros(rows, 1, 1, width, dtype=torch.bool)
        self.mask[:, 0, 0, : batch.end] = batch.mask[:, : batch.end].bool()
        layers = []
        for layer in batch.cache.layers:
            layers.append(FixedLayer(layer, batch.end, width, self.column))
            layer.keys = layer.values = None  # freed layer by layer: only one is in memory twice
        batch.cache = Cache(layers=layers)
        self.is_recordable = batch.mask.is_cuda
        self.graph: torch.cuda.CUDAGraph | None = None
        self.logits = torch.empty(0)  # of the graph

    @property
    def is_full(self) -> bool:
        """Return whether the block has no column left."""
        return self.batch.end == self.mask.shape[-1]

    def next_logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Compute the batch's last column and return the logits of the next id, of shape (B, V).

        On a GPU the next call overwrites them.

        Args:
            ids: Ids of the last column of shape (B), which `batch.end` already counts.

        """
        column = self.batch.end - 1
        self.ids.copy_(ids[:, None])
        self.positions.copy_(self.batch.positions[:, column:][:, :1])
        self.column.fill_(column)
        self.mask[..., column] = True
        if self.graph:
            self.graph.replay()
            return self.logits
        if not self.is_recordable:
            return self._step()
        # The first step prepares libraries, outside the stream that is recorded.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            logits = self._step()
        torch.cuda.current_stream().wait_stream(side)
        self._record()
        return logits

    def _record(self) -> None:
        """Record a step, or warn that the model's steps cannot be recorded."""
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads, such as that of NCCL, may use the GPU meanwhile.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self.logits = self._step()
        except RuntimeError as error:  # it reads a value of the GPU during a step
            logger.warning(f"sampling is slower: no CUDA graph can be made of this model's steps ({error})")
            self.is_recordable = False
        else:
            self.graph = graph

    def _step(self) -> torch.Tensor:
        return self.forward(self.ids, self.mask, self.positions, self.batch.cache)

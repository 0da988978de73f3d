"""Cache of attention keys and values between turns, so that a turn computes only its new ids.

The transcripts of a batch are left-padded and share one transformers cache. When a transcript ends, its keys
and values are stored with its ids. A later prompt reuses the stored transcript with which it has the longest
prefix in common, usually that of its previous turn. The stored transcripts change only the speed.
This module knows neither models nor sampling.

Axes: B rows of the batch, W ids of its longest prompt, M ids per row still to be computed, C new ids at most,
H heads, D head size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from cocos.generation.batch import PaddedBatch, Pass, PreallocatedLayer, passes


class TranscriptCache:
    """Keys and values of finished transcripts, looked up by their ids.

    Attributes:
        is_supported: Every layer of the model caches keys and values per id. If False, a layer has a
            recurrent state, which cannot be truncated to a prefix. Nothing is then stored, and no rows of a
            batch can be selected or removed.
        is_uniform: Every layer attends to all columns.
        transcripts: Stored transcripts, the oldest first.

    """

    def __init__(self, config: PretrainedConfig):
        self.config = config
        layer_types = [type(layer) for layer in DynamicCache(config=config).layers]
        self.num_layers = len(layer_types)
        self.is_supported = {*layer_types} <= {DynamicLayer, DynamicSlidingWindowLayer}
        self.is_uniform = {*layer_types} == {DynamicLayer}
        self.transcripts: list[_Transcript] = []

    def start_batch(
        self, prompts: Sequence[Sequence[int]], max_new_ids: int, max_transcripts: int, device: torch.device
    ) -> tuple[PaddedBatch, torch.Tensor, list[Pass]]:
        """Build a batch of prompts from stored transcripts; return it with the ids left to compute.

        A forward pass computes the same number of ids, M, in every row. M is the largest number of ids that
        follow the stored prefix of a prompt. The other rows compute the last ids of their prefix again. On a
        CPU, whose time depends on the ids computed, prompts with similarly many such ids share a pass.

        Args:
            prompts: Prompts. The stored transcripts that they continue or repeat are removed from
                `transcripts`.
            max_new_ids: Maximum number of new ids (C).
            max_transcripts: Limit on stored transcripts and rows of the batch together. The oldest stored
                transcripts are evicted until it is met.

        Returns:
            The batch; the ids to compute, right-aligned, of shape (B, M) for the largest M; and the passes
            that compute them. If there are several, the batch's cache already has their columns.

        """
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        width = max(map(len, prompts))
        # Padding on the left makes all rows end in the same column, so one new column extends them all.
        columns = torch.arange(width + max_new_ids, device=device) - (width - lengths[:, None])  # (B, W + C)
        matches = self._match_prefixes(prompts)
        num_new = [len(prompt) - length for prompt, (_, length) in zip(prompts, matches, strict=True)]
        found = [Pass(list(range(len(prompts))), max(num_new))]
        if self.is_supported and device.type == "cpu":
            found = several if len(several := passes(num_new)) > 1 else found
        # Transcripts that a prompt continues or repeats. One with which it has only the beginning in common,
        # such as a system message, stays: a later prompt may continue it.
        replaced = {
            transcript
            for prompt, (transcript, length) in zip(prompts, matches, strict=True)
            if transcript and length in (len(transcript.ids), len(prompt) - 1)
        }
        self.transcripts = [transcript for transcript in self.transcripts if transcript not in replaced]
        del self.transcripts[: max(0, len(self.transcripts) + len(prompts) - max_transcripts)]
        sources = {row: (matches[row][0], part.num_new) for part in found for row in part.rows}
        end = width if len(found) > 1 else width - found[0].num_new
        cache = self._build_cache(prompts, sources, width, end)
        # Prompts with fewer than M ids are padded on the left with id 0, where the mask is 0.
        most = max(num_new)
        new_ids = [[0] * (most - len(prompt)) + list(prompt[-most:]) for prompt in prompts]
        batch = PaddedBatch(cache, (columns >= 0).long(), columns.clamp(min=0), width)
        return batch, torch.tensor(new_ids, device=device), found

    def has_prefix(self, ids: Sequence[int]) -> bool:
        """Return whether a stored transcript begins with these ids."""
        return any(transcript.ids[: len(ids)].tolist() == list(ids) for transcript in self.transcripts)

    def store(self, batch: PaddedBatch, ids_by_row: Mapping[int, Sequence[int]], is_last_use: bool) -> None:
        """Store transcripts of a batch.

        Args:
            ids_by_row: Row number to the transcript's ids, all of which the model has computed.
            is_last_use: Free each layer of the batch as soon as it is copied, so that only one layer is in
                memory twice. The batch cannot be used afterwards.

        """
        if not self.is_supported:
            return
        transcripts = {row: _Transcript(np.array(ids), []) for row, ids in ids_by_row.items()}
        starts = (batch.mask == 0).sum(1).tolist()  # padding per row
        for layer in batch.cache.layers:
            for row, transcript in transcripts.items():
                own = (row, slice(None), slice(starts[row], starts[row] + len(transcript.ids)))
                # Layers that share keys and values with another layer store none themselves.
                has_states = layer.is_initialized
                transcript.layers.append(
                    (layer.keys[own].clone(), layer.values[own].clone()) if has_states else None
                )
            if is_last_use:
                layer.reset()
        self.transcripts += transcripts.values()

    def _match_prefixes(self, prompts: Sequence[Sequence[int]]) -> list[tuple["_Transcript | None", int]]:
        """Return for each prompt the transcript with the longest common prefix, and the prefix's length.

        The prefix never includes the prompt's last id. It has to be computed, because its logits are needed.
        """
        if not self.transcripts:
            return [(None, 0) for _ in prompts]
        # Compare each prompt with all transcripts at once. The paddings -1 and -2 always differ, and the
        # extra last column ensures that every transcript has a first difference.
        width = max(len(transcript.ids) for transcript in self.transcripts) + 1
        stored = np.stack(
            [
                np.pad(transcript.ids, (0, width - len(transcript.ids)), constant_values=-1)
                for transcript in self.transcripts
            ]
        )
        matches: list[tuple[_Transcript | None, int]] = []
        for prompt in prompts:
            ids = np.full(width, -2)
            prefix = prompt[: min(len(prompt) - 1, width)]
            ids[: len(prefix)] = prefix
            common = (stored == ids).argmin(axis=1)  # index of the first difference
            best = int(common.argmax())
            matches.append((self.transcripts[best], int(common[best])) if common[best] else (None, 0))
        return matches

    def _build_cache(
        self,
        prompts: Sequence[Sequence[int]],
        sources: Mapping[int, tuple["_Transcript | None", int]],
        width: int,
        end: int,
    ) -> Cache:
        """Return a cache with the stored prefixes of prompts.

        Args:
            sources: For each row the transcript to copy from, and the number of the prompt's last ids that
                will be computed and are not copied.
            width: Number of columns of the batch (W), in which the prompts are right-aligned.
            end: Number of columns of the cache; 0 makes an empty one.

        """
        if not self.is_supported:
            return DynamicCache(config=self.config)
        # Sliding-window layers keep all columns too. The model masks those outside the window, and a later
        # prompt may share only an early part of the transcript.
        layers = [PreallocatedLayer() for _ in range(self.num_layers)]
        reused = {transcript for transcript, _ in sources.values() if transcript} if end else set()
        for number, layer in enumerate(layers):
            for row, (transcript, num_new) in sources.items():
                length = len(prompts[row]) - num_new
                if transcript in reused and length > 0 and (states := transcript.layers[number]):
                    keys, values = (state[:, :length] for state in states)
                    layer.write(row, len(prompts), end, width - num_new, keys, values)
            for transcript in reused.difference(self.transcripts):
                transcript.layers[number] = None  # freed layer by layer: only one is in memory twice
        return Cache(layers=layers)


@dataclass(eq=False)  # compared and hashed by identity
class _Transcript:
    """A stored transcript: its ids, and for each layer their keys and values of shape (H, ids, D).

    The entry of a layer is None if the layer uses those of another layer.
    """

    ids: np.ndarray
    layers: list[tuple[torch.Tensor, torch.Tensor] | None]

"""What the turn loop asks of a generator, and nothing about how it is met.

`Generator` is the one protocol; `cocos.generation.huggingface` meets it with a transformers model and
`cocos.generation.scripted` with prepared answers. Imports no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Completion:
    """What one call sampled for one prompt.

    Attributes:
        token_ids: The sampled ids as they were sampled, through the end-of-sequence id or the token that
            completes [DONE].
        text: Their decoding, special tokens left out.
        is_truncated: Neither an end-of-sequence id nor [DONE] came before the length limit.
        is_eos: The last id is an end-of-sequence id.
        duration_s: This completion's share of the batch's wall time.

    """

    token_ids: tuple[int, ...]
    text: str
    is_truncated: bool = False
    is_eos: bool = False
    duration_s: float = 0.0


class Generator(Protocol):
    """Token ids in, completions out; the turn loop keeps the transcripts."""

    def encode(self, text: str, is_start: bool) -> list[int]:
        """Token ids of a text; `is_start` says that it opens a transcript (a beginning-of-sequence id may go
        before it).
        """
        ...

    def generate(self, prompts: Sequence[Sequence[int]]) -> list[Completion]:
        """One completion per prompt, in the same order."""
        ...

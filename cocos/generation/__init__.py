"""What the turn loop asks of a generator, and nothing about how it is met.

`Generator` is the one protocol. A transformers model meets it (`huggingface`), the engines that TRL brings
(`engines`), vLLM's offline engine (`vllm_offline`), an OpenAI-compatible endpoint (`endpoint`), and prepared
answers (`scripted`). Imports no torch.
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
        error: Why there is no answer (an endpoint that kept failing), or None. Such a completion is an
            infrastructure failure of its trajectory and never scored.
        num_prompt_tokens: As counted by an endpoint; None where the prompt's ids are the model's own tokens.
        num_completion_tokens: Likewise, of the answer.

    """

    token_ids: tuple[int, ...]
    text: str
    is_truncated: bool = False
    is_eos: bool = False
    duration_s: float = 0.0
    error: str | None = None
    num_prompt_tokens: int | None = None
    num_completion_tokens: int | None = None

    @property
    def kept_ids(self) -> tuple[int, ...]:
        """What stays in the transcript: an end-of-sequence id gives way to what the format puts there."""
        return self.token_ids[:-1] if self.is_eos else self.token_ids


class Generator(Protocol):
    """Makes transcripts and continues them; a transcript is a list of ids that only its generator reads.

    Attributes:
        batch_size: How many prompts it answers at once; None where any number is as good.

    """

    batch_size: int | None

    def start(self, message: str, is_chat: bool) -> list[int]:
        """The prompt of turn 1.

        Args:
            message: What the model is told.
            is_chat: The message is a user's, put as the model's chat template has it; else it is plain text.

        """
        ...

    def extend(self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool) -> list[int]:
        """The prompt of the next turn: `prompt`, the ids that were kept, and those of the next message."""
        ...

    def quote(self, text: str) -> Completion:
        """An answer that was written elsewhere, as if it had been sampled here."""
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in the same order.

        Args:
            prompts: From `start` or `extend`.
            temperature: 0 decodes greedily.
            seeds: One per prompt: what is sampled depends on prompt and seed alone, however prompts are
                batched. None draws from the process's random state.

        """
        ...

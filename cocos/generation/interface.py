"""Interface between the turn loop and the generators. Standard library only."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cocos.generation.clocks import Clocks

Role = Literal["user", "tool"]
_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """Return a text in which U+FFFD replaces lone surrogates, which no encoding and no tokenizer takes."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


@dataclass(frozen=True)
class Completion:
    """The text generated for one prompt."""

    # Sampled ids, up to and including the end-of-sequence id or the token that completes [DONE].
    token_ids: tuple[int, ...]
    text: str  # the decoded ids without special tokens
    # The length limit was reached before an end-of-sequence id or [DONE], say tokenizer.py and endpoint.py.
    is_truncated: bool = False
    is_eos: bool = False  # the last id is an end-of-sequence id
    duration_s: float = 0.0  # wall time of the request, or of the batch divided by its number of prompts
    # Error message of an endpoint that kept failing, else None. Such a completion makes its turn an
    # infrastructure failure, which is never scored.
    error: str | None = None
    num_prompt_tokens: int | None = None  # prompt tokens as counted by an endpoint; None for other generators
    # Completion tokens as counted by an endpoint; None for other generators.
    num_completion_tokens: int | None = None
    # Log-probabilities of `token_ids` as the engine that sampled them computed them; NaN for an id without
    # one. None for generators that state none, and with greedy decoding.
    engine_logps: tuple[float, ...] | None = None
    has_replaced: bool = False  # U+FFFD replaces lone surrogates in the text
    thought: str = ""  # what a reasoning model wrote before its answer; not in `text`, once a turn has it
    num_thought_tokens: int | None = None  # those of the completion tokens; None if nobody has counted them
    key: int | None = None  # number of the API key that served the request, from 1; None without a key

    @property
    def kept_ids(self) -> tuple[int, ...]:
        """The ids that stay in the transcript: all but a final end-of-sequence id.

        The next message starts with its replacement: the chat template's end of turn, or a newline.
        """
        return self.token_ids[:-1] if self.is_eos else self.token_ids


class GenerationStopped(Exception):
    """`generate` has given up because `Generator.is_stopped` said so. Its completions are lost."""


class Progress:
    """Watcher of a batch that is being sampled, called from any thread; this one does nothing."""

    def start(self, turn: str, num_rows: int) -> None:
        """Begin a turn, such as `turn 2 of 3`, of so many rows. The turn loop calls this."""

    def add(self, num_tokens: int, num_ended: int) -> None:
        """Count new tokens, and the completions that ended with them. The generator calls this."""


class Generator:
    """A source of completions.

    A transcript is a list of integers. These are usually token ids, but only the generator that made the
    transcript has to understand them.
    """

    batch_size: int | None = None  # prompts per batch; None if the generator has no preferred number
    is_collective: bool = False  # all ranks must call `generate` equally often, also without prompts
    # Tokens of the longest transcript that the model was trained on; None if that is not known.
    context_length: int | None = None
    progress: Progress = Progress()  # told whenever tokens were sampled
    clocks: Clocks = Clocks()  # measure the parts of `generate`, where a generator knows them
    # Called with the text of the completion so far whenever it grew, in batches of one prompt. An exception
    # that it raises ends `generate`. Generators that cannot stream never call it.
    on_text: Callable[[str], None] | None = None
    # Asked between the steps of `generate`, by engines that cannot be interrupted only at its start. True
    # ends it with GenerationStopped; if `is_collective`, on all ranks as soon as one of them says so.
    is_stopped: Callable[[], bool] | None = None

    @property
    def has_to_stop(self) -> bool:
        """True if `is_stopped` says so."""
        return self.is_stopped is not None and self.is_stopped()

    def start(
        self, message: str, is_chat: bool, system: str = "", tools: Sequence[dict[str, Any]] = ()
    ) -> list[int]:
        """Return the prompt of turn 1.

        Args:
            is_chat: Whether to render the message as a user message with the model's chat template. If False,
                the message is plain text to be continued.
            system: System message of a chat; "" for none.
            tools: Functions that the model may call in a chat, in OpenAI's format. The first completion has
                to call one. Calls are part of a completion's text (`cocos.generation.tool_calls`).

        """
        raise NotImplementedError

    def extend(
        self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool, role: Role = "user"
    ) -> list[int]:
        """Return the prompt of the next turn: `prompt`, the completion's kept ids and the next message.

        Args:
            role: Author of the message in a chat: `tool` answers the completion's first call.

        """
        raise NotImplementedError

    def quote(self, text: str) -> Completion:
        """Return a completion with the given text, for an answer that this generator did not sample."""
        raise NotImplementedError

    def show(self, prompt: Sequence[int]) -> str:
        """Return a transcript as text, with the special tokens that the model sees."""
        raise NotImplementedError

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        """Return one completion per prompt, in the order of the prompts.

        Args:
            prompts: Transcripts returned by `start` or `extend`.
            temperature: Sampling temperature; 0 decodes greedily.
            seeds: One seed per prompt. A sampled completion then depends on its prompt and seed only, not on
                the batch. None samples from the random state of the process.

        """
        raise NotImplementedError


class TextTranscripts(Generator):
    """Base class of generators without a tokenizer. The ids of a transcript are Unicode code points."""

    def quote(self, text: str) -> Completion:
        kept = encodable(text)
        return Completion(tuple(map(ord, kept)), kept, has_replaced=kept != text)

    def show(self, prompt: Sequence[int]) -> str:
        return "".join(map(chr, prompt))


def check_room(task_id: str, num_tokens: int, context: float) -> None:
    """Raise ValueError if the first prompt of a problem has more tokens than a model's context."""
    if num_tokens > context:
        raise ValueError(
            f"problem {task_id}: its prompt has {num_tokens} tokens, more than the model's context of "
            f"{context}; shorten it (--few_shot_examples, --prompt_tests), or leave the problem out"
        )

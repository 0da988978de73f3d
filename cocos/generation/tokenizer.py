"""Transcripts in a tokenizer's ids: plain or through its chat template, and where an answer ends.

Shared by the generators that sample with a model of their own. Nothing that was sampled is decoded and
encoded again. Does not know models.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerBase

from cocos.generation import Completion
from cocos.prompts import DONE


class TokenTranscripts:
    """Puts messages into ids, and sampled ids into completions.

    Args:
        tokenizer: With a pad token, which may be the end-of-sequence token: lengths decide, never pad ids.
        eos_ids: Every id that ends an answer.

    """

    batch_size: int | None = None

    def __init__(self, tokenizer: PreTrainedTokenizerBase, eos_ids: Iterable[int]):
        self.tokenizer = tokenizer
        self.eos_ids = set(eos_ids)
        # Only after an id that may complete [DONE] is it looked for.
        self._closing_ids = {i for token, i in tokenizer.get_vocab().items() if _may_close(token)}

    def start(self, message: str, is_chat: bool) -> list[int]:
        if is_chat:
            return encode(self.tokenizer, _rendered(self.tokenizer, [message]), is_start=False)
        return encode(self.tokenizer, message, is_start=True)

    def extend(self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool) -> list[int]:
        text = _after_answer(self.tokenizer, message) if is_chat else message
        return [*prompt, *completion.kept_ids, *encode(self.tokenizer, text, is_start=False)]

    def quote(self, text: str) -> Completion:
        return Completion(tuple(encode(self.tokenizer, text, is_start=False)), text)

    def is_end(self, sampled: Sequence[int]) -> bool:
        """Whether the last of the ids sampled so far ends the answer."""
        if sampled[-1] in self._closing_ids and DONE in self.decode(sampled[-2 * len(DONE) :]):
            return True
        return sampled[-1] in self.eos_ids

    def completion(self, sampled: list[int], duration_s: float) -> Completion:
        """Cut sampled ids where the answer ended: after the first end-of-sequence id or the token that
        completes [DONE].
        """
        eos = next((i for i, token in enumerate(sampled) if token in self.eos_ids), None)
        ids = sampled if eos is None else sampled[: eos + 1]
        done = self._first_done(ids)
        if done is not None:
            ids = ids[:done]
        return Completion(
            token_ids=tuple(ids),
            text=self.decode(ids),
            is_truncated=eos is None and done is None,
            is_eos=eos is not None and len(ids) == eos + 1,
            duration_s=duration_s,
        )

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _first_done(self, ids: list[int]) -> int | None:
        """How many ids it takes until the text contains [DONE]; None if it never does."""
        if DONE not in self.decode(ids):
            return None
        if DONE not in self.decode(ids[:-1]):
            return len(ids)
        return bisect_left(range(len(ids) + 1), True, key=lambda n: DONE in self.decode(ids[:n]))


def end_ids(config: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that ends an answer: the generation config's, one or several, and the tokenizer's."""
    declared = config.eos_token_id if config else None
    return {*(declared if isinstance(declared, list) else [declared]), tokenizer.eos_token_id} - {None}


def encode(tokenizer: PreTrainedTokenizerBase, text: str, is_start: bool) -> list[int]:
    """Token ids of a piece of a transcript; `is_start` says that it opens one (a beginning-of-sequence id may
    go before it).
    """
    return tokenizer(text, add_special_tokens=is_start)["input_ids"]


def load_tokenizer(
    name_or_path: str, revision: str | None = None, trust_remote_code: bool = False
) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint, padding on the left; a missing pad token becomes the end-of-sequence
    token.

    Raises:
        ValueError: The checkpoint is not there, or its tokenizer has neither a pad nor an end-of-sequence
            token.

    """
    check_checkpoint(name_or_path)
    tokenizer = AutoTokenizer.from_pretrained(
        name_or_path, revision=revision, trust_remote_code=trust_remote_code, padding_side="left"
    )
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(
                f"{name_or_path}: the tokenizer has neither a pad nor an eos token; name one in its "
                f"tokenizer_config.json"
            )
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def check_checkpoint(name_or_path: str) -> None:
    """Refuse a path that looks local but is not there: the hub would be asked, with a baffling error."""
    looks_local = name_or_path.startswith((".", "/", "~")) or name_or_path.count("/") != 1
    if not Path(name_or_path).is_dir() and looks_local and "/" in name_or_path:
        raise ValueError(
            f"{name_or_path}: no such checkpoint directory; give a directory or a hub id like org/name"
        )


def _may_close(token: str) -> bool:
    """Whether [DONE] may end in a token: the token has all of it, or begins with the rest of it."""
    return DONE in token or any(token.startswith(DONE[i:]) for i in range(len(DONE)))


_ANSWER = "\N{WHITE SQUARE}answer\N{WHITE SQUARE}"  # stands for what was sampled; no template writes it


def _after_answer(tokenizer: PreTrainedTokenizerBase, message: str) -> str:
    """What the chat template puts after an answer: its end of turn, the message, the opening of an answer."""
    return _rendered(tokenizer, ["", _ANSWER, message]).partition(_ANSWER)[2]


def _rendered(tokenizer: PreTrainedTokenizerBase, contents: Sequence[str]) -> str:
    """Messages of user and assistant in turn, up to where the assistant answers."""
    if not tokenizer.chat_template:
        raise ValueError(
            f"{tokenizer.name_or_path} has no chat template; choose --protocol cocos or cocos-fewshot"
        )
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(contents)
    ]
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

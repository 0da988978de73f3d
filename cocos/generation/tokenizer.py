"""Transcripts as token ids, plain or rendered with a chat template, and the end of completions.

Transcripts are token-exact: sampled ids are never decoded and encoded again. This module knows
tokenizers, not models.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from jinja2 import TemplateError
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerBase

from cocos.generation.checkpoint_files import check_checkpoint, tokenizer_source
from cocos.generation.interface import Completion, Generator, Role, encodable
from cocos.generation.model_kinds import brief
from cocos.generation.round_trip import check_tokenizer
from cocos.generation.tool_calls import OPENING
from cocos.prompts import DONE


class TokenTranscripts(Generator):
    """Base class of generators with a tokenizer: encodes messages and cuts completions at their end.

    Args:
        tokenizer: Tokenizer with a pad token. This may be the end-of-sequence token, because padding is
            always derived from lengths, never from pad ids.

    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, eos_ids: Iterable[int]):
        self.tokenizer = tokenizer
        self.eos_ids = set(eos_ids)
        # Decoding after every sampled token would be slow. Only these ids can complete [DONE].
        self._done_ids = {i for token, i in tokenizer.get_vocab().items() if _may_complete_done(token)}

    def start(
        self, message: str, is_chat: bool, system: str = "", tools: Sequence[dict[str, Any]] = ()
    ) -> list[int]:
        if not is_chat:
            return encode(self.tokenizer, message, is_start=True)
        messages = [{"role": "system", "content": system}] if system else []
        if system and not self._takes_system:
            messages, message = [], f"{system}\n\n{message}"
        text = _render_chat(self.tokenizer, [*messages, {"role": "user", "content": message}], tools)
        return encode(self.tokenizer, text, is_start=False)

    @cached_property
    def _takes_system(self) -> bool:
        """Return whether the chat template has a system role; Gemma's has none, for example."""
        messages = [{"role": role, "content": "x"} for role in ("system", "user")]
        try:
            _render_chat(self.tokenizer, messages)
        except ValueError:
            return False
        return True

    def extend(
        self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool, role: Role = "user"
    ) -> list[int]:
        text = _text_after_answer(self.tokenizer, message, role) if is_chat else message
        return [*prompt, *completion.kept_ids, *encode(self.tokenizer, text, is_start=False)]

    def quote(self, text: str) -> Completion:
        kept = encodable(text)
        ids = encode(self.tokenizer, kept, is_start=False)
        return Completion(tuple(ids), kept, has_replaced=kept != text)

    def show(self, prompt: Sequence[int]) -> str:
        return self.tokenizer.decode(prompt, clean_up_tokenization_spaces=False)

    def has_ended(self, sampled: Sequence[int]) -> bool:
        """Return whether the last sampled id ends the completion."""
        # [DONE] has at most one token per character. Decoding twice as many leaves room for special tokens
        # in between, which decode to nothing.
        if sampled[-1] in self._done_ids and DONE in self.decode(sampled[-2 * len(DONE) :]):
            return True
        return sampled[-1] in self.eos_ids

    def completion(self, sampled: list[int], duration_s: float) -> Completion:
        """Return the completion up to the first end-of-sequence id or the token that completes [DONE]."""
        eos = next((i for i, token in enumerate(sampled) if token in self.eos_ids), None)
        ids = sampled if eos is None else sampled[: eos + 1]
        done = self._length_through_done(ids)
        if done is not None:
            ids = ids[:done]
        return Completion(
            token_ids=tuple(ids),
            text=self.decode(ids),
            is_truncated=eos is None and done is None,
            is_eos=eos is not None and len(ids) == eos + 1,
            duration_s=duration_s,
        )

    def batch_completions(self, sampled: Sequence[Sequence[int]], duration_s: float) -> list[Completion]:
        """Return the completions of a batch; each gets an equal share of the batch's duration."""
        return [self.completion(list(ids), duration_s / len(sampled)) for ids in sampled]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids without special tokens."""
        # The clean-up removes spaces, which would change programs.
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _length_through_done(self, ids: list[int]) -> int | None:
        """Return the length of the shortest prefix whose text contains [DONE], or None."""
        if DONE not in self.decode(ids):
            return None
        if DONE not in self.decode(ids[:-1]):  # the usual case: sampling stopped at [DONE]
            return len(ids)
        return bisect_left(range(len(ids) + 1), True, key=lambda n: DONE in self.decode(ids[:n]))


def eos_token_ids(config: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Return all ids that end a completion: those of the generation config and that of the tokenizer.

    Chat models often declare several in their generation config, of which the tokenizer knows only one.
    """
    declared = config.eos_token_id if config else None
    return {*(declared if isinstance(declared, list) else [declared]), tokenizer.eos_token_id} - {None}


def encode(tokenizer: PreTrainedTokenizerBase, text: str, is_start: bool) -> list[int]:
    """Return the token ids of a piece of a transcript.

    Args:
        is_start: Whether the piece opens the transcript, so that special tokens such as a
            beginning-of-sequence id are added.

    """
    return tokenizer(encodable(text), add_special_tokens=is_start)["input_ids"]


def load_tokenizer(
    name_or_path: str,
    revision: str | None = None,
    trust_remote_code: bool = False,
    template_variables: Mapping[str, Any] | None = None,
    chat_template: str | None = None,
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a checkpoint, set to pad on the left.

    If it has no pad token, the end-of-sequence token takes its place.

    Args:
        template_variables: Variables of the chat template, which then begins by setting them: a model that
            is trained with them is saved and served with them. None: its own.
        chat_template: Name of the chat template, if the tokenizer has several; None: its default one.

    Raises:
        ValueError: The checkpoint does not exist or is damaged, its tokenizer changes programs or has neither
            a pad nor an end-of-sequence token, or its chat template has another name or does not know a
            variable.

    """
    check_checkpoint(name_or_path, revision, needs_weights=False, trusts_code=trust_remote_code)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            tokenizer_source(name_or_path),
            revision=revision,
            trust_remote_code=trust_remote_code,
            padding_side="left",
        )
    except (ValueError, LookupError, TypeError, AttributeError, StrictDataclassError) as error:
        # Its files may have any content. A message about JSON or conversion names no checkpoint.
        reason = brief(error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")
        raise ValueError(f"{name_or_path}: the tokenizer cannot be loaded ({reason})") from None
    check_tokenizer(tokenizer)
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(
                f"{name_or_path}: the tokenizer has neither a pad nor an eos token; name one in its "
                f"tokenizer_config.json"
            )
        tokenizer.pad_token = tokenizer.eos_token
    templates = _chat_templates(tokenizer, chat_template, template_variables or {})
    is_named = isinstance(tokenizer.chat_template, dict)
    tokenizer.chat_template = templates if is_named else templates.get("default")
    return tokenizer


def _chat_templates(
    tokenizer: PreTrainedTokenizerBase, chosen: str | None, variables: Mapping[str, Any]
) -> dict[str, str]:
    """Return a tokenizer's chat templates by name, with the chosen one as `default`, and variables set."""
    templates = tokenizer.chat_template or {}
    templates = dict(templates) if isinstance(templates, dict) else {"default": templates}
    if chosen is not None:
        if chosen not in templates:
            raise ValueError(
                f"--chat_template {chosen}: {tokenizer.name_or_path} has no chat template of that name; its "
                f"names are {', '.join(templates) or 'none'}"
            )
        templates["default"] = templates[chosen]
    for name, value in variables.items():
        if not any(re.search(rf"\b{name}\b", template) for template in templates.values()):
            raise ValueError(
                f"--chat_template_kwargs: the chat template of {tokenizer.name_or_path} does not use {name}; "
                "leave it out"
            )
        templates = {key: f"{{%- set {name} = {value!r} -%}}{text}" for key, text in templates.items()}
    return templates


def _may_complete_done(token: str) -> bool:
    """Return whether the token contains [DONE] or starts with a suffix of it."""
    return DONE in token or any(token.startswith(DONE[i:]) for i in range(len(DONE)))


_ANSWER = "\N{WHITE SQUARE}answer\N{WHITE SQUARE}"  # placeholder that occurs in no chat template


def _text_after_answer(tokenizer: PreTrainedTokenizerBase, message: str, role: str) -> str:
    """Return the text between two answers of a chat: end of turn, the message, start of the next answer."""
    contents = {"user": "", "assistant": _ANSWER}
    messages = [{"role": author, "content": content} for author, content in contents.items()]
    return _render_chat(tokenizer, [*messages, {"role": role, "content": message}]).partition(_ANSWER)[2]


def _render_chat(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[dict[str, str]],
    tools: Sequence[dict[str, Any]] = (),
) -> str:
    """Render messages, followed by the start of an answer; with tools, by the start of a call.

    Raises:
        ValueError: The tokenizer has no chat template, or one that fails or shows no tools.

    """
    if not tokenizer.chat_template:
        raise ValueError(
            f"{tokenizer.name_or_path} has no chat template; choose --protocol cocos or cocos-fewshot"
        )

    templates = tokenizer.chat_template
    if isinstance(templates, dict) and "default" not in templates:
        raise ValueError(
            f"{tokenizer.name_or_path} has chat templates by name and none by default; choose one: "
            f"--chat_template {' or '.join(templates)}"
        )

    def render(tools: list[dict[str, Any]] | None) -> str:
        try:
            return tokenizer.apply_chat_template(messages, tools, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ValueError(
                f"{tokenizer.name_or_path}: the chat template refuses the messages {roles} ({error}); choose "
                "another --protocol or --agent"
            ) from None

    text = render(None)
    if not tools:
        return text
    with_tools = render(list(tools))
    if with_tools == text:
        raise ValueError(
            f"{tokenizer.name_or_path} has a chat template without tools; choose another --agent, or a model "
            "that was trained to call tools"
        )
    # A family that tags its calls is made to start with one; others are asked in words.
    return with_tools + f"{OPENING}\n" if OPENING in with_tools else with_tools

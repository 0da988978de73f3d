"""Check that a tokenizer gives back the texts that it gets: a model that reads others solves nothing.

Some tokenizers lose spaces or newlines in one version of transformers, small vocabularies lack characters,
and some chat templates leave out a message.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from cocos.generation.interface import Generator, encodable
from cocos.problems import Problem
from cocos.prompts import PromptProtocol

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Tokenizers of programs give this back, also if no text of the data has indentation.
PROGRAM = '\n\ndef Sum(x, y=1):\n    if x == "A  b":\n        return [x, y]\n\n    return x\n'
REMEDY = "try another version of transformers, or choose another model"
QUOTED = 20  # characters that are quoted before the first difference, and after it


class Text(NamedTuple):
    """A text, and what its tokens say."""

    owner: str  # problem or row that the text is of
    text: str
    decoded: str  # may have more around the text, such as the rest of a chat


def check_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Raise ValueError if a tokenizer changes a program that it encodes, then decodes like a completion."""
    ids = tokenizer(PROGRAM, add_special_tokens=False)["input_ids"]
    decoded = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    if PROGRAM not in decoded:
        raise ValueError(f"{_change(tokenizer, 'a program', PROGRAM, decoded)[0]}; {REMEDY}")


def prompt_warning(problems: Iterable[Problem], transcripts: Generator, protocol: PromptProtocol) -> str:
    """Return a warning about problems whose first prompt or reference the tokenizer changes; "" for none.

    Raises:
        ValueError: It changes most of them, or ASCII characters of one.

    """
    tokenizer = getattr(transcripts, "tokenizer", None)
    if tokenizer is None:  # an endpoint has its own
        return ""

    def texts() -> Iterable[Text]:
        for problem in problems:
            owner, message = f"problem {problem.task_id}", protocol.first_turn(problem)
            prompt = transcripts.start(message, protocol.is_chat, protocol.system, protocol.tools)
            shown, reference = map(transcripts.show, (prompt, transcripts.quote(problem.code).token_ids))
            yield from (Text(owner, protocol.system, shown), Text(owner, message, shown))
            yield Text(owner, problem.code, reference)

    return text_warning(tokenizer, texts())


def text_warning(tokenizer: "PreTrainedTokenizerBase", texts: Iterable[Text]) -> str:
    """Return a warning about texts that a tokenizer changes; "" for none.

    Space at the ends and around special tokens is not compared: many tokenizers and templates strip it.

    Raises:
        ValueError: It changes texts of most owners, or ASCII characters of one, which programs are made of.

    """
    special = [re.escape(token.content) for token in tokenizer.added_tokens_decoder.values() if token.special]
    around = re.compile(rf"\s*({'|'.join(special) or '$^'})\s*")
    owners, changes = set(), dict[str, str]()
    for owner, text, decoded in texts:
        owners.add(owner)
        text, decoded = around.sub(r"\1", encodable(text).strip()), around.sub(r"\1", decoded)
        if text not in decoded:
            change, is_ascii = _change(tokenizer, owner, text, decoded)
            if is_ascii:
                raise ValueError(f"{change}; {REMEDY}")
            changes.setdefault(owner, change)
    if not changes:
        return ""
    first = next(iter(changes.values()))
    if 2 * len(changes) > len(owners):
        raise ValueError(f"{first}; {REMEDY}")
    return f"{first}; {len(changes)} of {len(owners)} are changed: leave them out, or choose another model"


def _change(tokenizer: "PreTrainedTokenizerBase", owner: str, text: str, decoded: str) -> tuple[str, bool]:
    """Return the first change of a text in words, and whether it is one of ASCII characters."""
    num_kept = bisect_left(range(len(text)), True, key=lambda end: text[: end + 1] not in decoded)
    places = (text, num_kept), (decoded, decoded.find(text[:num_kept]) + num_kept)
    before, after = (part[max(0, end - QUOTED) : end + QUOTED] for part, end in places)
    change = (
        f"{tokenizer.name_or_path}: the tokenizer ({type(tokenizer).__name__} of transformers "
        f"{version('transformers')}) or its chat template changes {owner}: {before!a} becomes {after!a}"
    )
    # A character that is composed, or is unknown and becomes <unk>, is not ASCII on one of both sides.
    return change, all(part[end : end + 1].isascii() for part, end in places)

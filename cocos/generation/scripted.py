"""Generator whose completions come from a function, for runs without a model and for tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cocos.generation.interface import Completion, Role, TextTranscripts
from cocos.prompts import DONE


class ScriptedGenerator(TextTranscripts):
    """Generator that answers each prompt with `script(prompt)`. Its token ids are Unicode code points.

    There is no chat template: in a chat, a blank line separates answers and messages.

    Args:
        script: Function from the text of the whole transcript to the text of the next answer.
        max_completion_length: Maximum length of an answer in characters; longer answers are truncated.

    """

    def __init__(self, script: Callable[[str], str], max_completion_length: int = 100_000):
        self.script = script
        self.max_completion_length = max_completion_length
        self._is_chat = False

    def encode(self, text: str, is_start: bool) -> list[int]:
        """Return the ids of a piece of a transcript. Tests override this to imitate tokenizers."""
        return [ord(character) for character in text]

    def start(
        self, message: str, is_chat: bool, system: str = "", tools: Sequence[dict[str, Any]] = ()
    ) -> list[int]:
        self._is_chat = is_chat
        return self.encode(f"{system}\n\n{message}" if system else message, is_start=True)

    def extend(
        self, prompt: Sequence[int], completion: Completion, message: str, is_chat: bool, role: Role = "user"
    ) -> list[int]:
        text = f"\n\n{message}" if is_chat else message
        return [*prompt, *completion.kept_ids, *self.encode(text, is_start=False)]

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        return [self._complete(self.show(prompt)) for prompt in prompts]

    def _complete(self, prompt: str) -> Completion:
        text = self.script(prompt)
        if DONE in text:
            text = text[: text.index(DONE) + len(DONE)]
        is_cut = len(text) > self.max_completion_length
        text = text[: self.max_completion_length]
        self.progress.add(len(text), 1)
        return replace(self.quote(text), is_truncated=is_cut or not (self._is_chat or text.endswith(DONE)))

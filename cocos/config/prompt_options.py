"""Options of the prompts that the model sees, the same in training, in evaluation and for Boost data."""

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from cocos.config.option import option, require_at_least


@dataclass
class PromptOptions:
    """Options of the prompts that the model sees."""

    group: ClassVar[str] = "prompts"

    num_turns: int = option("length", 2, "Turns per problem (T).")
    protocol: str = option(
        "wording",
        "cocos",
        "`cocos` for Boost and CoCoS models, `cocos-fewshot` for base models, `chat`, `repair` or `fix` "
        "for chat models.",
    )
    few_shot_data: str | None = option(
        "wording", None, "Solved problems for `cocos-fewshot`; for a chat, problems with buggy_code."
    )

    few_shot_examples: int = option("wording", 3, "Problems of --few_shot_data to show, never the one asked.")

    prompt_file: str | None = option(
        "wording", None, "YAML file with your own messages instead of --protocol; docs/evaluation.md."
    )

    prompt_tests: int | None = option(
        "prompt", None, "Visible tests that the prompt shows, the first N. By default all."
    )

    prompt_signature: bool = option(
        "prompt", False, "Show the reference's first line: name and parameters of its function."
    )

    system_prompt: str | None = option(
        "wording", None, "File with the system message of a chat; by default an agent's, if any."
    )

    chat_template: str | None = option("prompt", None, "Name of one of the tokenizer's chat templates.")

    chat_template_kwargs: dict[str, Any] | str | None = option(
        "wording",
        None,
        "Variables of the chat template and of endpoints' chats, as JSON, such as "
        "'{\"enable_thinking\": false}' against the thoughts of many models.",
    )

    def __post_init__(self) -> None:
        require_at_least(self, 1, "num_turns", "few_shot_examples")
        if isinstance(self.chat_template_kwargs, str):
            self.chat_template_kwargs = _json_object("chat_template_kwargs", self.chat_template_kwargs)
        require_at_least(self, 0, "prompt_tests")
        if self.prompt_file and (self.protocol != PromptOptions.protocol or self.few_shot_data):
            raise ValueError(
                "--prompt_file replaces --protocol and --few_shot_data; leave them out, or leave it out"
            )
        if self.prompt_file and self.prompt_signature:
            raise ValueError("--prompt_signature: with --prompt_file, write {signature} into its first_turn")

    @property
    def template_variables(self) -> dict[str, Any]:
        """Variables of the chat template, parsed."""
        return self.chat_template_kwargs if isinstance(self.chat_template_kwargs, dict) else {}


def _json_object(name: str, text: str) -> dict[str, Any]:
    """Return the JSON object that an option's text is.

    Raises:
        ValueError: The text is none.

    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--{name} {text} is no JSON ({error}); quote it, as '{{\"x\": false}}'") from None
    if not isinstance(value, dict) or not all(map(str.isidentifier, value)):
        raise ValueError(f"--{name} {text} is no object with names as keys; give one, as '{{\"x\": false}}'")
    return value

"""Options of the prompts that the model sees, the same in training, in evaluation and for Boost data."""

from dataclasses import dataclass
from typing import ClassVar

from cocos.config.option import option, require_not_negative, require_positive


@dataclass
class PromptOptions:
    """Options of the prompts that the model sees."""

    group: ClassVar[str] = "prompts"

    num_turns: int = option(role="length", default=2, help="Turns per problem (T).")
    protocol: str = option(
        role="wording",
        default="cocos",
        help="`cocos` for Boost and CoCoS models, `cocos-fewshot` for base models, `chat`, `repair` or `fix` "
        "for chat models.",
    )
    few_shot_data: str | None = option(
        role="wording",
        default=None,
        help="Solved problems for `cocos-fewshot`; for a chat, problems with buggy_code.",
    )

    few_shot_examples: int = option(
        role="wording", default=3, help="Problems of --few_shot_data to show, never the one asked."
    )

    prompt_file: str | None = option(
        role="wording",
        default=None,
        help="YAML file with your own messages instead of --protocol; docs/generation.md.",
    )

    prompt_tests: int | None = option(
        role="prompt", default=None, help="Visible tests that the prompt shows, the first N. By default all."
    )

    prompt_signature: bool = option(
        role="prompt",
        default=False,
        help="Show the reference's first line: name and parameters of its function.",
    )

    def __post_init__(self) -> None:
        require_positive(self, "num_turns", "few_shot_examples")
        require_not_negative(self, "prompt_tests")
        if self.prompt_file and (self.protocol != PromptOptions.protocol or self.few_shot_data):
            raise ValueError(
                "--prompt_file replaces --protocol and --few_shot_data; leave them out, or leave it out"
            )
        if self.prompt_file and self.prompt_signature:
            raise ValueError("--prompt_signature: with --prompt_file, write {signature} into its first_turn")

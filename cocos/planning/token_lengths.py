"""Lengths of a run's prompts and references in tokens, measured with its tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from cocos.generation import Completion
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.problems import Problem
from cocos.prompts import PromptProtocol, answer


class FixedAnswerGenerator(TokenTranscripts):
    """Generator that answers every prompt with the same program, in the model's tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, code: str):
        super().__init__(tokenizer, {tokenizer.eos_token_id})
        self.code = code

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        ids = encode(self.tokenizer, answer(self.code), is_start=False)
        return [self.completion(ids, duration_s=0.0) for _ in prompts]


@dataclass(frozen=True)
class TokenLengths:
    """Lengths of the data in tokens.

    Attributes:
        longest_prompt: Longest first prompt.
        longest_task: Id of the problem with the longest first prompt.
        median_prompt: Median of the first prompts.
        instruction: The instruction between two turns.
        reference: Longest reference solution with [DONE]; 0 if no problem has one.

    """

    longest_prompt: int
    longest_task: str
    median_prompt: int
    instruction: int
    reference: int


def measure_lengths(
    problems: Sequence[Problem], transcripts: TokenTranscripts, protocol: PromptProtocol
) -> TokenLengths:
    """Tokenize the first prompt and the reference of every problem and return their lengths."""
    prompts = [transcripts.start(protocol.first_turn(p), protocol.is_chat) for p in problems]
    ranked = sorted(zip(map(len, prompts), (p.task_id for p in problems), strict=True))
    instruction = transcripts.extend([], Completion((), ""), protocol.later_turn(), protocol.is_chat)
    references = [encode(transcripts.tokenizer, answer(p.code), is_start=False) for p in problems if p.code]
    return TokenLengths(
        longest_prompt=ranked[-1][0],
        longest_task=ranked[-1][1],
        median_prompt=ranked[len(ranked) // 2][0],
        instruction=len(instruction),
        reference=max(map(len, references), default=0),
    )

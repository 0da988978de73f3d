"""Lengths of a run's prompts and references in tokens, measured with its tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.problems import Problem
from cocos.prompts import REPEATED, PromptProtocol, answer, feedback_message
from cocos.rollout import PAPER_RULES
from cocos.trajectories import Rules


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
        instruction: The message between two turns, with the longest feedback (`longest_feedback`).
        reference: Longest reference solution with [DONE]; 0 if no problem has one.

    """

    longest_prompt: int
    longest_task: str
    median_prompt: int
    instruction: int
    reference: int


def measure_lengths(
    problems: Sequence[Problem],
    transcripts: TokenTranscripts,
    protocol: PromptProtocol,
    rules: Rules = PAPER_RULES,
) -> TokenLengths:
    """Tokenize the first prompt and the reference of every problem and return their lengths."""
    prompts = [transcripts.start(protocol.first_turn(p), protocol.is_chat) for p in problems]
    ranked = sorted(zip(map(len, prompts), (p.task_id for p in problems), strict=True))
    message = protocol.later_turn(feedback=longest_feedback(problems, rules))
    instruction = transcripts.extend([], Completion((), ""), message, protocol.is_chat)
    references = [encode(transcripts.tokenizer, answer(p.code), is_start=False) for p in problems if p.code]
    return TokenLengths(
        longest_prompt=ranked[-1][0],
        longest_task=ranked[-1][1],
        median_prompt=ranked[len(ranked) // 2][0],
        instruction=len(instruction),
        reference=max(map(len, references), default=0),
    )


def longest_feedback(problems: Sequence[Problem], rules: Rules) -> str:
    """Return the longest feedback on a program that fails every visible test; "" without feedback.

    Expected and actual values are assumed to be as long as their test, since the programs are not known.
    """
    failing = (
        [Verdict(Status.FAILED, expected=test, actual=test) for test in problem.test_list]
        for problem in problems
    )
    told = [
        feedback_message(
            rules.feedback,
            problem,
            ExecutionResult(tuple(verdicts)),
            rules.feedback_chars,
            rules.feedback_failures,
        )
        for problem, verdicts in zip(problems, failing, strict=True)
    ]
    parts = [max(told, key=len), REPEATED if rules.on_repeat == "tell" else ""]
    return "\n\n".join(filter(None, parts))

"""Lengths of the data in tokens, and of the longest transcript that a run can make.

The tokenizer is loaded, the model is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import AutoConfig, PreTrainedTokenizerBase

from cocos.assembly.data import TrainingData
from cocos.assembly.rules import make_rules
from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.generation.adapters import base_model
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.problems import Problem
from cocos.prompts import FEEDBACK_CHARS, REPEATED, PromptProtocol, answer, feedback_message
from cocos.rollout import PAPER_RULES
from cocos.trajectories import Rules

MAX_TOKENS_PER_CHAR = 4  # the bytes of a character in UTF-8, if the vocabulary has nothing longer


@dataclass(frozen=True)
class TokenLengths:
    """Lengths of the data in tokens."""

    longest_prompt: int  # longest first prompt
    longest_task: str  # id of the problem with the longest first prompt
    median_prompt: int  # median of the first prompts
    instruction: int  # the message between two turns, with the longest feedback (`longest_feedback`)
    reference: int  # longest reference solution with [DONE]; 0 if no problem has one


def measure_lengths(
    problems: Sequence[Problem],
    transcripts: TokenTranscripts,
    protocol: PromptProtocol,
    rules: Rules = PAPER_RULES,
) -> TokenLengths:
    """Tokenize the first prompt and the reference of every problem and return their lengths."""
    prompts = [transcripts.start(protocol.first_turn(p), protocol.is_chat, protocol.system) for p in problems]
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
    messages = [
        feedback_message(rules.feedback, problem, ExecutionResult(tuple(verdicts)), rules.feedback_failures)
        for problem, verdicts in zip(problems, failing, strict=True)
    ]
    parts = [max(messages, key=len), REPEATED if rules.on_repeat == "tell" else ""]
    return "\n\n".join(filter(None, parts))


def longest_transcript(args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return a number of tokens that no transcript of a run exceeds, or the model's context if that is less.

    A quoted test and the reason why it fails have `FEEDBACK_CHARS` characters each at most.

    Example: a first prompt of 100 tokens, three completions of 50, two instructions of 10 and no feedback are
    at most 100 + 3 * 50 + 2 * 10 = 270.
    """
    transcripts = TokenTranscripts(tokenizer, {tokenizer.eos_token_id})
    lengths = measure_lengths(data.problems + data.dev_problems, transcripts, data.protocol)
    given = max((len(transcripts.quote(text).token_ids) for p in data.prompts for text in p.given), default=0)
    rules = make_rules(args, [args.temperature])
    told = 2 * FEEDBACK_CHARS * rules.feedback_failures if rules.feedback == "error" else 0
    told += len(longest_feedback(data.problems, rules))
    between = lengths.instruction + MAX_TOKENS_PER_CHAR * told
    longest = lengths.longest_prompt + (args.num_turns - 1) * between
    longest += args.num_turns * max(args.max_completion_length, given)
    config = AutoConfig.from_pretrained(
        base_model(args.model_name_or_path),
        revision=args.model_revision,
        trust_remote_code=args.trust_remote_code,
    )
    return int(min(longest, config.get_text_config().max_position_embeddings))

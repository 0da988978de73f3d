"""Lengths of the data in tokens, and of the longest prompts that a run can make.

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
from cocos.generation.round_trip import prompt_warning
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.problems import Problem
from cocos.prompts import FEEDBACK_CHARS, REPEATED, PromptProtocol, answer, feedback_message
from cocos.trajectories import Rules

# No quoted value is longer: a private character is in no vocabulary, so that each takes its 4 bytes.
LONGEST_VALUE = "\U0010abcd" * FEEDBACK_CHARS


@dataclass(frozen=True)
class TokenLengths:
    """Lengths of the data in tokens."""

    longest_prompt: int  # longest first prompt
    longest_task: str  # id of the problem with the longest first prompt
    median_prompt: int  # median of the first prompts
    reference: int  # longest reference solution with [DONE]; 0 if no problem has one


def measure_lengths(
    problems: Sequence[Problem], transcripts: TokenTranscripts, protocol: PromptProtocol
) -> TokenLengths:
    """Tokenize the first prompt and the reference of every problem and return their lengths."""
    prompts = [transcripts.start(protocol.first_turn(p), protocol.is_chat, protocol.system) for p in problems]
    ranked = sorted(zip(map(len, prompts), (p.task_id for p in problems), strict=True))
    references = [encode(transcripts.tokenizer, answer(p.code), is_start=False) for p in problems if p.code]
    return TokenLengths(
        longest_prompt=ranked[-1][0],
        longest_task=ranked[-1][1],
        median_prompt=ranked[len(ranked) // 2][0],
        reference=max(map(len, references), default=0),
    )


def longest_prompts(
    problems: Sequence[Problem],
    transcripts: TokenTranscripts,
    protocol: PromptProtocol,
    rules: Rules,
    num_turns: int,
    max_answer: int,
    value: str = "",
) -> list[int]:
    """Return the number of tokens of the longest prompt of each turn, if every program fails every test.

    Args:
        max_answer: Number of tokens of every answer.
        value: What programs return; "": a value as long as the test, because the programs are not known.

    Example: a first prompt of 100 tokens, answers of 50 and messages of 10 between them make transcripts of
    100, 160 and 220 tokens.

    """

    def longest_fresh(turn: int) -> int:
        shown = (
            rules.shown(p, [_failure(p, value, n) for n in range(1, turn)], protocol.prompt_tests)
            for p in problems
        )
        messages = (protocol.first_turn(problem, failed, turn) for problem, failed in shown)
        return max(len(transcripts.start(m, protocol.is_chat, protocol.system)) for m in messages)

    if rules.carry.starts_anew:
        return [longest_fresh(turn) for turn in range(1, num_turns + 1)]
    told = max((_feedback(problem, value, rules) for problem in problems), key=len)
    message = transcripts.extend([], Completion((), ""), protocol.later_turn(feedback=told), protocol.is_chat)
    first = longest_fresh(1)
    return [first + turn * (max_answer + len(message)) for turn in range(num_turns)]


def _failure(problem: Problem, value: str, number: int) -> ExecutionResult:
    """Return the result of a program that fails every visible test, unlike the one with another number."""
    values = [value or test for test in problem.test_list]
    return ExecutionResult(tuple(Verdict(Status.FAILED, expected=v, actual=f"{number} {v}") for v in values))


def _feedback(problem: Problem, value: str, rules: Rules) -> str:
    """Return the feedback on a program that fails every visible test and is the one before; "" for none."""
    result = _failure(problem, value, 1)
    told = feedback_message(rules.feedback, problem, result, rules.feedback_failures)
    return "\n\n".join(filter(None, [told, REPEATED if rules.on_repeat == "tell" else ""]))


def check_prompts(
    problems: Sequence[Problem],
    protocol: PromptProtocol,
    tokenizer: PreTrainedTokenizerBase,
    model: str,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> str:
    """Return a warning about prompts and references that the tokenizer changes; "" for none.

    Raises:
        ValueError: A first prompt is longer than the context of the model, or see `prompt_warning`.

    """
    transcripts = TokenTranscripts(tokenizer, {tokenizer.eos_token_id})
    warning = prompt_warning(problems, transcripts, protocol)
    lengths = measure_lengths(problems, transcripts, protocol)
    config = AutoConfig.from_pretrained(
        base_model(model), revision=revision, trust_remote_code=trust_remote_code
    )
    context = getattr(config.get_text_config(), "max_position_embeddings", None)
    if context and lengths.longest_prompt > context:
        raise ValueError(
            f"problem {lengths.longest_task}: its prompt has {lengths.longest_prompt} tokens, more than the "
            f"model's context of {context}; shorten it (--few_shot_examples, --prompt_tests), or leave the "
            "problem out"
        )
    return warning


def longest_transcript(args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the most tokens of a prompt and its answer, or the model's context if that is less."""
    transcripts = TokenTranscripts(tokenizer, {tokenizer.eos_token_id})
    problems = data.problems + data.dev_problems
    given = max((len(transcripts.quote(text).token_ids) for p in data.prompts for text in p.given), default=0)
    answer = max(args.max_completion_length, given)
    rules = make_rules(args, [args.temperature], None, problems, args.prompt_tests)
    turns = args.num_turns
    prompts_T = longest_prompts(problems, transcripts, data.protocol, rules, turns, answer, LONGEST_VALUE)
    longest = prompts_T[-1] + answer
    config = AutoConfig.from_pretrained(
        base_model(args.model_name_or_path),
        revision=args.model_revision,
        trust_remote_code=args.trust_remote_code,
    )
    return int(min(longest, config.get_text_config().max_position_embeddings))

"""Lengths of the data in tokens, and of the longest prompts that a run can make.

The tokenizer is loaded, the model is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from transformers import AutoConfig, PreTrainedTokenizerBase

from cocos.assembly.data import TrainingData
from cocos.assembly.rules import make_rules
from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.generation.adapters import base_model
from cocos.generation.interface import check_room
from cocos.generation.round_trip import prompt_warning
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.problems import Problem
from cocos.prompts import FEEDBACK_CHARS, REPEATED, PromptProtocol, answer, feedback_message
from cocos.trajectories import Rules

# No quoted value, message or line is longer: a private character takes its 4 bytes.
LONGEST_VALUE = "\U0010abcd" * FEEDBACK_CHARS


@dataclass(frozen=True)
class TokenLengths:
    """Lengths of the data in tokens."""

    longest_prompt: int  # longest first prompt
    longest_task: str  # id of the problem with the longest first prompt
    median_prompt: int  # median of the first prompts
    reference: int  # longest reference solution with [DONE]; 0 if no problem has one
    vocabulary: int  # tokens of the tokenizer


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
        vocabulary=len(transcripts.tokenizer),
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
        value: What programs return, raise and end at; "": they return a value as long as the test.

    Example: a first prompt of 100 tokens, answers of 50 and messages of 10 between them make transcripts of
    100, 160 and 220 tokens.

    """

    def longest_fresh(turn: int) -> int:
        shown = (rules.shown(p, _failures(p, value, range(1, turn)), protocol.prompt_tests) for p in problems)
        messages = (protocol.first_turn(problem, failed, turn) for problem, failed in shown)
        return max(len(transcripts.start(m, protocol.is_chat, protocol.system)) for m in messages)

    if rules.carry.starts_anew:
        return [longest_fresh(turn) for turn in range(1, num_turns + 1)]
    repeated = REPEATED if rules.on_repeat == "tell" else ""
    told = {
        "\n\n".join(filter(None, [feedback_message(rules.feedback, p, r, rules.feedback_failures), repeated]))
        for p in problems
        for r in _failures(p, value, [1])
    } or {repeated}  # without visible tests
    messages = (protocol.later_turn(is_closed=False, feedback=text) for text in told)
    longest = max(len(transcripts.extend([], Completion((), ""), m, protocol.is_chat)) for m in messages)
    return [longest_fresh(1) + turn * (max_answer + longest) for turn in range(num_turns)]


def _failures(problem: Problem, value: str, numbers: Sequence[int]) -> list[ExecutionResult]:
    """Return results of programs that fail every visible test, each unlike that with another number.

    With a value, there are as many of programs that end before any test.
    """
    values = [value or test for test in problem.test_list]
    failed = [[Verdict(Status.FAILED, expected=v, actual=f"{n} {v}") for v in values] for n in numbers]
    ends = [Verdict(Status.ERROR, message=f"{n} {value}", ended_at=value) for n in numbers if value]
    return [ExecutionResult(tuple(v)) for v in [*failed, *([end] * len(values) for end in ends)] if v]


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
    check_room(lengths.longest_task, lengths.longest_prompt, _context(model, revision, trust_remote_code))
    return warning


def _context(model: str, revision: str | None, trust_remote_code: bool) -> float:
    """Return the longest sequence of a model, in tokens; infinity if its configuration does not say."""
    config = AutoConfig.from_pretrained(
        base_model(model), revision=revision, trust_remote_code=trust_remote_code
    )
    return getattr(config.get_text_config(), "max_position_embeddings", None) or inf


def longest_transcript(args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the most tokens of a prompt and its answer, or the model's context if that is less."""
    transcripts = TokenTranscripts(tokenizer, {tokenizer.eos_token_id})
    problems = data.problems + data.dev_problems
    given = max((len(transcripts.quote(text).token_ids) for p in data.prompts for text in p.given), default=0)
    answer = max(args.max_completion_length, given)
    rules = make_rules(args, [args.temperature], None, problems, args.prompt_tests)
    turns = args.num_turns
    prompts_T = longest_prompts(problems, transcripts, data.protocol, rules, turns, answer, LONGEST_VALUE)
    context = _context(args.model_name_or_path, args.model_revision, args.trust_remote_code)
    return int(min(prompts_T[-1] + answer, context))

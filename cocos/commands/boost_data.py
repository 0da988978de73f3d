"""Make Boost rows from a model's own first attempts and their corrections.

    cocos boost-data --model_name_or_path MODEL --train_data problems.jsonl --output rows.jsonl

Samples attempts at every problem, executes them, and writes two rows per attempt: the attempt (turn 1) and
its correction (turn 2). A right attempt is its own correction. The correction of a wrong one is the problem's
reference or a program of the model that passes every test; see --corrections. Attempts without a correction
are left out and counted. With --reference_attempts, references are attempts too, and with --planted_bugs,
right attempts in which a bug was planted. Each batch of attempts is saved in OUTPUT.attempts.jsonl, so that
the same command continues after an interruption.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

from cocos.assembly.programs import open_executor
from cocos.assembly.prompts import prompt_protocol, protocol_name
from cocos.boost.attempts import (
    Attempt,
    AttemptLog,
    planted_attempts,
    played_attempts,
    reference_attempts,
    sample_attempts,
)
from cocos.boost.rows import BoostRow, make_rows, save_rows, tokenize
from cocos.boost.turn_pairs import TurnPair, balance_pairs, make_pairs
from cocos.carry import Carry, named_carry
from cocos.commands.runner import exit_on_ctrl_c
from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.command_line import parse_options
from cocos.config.option import option_names
from cocos.dataprep.named_sets import load_problem_set, problems_file
from cocos.executor import Executor
from cocos.files.bundled import command_line
from cocos.files.run_record import sha256
from cocos.generation import Generator
from cocos.problems import Problem
from cocos.prompts import PromptProtocol, named_protocol
from cocos.trajectories import Rules

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Options that change the samples. A log of attempts made with other values cannot be continued.
SAMPLING_OPTIONS = option_names(
    BoostDataConfig, "model", "wording", "prompt", "rule", "length", "sampling", "executor"
)


def main() -> None:
    """Sample attempts, pair them with corrections, and write the rows."""
    args = parse_options(BoostDataConfig, __doc__)
    log_path = Path(f"{args.output}.attempts.jsonl")
    exit_on_ctrl_c(lambda: saved_batches(log_path))

    # These imports take seconds; --help and errors in options do not wait for them.
    from cocos.generation.tokenizer import encode, load_tokenizer

    if Path(args.output).exists() and (args.samples or not log_path.exists()):
        raise ValueError(f"--output {args.output} exists; remove it or choose another one")
    problems = load_problem_set(args.train_data)
    # Boost teaches the `cocos` format, even if the base model was sampled with another protocol.
    taught = named_protocol("cocos", prompt_tests=args.prompt_tests, has_signature=args.prompt_signature)
    rules = Rules(carry=named_carry(args.carry), feedback=args.feedback)
    tokenizer = load_tokenizer(
        args.model_name_or_path, template_variables=args.template_variables, chat_template=args.chat_template
    )
    sampled_with = prompt_protocol(args)
    if not args.samples:
        warn_about_prompts(args, problems, sampled_with, tokenizer)
    with open_executor(args, problems) as executor:
        if args.samples:
            problems, attempts = read_attempts(args, problems, taught, rules)
        else:
            log = AttemptLog(log_path, sampling_record(args))
            sample_missing_attempts(args, problems, sampled_with, tokenizer, executor, log, rules)
            attempts = [attempt for batch in log.batches for attempt in batch]
        uses_references = args.corrections in ("any", "reference")
        references = reference_attempts(problems, executor, taught, rules) if uses_references else []
        if args.planted_bugs:
            count = args.planted_bugs
            attempts += planted_attempts(problems, attempts, count, executor, taught, rules, args.seed)
    attempts += references if args.reference_attempts else []
    verified = {reference.task_id for reference in references}
    pairs = make_pairs(problems, attempts, verified, args.corrections)
    pairs = balance_pairs(pairs, args.pairs_per_problem, args.keep_share, args.seed)
    rows = [row for pair in pairs for row in chosen_rows(args, pair, taught, rules.carry)]
    if not rows:
        raise ValueError(
            f"none of {len(attempts)} attempts is right or has a correction; "
            "give problems with references, more --num_samples or --num_corrections"
        )
    save_rows(rows, args.output)
    lengths = [len(tokenize(row, partial(encode, tokenizer))["input_ids"]) for row in rows]
    print_summary(args, attempts, pairs, lengths)


def warn_about_prompts(
    args: BoostDataConfig,
    problems: Sequence[Problem],
    protocol: PromptProtocol,
    tokenizer: "PreTrainedTokenizerBase",
) -> None:
    """Warn about prompts and references that the tokenizer changes."""
    from cocos.planning.lengths import check_prompts

    if warning := check_prompts(problems, protocol, tokenizer, args.model_name_or_path):
        print(f"warning: {warning}", file=sys.stderr)


def read_attempts(
    args: BoostDataConfig, problems: Sequence[Problem], taught: PromptProtocol, rules: Rules
) -> tuple[list[Problem], list[Attempt]]:
    """Return the problems as the evaluations of --samples played them, and their first turns.

    References and planted bugs are then judged by the tests that were visible, as the samples are.
    """
    played = [
        pair for folder in args.samples for pair in played_attempts(Path(folder), problems, taught, rules)
    ]
    visible = {problem.task_id: problem for problem, _ in played}
    return [visible.get(problem.task_id, problem) for problem in problems], [attempt for _, attempt in played]


def sampling_record(args: BoostDataConfig) -> dict[str, object]:
    """Return what the attempts of a log depend on."""
    made_with = {name: getattr(args, name) for name in SAMPLING_OPTIONS} | {"protocol": protocol_name(args)}
    for name in ("train_data", "few_shot_data"):  # the rows, whatever the name of their file
        if file := getattr(args, name):
            made_with[name] = sha256(problems_file(file))
    return made_with


def chosen_rows(
    args: BoostDataConfig, pair: TurnPair, taught: PromptProtocol, carry: Carry
) -> Iterator[BoostRow]:
    """Yield those rows of a pair that a run would play, and that --first_turns wants."""
    attempt = pair.attempt
    first, second = make_rows(
        pair.problem, attempt.code, pair.correction, taught, attempt.feedback, dict(attempt.failed), carry
    )
    if args.first_turns == "all" or attempt.is_right:
        yield first
    # Without a transcript, the second turn of a right attempt would be its first.
    if not (attempt.passes_visible and (args.early_stop or carry.starts_anew)):
        yield second


def saved_batches(log_path: Path) -> str:
    """Return what a run has saved and how to continue it, for the line after Ctrl-C."""
    num_lines = log_path.read_bytes().count(b"\n") if log_path.exists() else 0
    if num_lines < 2:  # the first line is the header
        return "no batch of attempts was finished; start again"
    return f"{num_lines - 1} batches are saved in {log_path}; continue with the same command"


def sample_missing_attempts(
    args: BoostDataConfig,
    problems: Sequence[Problem],
    sampled_with: PromptProtocol,
    tokenizer: "PreTrainedTokenizerBase",
    executor: Executor,
    log: AttemptLog,
    rules: Rules,
) -> None:
    """Sample the batches that the log lacks, and append each of them."""
    starts, done = range(0, len(problems), args.batch_size), len(log.batches)
    print(
        f"{len(problems)} problems x {args.num_samples} attempts at temperature {args.temperature}; executor "
        f"isolation: {executor.isolation}; {done} of {len(starts)} batches are in {log.path}"
    )
    if done == len(starts):
        return
    from transformers import set_seed

    from cocos.generation.progress import BatchBar

    generator = load_generator(args, tokenizer)
    saved, total = sum(map(len, log.batches)), len(problems) * args.num_samples
    of_batch = args.batch_size * args.num_samples
    with BatchBar(of_batch, desc="attempts", unit=" attempts", initial=saved, total=total) as progress:
        generator.progress = progress
        for start in starts[done:]:
            set_seed(args.seed + start)  # per batch, so that a continued run samples the same
            attempts = sample_attempts(
                problems[start : start + args.batch_size],
                generator,
                executor,
                sampled_with,
                num_samples=args.num_samples,
                num_corrections=args.num_corrections,
                temperature=args.temperature,
                rules=rules,
                max_infra_share=args.max_infra_share,
            )
            log.append(attempts)
            progress.finish_batch(len(attempts))


def load_generator(args: BoostDataConfig, tokenizer: "PreTrainedTokenizerBase") -> Generator:
    """Load the model, and print what is used."""
    from cocos.generation.huggingface import HuggingFaceGenerator, load_model, model_line

    model = load_model(args.model_name_or_path)
    print(model_line(args.model_name_or_path, model))
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length)


def next_command(args: BoostDataConfig) -> str:
    """Return the command that trains on the rows."""
    folder = Path(args.output).with_suffix("")
    return command_line(
        *("boost", "--model_name_or_path", args.model_name_or_path, "--train_data", args.output),
        *("--output_dir", folder.with_name(f"{folder.name}_boost")),
    )


def print_summary(
    args: BoostDataConfig, attempts: Sequence[Attempt], pairs: Sequence[TurnPair], lengths: Sequence[int]
) -> None:
    """Print how many attempts became rows, the rows' lengths in tokens, and the next step."""
    percentiles = quantiles(lengths, n=20, method="inclusive")
    print(
        f"{len(attempts)} attempts, {sum(bool(attempt.is_right) for attempt in attempts)} right; "
        f"{len(lengths)} rows written to {args.output}; {len(attempts) - len(pairs)} attempts left out\n"
        f"second turns: {sum(pair.is_kept for pair in pairs)} keep a right attempt, "
        f"{sum(not pair.is_kept for pair in pairs)} correct a wrong one; "
        f"{len({pair.problem.task_id for pair in pairs})} problems\n"
        f"tokens per row: median {percentiles[9]:.0f}, 95th percentile {percentiles[18]:.0f}, "
        f"longest {max(lengths)}\n"
        f"next: {next_command(args)}"
    )

"""Boost rows: the model's own first attempts, and what they should become.

    python scripts/make_boost_data.py --model_name_or_path MODEL --train_data problems.jsonl \\
        --output rows.jsonl

Samples attempts at every problem, runs them, and writes two rows per attempt: the attempt itself (turn 1) and
its correction (turn 2). The correction of a right attempt is the attempt; of a wrong one, the problem's
reference where that passes the tests, or a program of the model's own that does (`--corrections`,
`--num_corrections`). An attempt without a correction is left out and counted. Attempts are kept beside the
output in OUTPUT.attempts.jsonl as they are made: the same command continues where it was interrupted.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs from a clone

from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, set_seed

from boost.attempts import Attempt, AttemptLog, attempt
from boost.data import BoostRow, boost_rows, save_rows, tokenize
from boost.turn_pairs import Corrections, Pair, balance, pair
from cocos.config import ExecutorOptions, PromptOptions, open_executor, prompt_protocol
from cocos.config.command_line import parse, run
from cocos.executor import Executor
from cocos.files.run_record import sha256
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import encode, load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import protocol
from cocos.trajectories import as_program

# Options that decide what is sampled: a log of attempts that were made otherwise is not continued.
DECIDING = (
    "model_name_or_path", "num_samples", "num_corrections", "temperature", "max_completion_length",
    "batch_size", "seed", "protocol",
)  # fmt: skip


@dataclass
class BoostDataConfig(PromptOptions, ExecutorOptions):
    """Options of make_boost_data.py."""

    model_name_or_path: str = field(
        default="", metadata={"help": "Model whose attempts are corrected: the base model."}
    )
    train_data: str = field(
        default="", metadata={"help": "MBPP-format problems; references are used where they are."}
    )
    output: str = field(
        default="",
        metadata={
            "help": "Rows for boost_train.py: JSON lines, or the README's JSON list under a name in .json."
        },
    )
    num_samples: int = field(default=2, metadata={"help": "Attempts per problem."})
    corrections: Corrections = field(
        default="any",
        metadata={
            "help": "What a wrong attempt becomes: `reference`, the model's `own` verified program, or "
            "`any`: the reference where there is one."
        },
    )
    num_corrections: int = field(
        default=0,
        metadata={"help": "Second turns sampled after each wrong attempt; those that pass are corrections."},
    )
    pairs_per_problem: int | None = field(
        default=None, metadata={"help": "Attempts of one problem that become rows, at most; all by default."}
    )
    keep_share: float | None = field(
        default=None,
        metadata={
            "help": "Share of second turns that keep a right attempt, in [0, 1]; the more frequent kind is "
            "thinned out to reach it. As they come by default."
        },
    )
    temperature: float = field(default=0.9, metadata={"help": "Sampling temperature of the attempts."})
    max_completion_length: int = field(default=512, metadata={"help": "New tokens per attempt at most."})
    batch_size: int = field(default=32, metadata={"help": "Problems per batch."})
    seed: int = field(default=42, metadata={"help": "Seed of the sampling."})

    def __post_init__(self) -> None:
        for name in ("model_name_or_path", "train_data", "output"):
            if not getattr(self, name):
                raise ValueError(f"--{name} is missing; see --help")
        for name in ("num_samples", "batch_size", "max_completion_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} is {getattr(self, name)}; give 1 or more")
        if self.num_corrections < 0 or (self.pairs_per_problem is not None and self.pairs_per_problem < 1):
            raise ValueError("--num_corrections is 0 or more, --pairs_per_problem 1 or more")
        if self.num_corrections and self.corrections == "reference":
            raise ValueError(
                "--num_corrections has no effect with --corrections reference; choose own or any"
            )
        if self.keep_share is not None and not 0 <= self.keep_share <= 1:
            raise ValueError(f"--keep_share is {self.keep_share}; it must lie in [0, 1]")


def main() -> None:
    """Problems -> sampled attempts -> pairs -> rows."""
    (args,) = parse((BoostDataConfig,), __doc__)
    problems = load_problems(args.train_data)
    tokenizer = load_tokenizer(args.model_name_or_path)
    with open_executor(args) as executor:
        attempts = sample(args, problems, tokenizer, executor)
        verified = verify(problems, executor) if args.corrections != "own" else set()
    pairs = balance(
        pair(problems, attempts, verified, args.corrections),
        args.pairs_per_problem,
        args.keep_share,
        args.seed,
    )
    taught = protocol("cocos")  # the format to teach, however the base was asked
    rows = [row for p in pairs for row in boost_rows(p.problem, p.attempt, p.correction, taught)]
    if not rows:
        raise ValueError(
            f"none of {len(attempts)} attempts is right or has a correction; "
            "give problems with references, more --num_samples or --num_corrections"
        )
    save_rows(rows, args.output)
    report(args, attempts, pairs, rows, tokenizer)


def sample(
    args: BoostDataConfig, problems: Sequence[Problem], tokenizer: PreTrainedTokenizerBase, executor: Executor
) -> list[Attempt]:
    """Every attempt, in the order of the problems; batches that the log already holds are not made again."""
    facts = {name: getattr(args, name) for name in DECIDING} | {"train_data": sha256(args.train_data)}
    log = AttemptLog(Path(f"{args.output}.attempts.jsonl"), facts)
    starts = range(0, len(problems), args.batch_size)
    if len(log.batches) < len(starts):
        model = load_model(args.model_name_or_path)
        generator = HuggingFaceGenerator(model, tokenizer, args.max_completion_length)
        asked_in = prompt_protocol(args)
        done = len(log.batches)
        for start in tqdm(starts[done:], desc="attempts", unit=" batches", initial=done, total=len(starts)):
            set_seed(args.seed + start)  # so that a continued run samples what an unbroken one does
            batch = problems[start : start + args.batch_size]
            counts = (args.num_samples, args.num_corrections, args.temperature)
            log.append(attempt(batch, generator, executor, asked_in, *counts, args.max_infra_share))
    return [one for batch in log.batches for one in batch]


def verify(problems: Sequence[Problem], executor: Executor) -> set[str]:
    """Ids of the problems whose reference passes every test: no other reference is taught."""
    solved = [problem for problem in problems if problem.code.strip()]
    results = executor.run([as_program(problem, problem.code) for problem in solved])
    return {problem.task_id for problem, result in zip(solved, results, strict=True) if result.all_passed}


def report(
    args: BoostDataConfig,
    attempts: Sequence[Attempt],
    pairs: Sequence[Pair],
    rows: Sequence[BoostRow],
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    """Say what became of the attempts, and how long the rows are."""
    lengths = [len(tokenize(row, partial(encode, tokenizer))["input_ids"]) for row in rows]
    percentiles = quantiles(lengths, n=20, method="inclusive")
    print(
        f"{len(attempts)} attempts, {sum(bool(one.is_right) for one in attempts)} right; "
        f"{len(rows)} rows written to {args.output}; {len(attempts) - len(pairs)} attempts left out\n"
        f"second turns: {sum(p.is_kept for p in pairs)} keep a right attempt, "
        f"{sum(not p.is_kept for p in pairs)} correct a wrong one; "
        f"{len({p.problem.task_id for p in pairs})} problems\n"
        f"tokens per row: median {percentiles[9]:.0f}, 95th percentile {percentiles[18]:.0f}, "
        f"longest {max(lengths)}"
    )


if __name__ == "__main__":
    run(main)

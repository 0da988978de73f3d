"""Boost rows: the model's own first attempts, and what they should become.

    python scripts/make_boost_data.py --model_name_or_path MODEL --train_data problems.jsonl \\
        --output rows.jsonl

Samples attempts at every problem, runs them, and writes two rows per attempt: the attempt itself (turn 1) and
its correction (turn 2). The correction of a right attempt is the attempt; of a wrong one, the problem's
reference, or where there is none another attempt that passes every test. An attempt without a correction is
left out and counted.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent)
)  # so that the file runs from a clone, as documented

from tqdm import tqdm
from transformers import set_seed

from boost.data import BoostRow, boost_rows, save_rows
from cocos.cli import parse, run
from cocos.config import ExecutorOptions, PromptOptions, open_executor, prompt_protocol
from cocos.generation.huggingface import HuggingFaceGenerator, load_model, load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import PromptProtocol, protocol
from cocos.rollout import Trajectory, begin, check_executed, rollout


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
        default="", metadata={"help": "JSON lines of prompt and completion, for boost_train.py."}
    )
    num_samples: int = field(default=2, metadata={"help": "Attempts per problem."})
    temperature: float = field(default=0.9, metadata={"help": "Sampling temperature of the attempts."})
    max_completion_length: int = field(default=512, metadata={"help": "New tokens per attempt at most."})
    batch_size: int = field(default=32, metadata={"help": "Problems per batch."})
    seed: int = field(default=42, metadata={"help": "Seed of the sampling."})

    def __post_init__(self) -> None:
        for name in ("model_name_or_path", "train_data", "output"):
            if not getattr(self, name):
                raise ValueError(f"--{name} is missing; see --help")


def main() -> None:
    """Problems -> sampled attempts -> rows."""
    (args,) = parse((BoostDataConfig,), __doc__)
    problems = load_problems(args.train_data)
    asked_in = prompt_protocol(args)
    set_seed(args.seed)
    tokenizer = load_tokenizer(args.model_name_or_path)
    model = load_model(args.model_name_or_path)
    generator = HuggingFaceGenerator(model, tokenizer, args.max_completion_length, args.temperature)
    attempts: list[Trajectory] = []
    with open_executor(args) as executor, tqdm(total=len(problems), desc="attempts") as bar:
        for start in range(0, len(problems), args.batch_size):
            batch = begin(problems[start : start + args.batch_size], args.num_samples)
            attempts += rollout(batch, generator, executor, asked_in, num_turns=1)
            check_executed(attempts, args.max_infra_share)
            bar.update(args.batch_size)
    rows = list(correct(attempts, protocol("cocos")))  # the format to teach, however the base was asked
    save_rows(rows, args.output)
    right = sum(attempt.turns[0].result.all_passed for attempt in attempts)
    print(
        f"{len(attempts)} attempts, {right} right; {len(rows)} rows written to {args.output}; "
        f"{len(attempts) - len(rows) // 2} attempts left out for want of a correction"
    )


def correct(attempts: Sequence[Trajectory], taught: PromptProtocol) -> Iterator[BoostRow]:
    """The rows of every attempt that is right or has a correction."""
    right: dict[str, list[str]] = defaultdict(list)
    for attempt in attempts:
        if attempt.turns[0].result.all_passed:
            right[attempt.problem.task_id].append(attempt.turns[0].code)
    for attempt in attempts:
        code, problem = attempt.turns[0].code, attempt.problem
        known = [problem.code] if problem.code.strip() else right[problem.task_id]
        correction = code if code in right[problem.task_id] else next(iter(known), None)
        if code.strip() and correction is not None:
            yield from boost_rows(problem, code, correction, taught)


if __name__ == "__main__":
    run(main)

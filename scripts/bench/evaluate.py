"""Seconds of generation for problems over turns, beside a plain script that calls `model.generate` afresh in
every turn.

    python scripts/bench/evaluate.py --output_file build/evaluate.json

Both decode greedily in batches of the same problems, stop at the same end-of-sequence ids and at [DONE], and
must write the same ids. Ours carries keys and values from turn to turn and lets rows that ended leave the
batch. No program is executed: that time would be the same for both. Rounds alternate; the figures are
medians, so that the ratio comes from one run on one machine.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from transformers import GenerationConfig, PreTrainedModel

from cocos.generation import Completion, Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids, load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import DONE, PromptProtocol, protocol


class PlainGenerator(TokenTranscripts):
    """What a short script does: pad a batch, call `model.generate`, cut the answers."""

    def __init__(self, model: PreTrainedModel, tokenizer, max_completion_length: int):
        super().__init__(tokenizer, eos_token_ids(model.generation_config, tokenizer))
        self.model = model
        self.config = GenerationConfig(
            max_new_tokens=max_completion_length,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=sorted(self.eos_ids),
            stop_strings=[DONE],
        )

    def generate(self, prompts: Sequence[Sequence[int]], temperature, seeds=None) -> list[Completion]:
        batch = self.tokenizer.pad({"input_ids": [list(p) for p in prompts]}, return_tensors="pt")
        ids = self.model.generate(
            **batch.to(self.model.device), generation_config=self.config, tokenizer=self.tokenizer
        )
        return [self.completion(row, 0.0) for row in ids[:, batch["input_ids"].shape[1] :].tolist()]


def play(
    generator: Generator, problems: Sequence[Problem], words: PromptProtocol, num_turns: int, batch_size: int
) -> list[list[Completion]]:
    """The completions of every turn of every problem, batch by batch."""
    played = []
    for start in range(0, len(problems), batch_size):
        prompts = [generator.start(words.first_turn(p), False) for p in problems[start : start + batch_size]]
        turns = []
        for turn in range(num_turns):
            turns.append(generator.generate(prompts, temperature=0.0))
            if turn + 1 < num_turns:
                message = [words.later_turn(DONE in c.text) for c in turns[-1]]
                prompts = [
                    generator.extend(*parts, False) for parts in zip(prompts, turns[-1], message, strict=True)
                ]
        played += zip(*turns, strict=True)
    return played


def main() -> None:
    """Both, in turn, for some rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model_name_or_path", default="data/toy/base")
    parser.add_argument("--data", nargs="+", default=["data/toy/test.jsonl", "data/toy/dev.jsonl"])
    parser.add_argument("--num_problems", type=int, default=500, help="taken in order, again where they end")
    parser.add_argument("--num_turns", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--max_completion_length", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output_file", help="the figures as JSON")
    args = parser.parse_args()

    tokenizer, model = load_tokenizer(args.model_name_or_path), load_model(args.model_name_or_path)
    problems = list(islice(cycle(p for path in args.data for p in load_problems(path)), args.num_problems))
    sizes = (protocol("cocos"), args.num_turns, args.batch_size)
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(args.rounds):
        answers = {}
        for name in seconds:
            generator = (
                HuggingFaceGenerator(model, tokenizer, args.max_completion_length, args.batch_size)
                if name == "ours"
                else PlainGenerator(model, tokenizer, args.max_completion_length)
            )
            began = time.perf_counter()
            with torch.inference_mode():
                played = play(generator, problems, *sizes)
            seconds[name].append(time.perf_counter() - began)
            answers[name] = [[c.token_ids for c in turns] for turns in played]
    differ = sum(a != b for a, b in zip(*answers.values(), strict=True))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    figures = {
        "command": " ".join(sys.argv),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, {model.device}, {model.dtype}",
        "seconds": seconds,
        "ours_s": medians["ours"],
        "plain_s": medians["plain"],
        "ratio": medians["ours"] / medians["plain"],
        "tokens": sum(len(ids) for turns in answers["ours"] for ids in turns),
        "trajectories_that_differ": differ,
    }
    print(json.dumps(figures, indent=2))
    if args.output_file:
        Path(args.output_file).parent.mkdir(parents=True, exist_ok=True)
        Path(args.output_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

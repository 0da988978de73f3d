r"""Benchmark of generation over turns, compared with plain calls of `model.generate`.

    python scripts/bench/generation.py --output_file build/generation.json

Both decode greedily in batches of the same problems and should generate the same ids; the report counts the
trajectories that differ. No program is executed, because that would take the same time in both. The two
alternate over the rounds, so that a change of the machine's load affects both. Medians are reported, of wall
time and of the processor time of this process, which other programs on the machine affect less.

The real model (make real-model), on 20 problems of MBPP:

    python scripts/bench/generation.py --model_name_or_path models/SmolLM2-135M-Instruct --protocol chat \
        --data data/public/mbpp/test.jsonl --num_problems 20 --batch_size 20 --max_completion_length 160
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

import torch
from transformers import GenerationConfig, PreTrainedModel

from cocos.generation import Completion, Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids, load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import DONE, PromptProtocol, named_protocol


class PlainGenerator(TokenTranscripts):
    """Generator of a short script: pads a batch, calls `model.generate`, and truncates the completions."""

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

    def generate(self, prompts: Sequence[Sequence[int]], temperature: float, seeds=None) -> list[Completion]:
        batch = self.tokenizer.pad({"input_ids": [list(p) for p in prompts]}, return_tensors="pt")
        ids = self.model.generate(
            **batch.to(self.model.device), generation_config=self.config, tokenizer=self.tokenizer
        )
        return [self.completion(row, 0.0) for row in ids[:, batch["input_ids"].shape[1] :].tolist()]


def play(
    generator: Generator, problems: Sequence[Problem], words: PromptProtocol, num_turns: int, batch_size: int
) -> list[list[Completion]]:
    """Generate the turns of all problems, batch by batch; return the completions of each problem."""
    played: list[list[Completion]] = []
    for start in range(0, len(problems), batch_size):
        prompts = [
            generator.start(words.first_turn(p), words.is_chat) for p in problems[start : start + batch_size]
        ]
        turns = []
        for turn in range(num_turns):
            turns.append(generator.generate(prompts, temperature=0.0))
            if turn + 1 < num_turns:
                messages = [words.later_turn(DONE in c.text) for c in turns[-1]]
                prompts = [
                    generator.extend(*parts, words.is_chat)
                    for parts in zip(prompts, turns[-1], messages, strict=True)
                ]
        played += map(list, zip(*turns, strict=True))
    return played


def main() -> None:
    """Run both generators for some rounds and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model_name_or_path", default="data/toy/base")
    parser.add_argument("--data", nargs="+", default=["data/toy/test.jsonl", "data/toy/dev.jsonl"])
    parser.add_argument(
        "--num_problems", type=int, default=500, help="problems to answer; repeated if the files have fewer"
    )
    parser.add_argument("--protocol", default="cocos", help="cocos, or chat for an instruct model")
    parser.add_argument("--num_turns", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--max_completion_length", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output_file", help="file for the figures, as JSON")
    args = parser.parse_args()

    tokenizer, model = load_tokenizer(args.model_name_or_path), load_model(args.model_name_or_path)
    problems = list(islice(cycle(p for path in args.data for p in load_problems(path)), args.num_problems))
    sizes = (named_protocol(args.protocol), args.num_turns, args.batch_size)
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    cpu_seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(args.rounds):
        ids = {}
        for name in seconds:
            generator = (
                HuggingFaceGenerator(model, tokenizer, args.max_completion_length, args.batch_size)
                if name == "ours"
                else PlainGenerator(model, tokenizer, args.max_completion_length)
            )
            started, cpu_started = time.perf_counter(), time.process_time()
            with torch.inference_mode():
                played = play(generator, problems, *sizes)
            seconds[name].append(time.perf_counter() - started)
            cpu_seconds[name].append(time.process_time() - cpu_started)
            ids[name] = [[c.token_ids for c in turns] for turns in played]
    differ = sum(a != b for a, b in zip(*ids.values(), strict=True))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    cpu_medians = {name: statistics.median(values) for name, values in cpu_seconds.items()}
    figures = {
        "command": " ".join(sys.argv),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, {model.device}, {model.dtype}",
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "ours_s": medians["ours"],
        "plain_s": medians["plain"],
        "ratio": medians["ours"] / medians["plain"],
        "cpu_ratio": cpu_medians["ours"] / cpu_medians["plain"],
        "tokens": sum(len(completion) for turns in ids["ours"] for completion in turns),
        "trajectories_that_differ": differ,
    }
    print(json.dumps(figures, indent=2))
    if args.output_file:
        Path(args.output_file).parent.mkdir(parents=True, exist_ok=True)
        Path(args.output_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

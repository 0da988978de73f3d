"""Generation of two turns, against calls of `model.generate` on whole transcripts in the same batches.

For the laboratory's model, and for SmolLM2-135M on 20 problems of MBPP if both are here (make real-model
MODEL=smollm2-135m; make data). No program is executed, because that would take the same time in both.
"""

from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from bench import medians, processor_seconds
from transformers import GenerationConfig

from cocos.generation import Completion, Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids, load_tokenizer
from cocos.problems import Problem, load_problems
from cocos.prompts import DONE, PromptProtocol, named_protocol

ROUNDS = 3


class PlainGenerator(TokenTranscripts):
    """Generator of a short script: pads a batch, calls `model.generate`, and truncates the completions."""

    def __init__(self, model: Any, tokenizer: Any, max_completion_length: int):
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
        ids = self.model.generate(**batch, generation_config=self.config, tokenizer=self.tokenizer)
        return [self.completion(row, 0.0) for row in ids[:, batch["input_ids"].shape[1] :].tolist()]


def play(
    generator: Generator, protocol: PromptProtocol, problems: Sequence[Problem], batch_size: int
) -> list[list[tuple[int, ...]]]:
    """Generate two turns of all problems greedily, batch by batch; return the token ids of each turn."""
    played = []
    for start in range(0, len(problems), batch_size):
        batch = problems[start : start + batch_size]
        prompts = [generator.start(protocol.first_turn(p), protocol.is_chat) for p in batch]
        first = generator.generate(prompts, temperature=0.0)
        messages = [protocol.later_turn(DONE in c.text) for c in first]
        parts = zip(prompts, first, messages, strict=True)
        second = generator.generate([generator.extend(*part, protocol.is_chat) for part in parts], 0.0)
        played += [[one.token_ids, two.token_ids] for one, two in zip(first, second, strict=True)]
    return played


def turns(
    model: str,
    data: Sequence[str],
    protocol: str,
    num_problems: int,
    batch_size: int,
    max_completion_length: int,
    rounds: int = ROUNDS,
) -> dict[str, str]:
    """Return the median processor seconds of both, which alternate over the rounds, on one thread."""
    torch.set_num_threads(1)
    tokenizer, loaded, words = load_tokenizer(model), load_model(model), named_protocol(protocol)
    problems = list(islice(cycle(p for path in data for p in load_problems(path)), num_problems))
    kinds = {"ours": HuggingFaceGenerator, "plain": PlainGenerator}
    played = {}

    def play_with(name: str) -> None:
        with torch.inference_mode():
            generator = kinds[name](loaded, tokenizer, max_completion_length)
            played[name] = play(generator, words, problems, batch_size)

    seconds = medians({name: partial(processor_seconds, partial(play_with, name)) for name in kinds}, rounds)
    ours, plain = seconds["ours"], seconds["plain"]
    return {
        "model": model,
        "problems": str(num_problems),
        "batch, new tokens": f"{batch_size}, {max_completion_length}",
        "tokens": str(sum(len(ids) for turns in played["ours"] for ids in turns)),
        "ours s": f"{ours:.1f}",
        "plain s": f"{plain:.1f}",
        "ratio": f"{ours / plain:.2f}",
        "trajectories that differ": str(sum(a != b for a, b in zip(*played.values(), strict=True))),
    }


LAB, LAB_DATA = "data/toy/base", ("data/toy/test.jsonl", "data/toy/dev.jsonl")
SMOLLM2, MBPP = "models/SmolLM2-135M-Instruct", "data/public/mbpp/test.jsonl"
PARTS = [
    partial(turns, LAB, LAB_DATA, "cocos", 500, 32, 512),
    partial(turns, LAB, LAB_DATA, "cocos", 500, 80, 24),
]
if Path(SMOLLM2).exists() and Path(MBPP).exists():
    PARTS.append(partial(turns, SMOLLM2, (MBPP,), "chat", 20, 20, 160))

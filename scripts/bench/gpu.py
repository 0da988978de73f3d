"""Measure this machine's GPU: sampling, updates of train.py, and programs beside them.

    python scripts/bench/gpu.py                                             # make gpu: build/gpu.csv
    python scripts/bench/gpu.py --model_name_or_path Qwen/Qwen2.5-Coder-0.5B-Instruct --output FILE

Without a model, one of Qwen2.5-0.5B's size with random weights is measured. It takes a few minutes. Every
figure is printed when it is known; the CSV file has figure, value and unit.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from executor import executor_rate
from transformers import Qwen2Config, Qwen2ForCausalLM

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.executor import Executor, Program
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import load_problems
from cocos.training.run_log import read_log

TOKENIZER = "data/toy/base"
UPDATES = 3  # the first one compiles kernels; the last one is measured
PROMPT = "def solve(values):\n" * 16


class Figure(NamedTuple):
    """A line of the CSV file."""

    figure: str
    value: str
    unit: str


def random_model(folder: str) -> str:
    """Save a model of Qwen2.5-0.5B's size with the laboratory's tokenizer, and return the folder."""
    tokenizer = load_tokenizer(TOKENIZER)
    config = Qwen2Config(
        vocab_size=151_936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def sampling(model: str, engine: str, num_prompts: int = 64, length: int = 256) -> Figure:
    """Measure the tokens per second of sampled completions."""
    tokenizer = load_tokenizer(model)
    if engine == "vLLM":
        from cocos.generation.vllm_offline import VLLMGenerator

        generator: Any = VLLMGenerator(model, tokenizer, [], "bfloat16", length)
    else:
        generator = HuggingFaceGenerator(load_model(model), tokenizer, length)
    prompts = [generator.start(PROMPT, is_chat=False)] * num_prompts
    generator.generate([ids[:8] for ids in prompts], 1.0)  # compiles kernels
    started = time.perf_counter()
    completions = generator.generate(prompts, 1.0)
    rate = sum(len(completion.token_ids) for completion in completions) / (time.perf_counter() - started)
    return Figure(f"sampling with {engine}, {num_prompts} prompts", f"{rate:.0f}", "tokens/s")


def updates(model: str, length: int = 256, batch: int = 32) -> list[Figure]:
    """Run updates of train.py; return the last one's seconds, and the peak memory beside the dry run's."""
    with tempfile.TemporaryDirectory() as folder:
        # Random weights never end an answer: all are truncated.
        options = f"""--train_data data/toy/train.jsonl --output_dir {folder}/run --num_turns 2
            --num_generations 8 --global_batch_size {batch} --per_device_train_batch_size 8
            --max_completion_length {length} --max_truncated_share 1 --max_steps {UPDATES}
            --logging_steps 1 --save_strategy no"""
        command = [sys.executable, "train.py", "--model_name_or_path", model, *options.split()]
        plan = subprocess.run([*command, "--dry_run"], check=True, stdout=subprocess.PIPE, text=True).stdout
        estimate = re.search(r"needs ([\d.]+) GiB per", plan)
        assert estimate, "the dry run states no memory"
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        logs = [entry["metrics"] for entry in read_log(Path(folder, "run")) if "metrics" in entry]
    peak_gib = max(log.get("peak_memory_mb", 0) for log in logs) / 1024
    seconds = [log["step_time"] for log in logs if "step_time" in log]
    return [
        Figure(f"update of {batch} trajectories, two turns", f"{seconds[-1]:.2f}", "s"),
        Figure("peak memory of the updates", f"{peak_gib:.1f}", "GiB"),
        Figure("peak memory, estimated by --dry_run", estimate[1], "GiB"),
    ]


def programs(num_programs: int = 5000) -> Figure:
    """Measure the laboratory's reference programs per second, with a worker per CPU core."""
    problems = islice(cycle(load_problems("data/toy/boost.jsonl")), num_programs)
    # The comment makes programs differ: equal ones run once.
    batch = [Program(f"{p.code}\n# {i}", p.test_list, p.setup) for i, p in enumerate(problems)]
    workers = os.cpu_count() or 1
    with Executor(workers) as executor:
        rate = executor_rate(executor, batch)
    return Figure(f"programs, {workers} workers", f"{rate:.0f}", "programs/s")


def figures(model: str) -> Iterator[Figure]:
    """Yield the figures of a model."""
    yield Figure("GPU", torch.cuda.get_device_name(), f"torch {torch.__version__}")
    yield programs()
    yield sampling(model, "transformers")
    yield from updates(model)
    if find_spec("vllm"):
        yield sampling(model, "vLLM")


def write(figures: Iterable[Figure], path: Path) -> None:
    """Print each figure when it is measured, and write it to a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(Figure._fields)
        for figure in figures:
            table.writerow(figure)
            file.flush()
            print(f"{figure.figure}: {figure.value} {figure.unit}", flush=True)


def main() -> None:
    """Parse the options, measure and write the figures."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("--model_name_or_path", help="checkpoint or hub id (default: random weights of 0.5B)")
    parser.add_argument("--output", type=Path, default=Path("build/gpu.csv"), help="CSV file of the figures")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(3, "gpu: PyTorch finds no GPU here; check nvidia-smi and the build of PyTorch\n")
    with tempfile.TemporaryDirectory() as folder:
        write(figures(args.model_name_or_path or random_model(folder)), args.output)


if __name__ == "__main__":
    run_command(main)

"""Benchmark of training updates: rows as prefix trees against plain rows, which are TRL's own.

    python scripts/bench/update.py --json build/update.json

Two parts. `passes`: old log-probabilities, loss and gradient of made-up rows, for lengths of the laboratory's
and of MBPP's rows, over group sizes and turns. `updates`: whole updates of the laboratory (rollout, programs,
log-probabilities, loss, optimizer). Each figure comes from a process of its own, which also gives its peak
memory; both layouts alternate over the rounds, and medians are reported.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tqdm import tqdm

MIB = 1024


@dataclass(frozen=True)
class Shape:
    """Sizes of a batch of made-up rows, in tokens, and of the model that computes them."""

    name: str
    num_problems: int
    num_generations: int
    num_turns: int
    prompt: int
    answer: int
    instruction: int
    model: str  # a checkpoint, or "random": 0.1B parameters' width, four layers, random weights


LAB = Shape("lab", 32, 4, 2, 70, 20, 12, "data/toy/base")
MBPP = Shape("mbpp", 2, 8, 2, 130, 65, 50, "random")
SHAPES = [
    *(replace(LAB, num_generations=k) for k in (2, 4, 8, 16)),
    *(replace(LAB, num_turns=turns) for turns in (1, 3, 4)),
    *(replace(MBPP, num_generations=k) for k in (2, 4, 8, 16)),
    *(replace(MBPP, num_turns=turns) for turns in (1, 4)),
]


def make_rows(shape: Shape, vocabulary: int) -> dict:
    """Return rows like those of training, of random tokens. Lengths vary by a third around their mean."""
    import torch
    from trl.trainer.utils import pad

    chance = torch.Generator().manual_seed(0)

    def tokens(mean: int) -> list[int]:
        low, high = mean * 2 // 3, mean * 4 // 3 + 1
        length = int(torch.randint(low, high, (1,), generator=chance))
        return torch.randint(5, vocabulary, (length,), generator=chance).tolist()

    prompts, completions = [], []
    for _ in range(shape.num_problems):
        prompt = tokens(shape.prompt)
        for _ in range(shape.num_generations):
            context = list(prompt)
            for _ in range(shape.num_turns):
                answer = tokens(shape.answer)
                prompts.append(torch.tensor(context))
                completions.append(torch.tensor(answer))
                context = context + answer + tokens(shape.instruction)
    return {
        "prompt_ids": pad(prompts, 0, "left"),
        "prompt_mask": pad([torch.ones_like(ids) for ids in prompts], 0, "left"),
        "completion_ids": pad(completions, 0, "right"),
        "completion_mask": pad([torch.ones_like(ids) for ids in completions], 0, "right"),
        "advantages": torch.linspace(-1, 1, len(prompts)),
    }


def make_trainer(folder: str, model: str, **options):
    """Return a trainer on the laboratory's problems, and its executor."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from cocos.config.trl_configs import CoCoSConfig
    from cocos.executor import Executor
    from cocos.generation.tokenizer import load_tokenizer
    from cocos.problems import load_problems
    from cocos.prompts import protocol
    from cocos.training.trainer import CoCoSTrainer
    from cocos.trajectories import begin

    if model == "random":
        config = LlamaConfig(
            vocab_size=8192,
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=4,
            num_attention_heads=9,
            num_key_value_heads=3,
            tie_word_embeddings=True,
        )
        model = LlamaForCausalLM(config)
    defaults = {"beta": 0.0, "report_to": "none", "disable_tqdm": True, "gradient_checkpointing": False}
    args = CoCoSConfig(
        output_dir=folder,
        model_name_or_path="data/toy/base",
        train_data="data/toy/train.jsonl",
        save_strategy="no",
        logging_steps=1,
        **defaults | options,
    )
    executor = Executor(2)
    prompts = begin(load_problems("data/toy/train.jsonl"))
    tokenizer = load_tokenizer("data/toy/base")
    return CoCoSTrainer(model, args, prompts, executor, protocol("cocos"), tokenizer), executor


def time_passes(shape: Shape, share: bool, rounds: int) -> dict:
    """Return seconds of old log-probabilities, and of loss and gradient, for one batch of rows."""
    with tempfile.TemporaryDirectory() as folder:
        trainer, executor = make_trainer(
            folder, shape.model, share_prefixes=share, rollout_batch_size=256, num_iterations=2
        )
    executor.close()
    trainer.model.train()
    rows = make_rows(shape, trainer.model.config.vocab_size)
    trainer.compute_loss(trainer.model, rows)  # the self-check of shared prefixes
    before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    logprobs_s, gradient_s = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        old_logps, _ = trainer.old_logps_and_kl(rows)
        logprobs_s.append(time.perf_counter() - started)
        started = time.perf_counter()
        trainer.compute_loss(trainer.model, rows | {"old_logps": old_logps}).backward()
        gradient_s.append(time.perf_counter() - started)
        trainer.model.zero_grad()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    return {
        "logprobs_s": logprobs_s,
        "gradient_s": gradient_s,
        "peak_mib": peak_mib,
        "before_mib": before_mib,
    }


def time_updates(shape: Shape, share: bool, rounds: int) -> dict:
    """Return seconds of whole updates of the laboratory."""
    with tempfile.TemporaryDirectory() as folder:
        trainer, executor = make_trainer(
            folder,
            shape.model,
            share_prefixes=share,
            num_turns=shape.num_turns,
            num_generations=shape.num_generations,
            global_batch_size=shape.num_problems * shape.num_generations,
            per_device_train_batch_size=shape.num_problems * shape.num_generations,
            rollout_batch_size=256,
            max_completion_length=24,
            max_steps=rounds + 1,
            credit="turn",
            temperature=1.0,
        )
        with executor:
            trainer.train()
    times = [log["step_time"] for log in trainer.state.log_history if "step_time" in log]
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    return {"update_s": times[1:], "peak_mib": peak_mib}  # the first update includes the self-check


MEASUREMENTS = {"passes": time_passes, "updates": time_updates}


def measure(part: str, shape: Shape, share: bool, rounds: int) -> dict:
    """Run one measurement in a process of its own and return what it printed."""
    job = json.dumps({"part": part, "shape": asdict(shape), "share": share, "rounds": rounds})
    run = subprocess.run(
        [sys.executable, __file__, "--job", job], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"measurement {job} failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def compare(part: str, shape: Shape, rounds: int, repeats: int) -> dict:
    """Return the medians of both layouts and their ratios."""
    found: dict[bool, list[dict]] = {False: [], True: []}
    for _ in range(repeats):
        for share, results in found.items():
            results.append(measure(part, shape, share, rounds))
    seconds = {}
    for share, results in found.items():
        names = [name for name in results[0] if name.endswith("_s")]
        seconds[share] = sum(statistics.median(s for r in results for s in r[name]) for name in names)
    peaks = {share: statistics.median(r["peak_mib"] for r in results) for share, results in found.items()}
    row = {
        "part": part,
        **asdict(shape),
        "plain_s": seconds[False],
        "shared_s": seconds[True],
        "speedup_vs_plain": seconds[False] / seconds[True],
        "plain_peak_mib": peaks[False],
        "shared_peak_mib": peaks[True],
    }
    print(
        f"{part:<8}{shape.name:<6}k={shape.num_generations:<3}T={shape.num_turns}  "
        f"plain {seconds[False]:7.2f} s  "
        f"shared {seconds[True]:7.2f} s  {row['speedup_vs_plain']:5.2f} x   "
        f"{peaks[False]:6.0f} -> {peaks[True]:6.0f} MiB",
        flush=True,
    )
    return row


def main() -> None:
    """Measure, print a line per shape, and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="passes or updates per process")
    parser.add_argument("--repeats", type=int, default=1, help="processes per layout; they alternate")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--job", help=argparse.SUPPRESS)  # one measurement, in a process of its own
    arguments = parser.parse_args()
    if arguments.job:
        job = json.loads(arguments.job)
        shape = Shape(**job["shape"])
        print(json.dumps(MEASUREMENTS[job["part"]](shape, job["share"], job["rounds"])))
        return
    jobs = [("passes", shape) for shape in SHAPES]
    jobs += [("updates", replace(LAB, num_generations=k, num_turns=t)) for k, t in ((4, 1), (4, 2), (16, 2))]
    rows = [
        compare(part, shape, arguments.rounds, arguments.repeats)
        for part, shape in tqdm(jobs, unit=" shapes", disable=None)
    ]
    if arguments.json:
        figures = {"machine": platform.platform(), "python": platform.python_version(), "rows": rows}
        Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

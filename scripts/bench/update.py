"""Old log-probabilities, loss and gradient of prefix trees, against plain rows and TRL's trainer.

The rows are those that the laboratory's base model samples, or random ones of MBPP's lengths, for a random
model with the width of SmolLM2-135M. Passes take processor seconds of one thread, whole updates of the
laboratory seconds of the clock.
"""

import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import torch
from bench import medians, processor_seconds
from datasets import Dataset
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from trl import RLOOConfig, RLOOTrainer
from trl.trainer.utils import pad

from cocos.carry import CarryKind, named_carry
from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import Executor
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.training.trainer import CoCoSTrainer
from cocos.trajectories import begin


@dataclass(frozen=True)
class Shape:
    """Sizes of a batch of rows, in tokens, and the model that computes them."""

    num_problems: int
    num_generations: int
    num_turns: int
    prompt: int
    answer: int
    instruction: int  # between two turns; with counterexamples, a test that the next prompt adds to the first
    model: str  # a checkpoint, or RANDOM
    carry: CarryKind = "transcript"


LAB = Shape(32, 4, 2, 63, 10, 1, "data/toy/base")  # the mean lengths of what its base model samples
RANDOM = "2 layers of 0.1B"  # SmolLM2-135M's width, random weights
MBPP = Shape(1, 8, 2, 130, 65, 50, RANDOM)
VOCABULARY = 8192
PHASES = ("rollout", "logprobs", "update")
ROUNDS = 3


def make_rows(shape: Shape) -> dict[str, Any]:
    """Return rows like those of training, of random tokens. Lengths vary by a third around their mean."""
    chance = torch.Generator().manual_seed(0)

    def tokens(mean: int) -> list[int]:
        low, high = mean * 2 // 3, mean * 4 // 3 + 1
        length = int(torch.randint(low, high, (1,), generator=chance))
        return torch.randint(5, VOCABULARY, (length,), generator=chance).tolist()

    prompts, completions = [], []
    for _ in range(shape.num_problems):
        prompt, tests = tokens(shape.prompt), [tokens(shape.instruction) for _ in range(3)]  # as MBPP has
        for _ in range(shape.num_generations):
            failed = torch.randperm(3, generator=chance).tolist()
            context = list(prompt)
            for _ in range(shape.num_turns):
                answer = tokens(shape.answer)
                prompts.append(torch.tensor(context))
                completions.append(torch.tensor(answer))
                if not named_carry(shape.carry).starts_anew:
                    context = context + answer + tokens(shape.instruction)
                elif failed:
                    context = context + tests[failed.pop()]
    return {
        "prompt_ids": pad(prompts, 0, "left"),
        "prompt_mask": pad([torch.ones_like(ids) for ids in prompts], 0, "left"),
        "completion_ids": pad(completions, 0, "right"),
        "completion_mask": pad([torch.ones_like(ids) for ids in completions], 0, "right"),
        "advantages": torch.linspace(-1, 1, len(prompts)),
    }


def sample_rows(trainer: Any, shape: Shape) -> dict[str, Any]:
    """Return rows that the laboratory's base model samples for its first problems."""
    torch.manual_seed(0)
    prompts = [p for p in trainer.prompts[: shape.num_problems] for _ in range(shape.num_generations)]
    rows: dict[str, Any] = trainer.rows(trainer.player.sample(prompts))
    return rows | {"advantages": torch.linspace(-1, 1, len(rows["prompt_ids"]))}


def load_model(name: str) -> Any:
    """Return a checkpoint, or a random model."""
    if name != RANDOM:
        return AutoModelForCausalLM.from_pretrained(name, dtype="float32")
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=576,
        intermediate_size=1536,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=VOCABULARY,
        num_hidden_layers=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)


OPTIONS = {
    **{"beta": 0.0, "report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1},
    **{"gradient_checkpointing": False, "use_cpu": True, "bf16": False},
}


@contextmanager
def open_trainer(shape: Shape, **options: Any) -> Iterator[Any]:
    """Yield a CoCoSTrainer on the laboratory's problems."""
    batch = shape.num_problems * shape.num_generations
    with tempfile.TemporaryDirectory() as folder, Executor(2) as executor:
        args = CoCoSConfig(
            output_dir=folder,
            model_name_or_path="data/toy/base",
            train_data="data/toy/train.jsonl",
            num_turns=shape.num_turns,
            num_generations=shape.num_generations,
            global_batch_size=batch,
            per_device_train_batch_size=batch,
            rollout_batch_size=256,
            max_completion_length=24,
            credit="turn",
            temperature=1.0,
            **OPTIONS | options,
        )
        prompts, tokenizer = begin(load_problems("data/toy/train.jsonl")), load_tokenizer("data/toy/base")
        model, protocol = load_model(shape.model), named_protocol("cocos")
        yield CoCoSTrainer(model, args, prompts, executor, protocol, tokenizer)


def trl_trainer(folder: str, model: str) -> Any:
    """Return TRL's RLOOTrainer. It is given rows, so its data and its reward are never used."""
    return RLOOTrainer(
        model=load_model(model),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=RLOOConfig(output_dir=folder, num_iterations=2, **OPTIONS),
        train_dataset=Dataset.from_dict({"prompt": ["x"] * 64}),
        processing_class=load_tokenizer("data/toy/base"),
    )


def peak_mib() -> float:
    """Return the largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # from KiB


def passes(shape: Shape, other: str = "plain", rounds: int = ROUNDS) -> dict[str, str]:
    """Measure the passes of an update, of trees and of another layout, `plain` or `trl`.

    The layouts alternate over the rounds. Trees come first, so that the peak memory after them is theirs.
    """
    torch.set_num_threads(1)
    peaks: dict[str, float] = {}
    with open_trainer(shape, num_iterations=2) as trainer, tempfile.TemporaryDirectory() as folder:
        rows = make_rows(shape) if shape.model == RANDOM else sample_rows(trainer, shape)
        trainers = {"trees": trainer, other: trl_trainer(folder, shape.model) if other == "trl" else trainer}
        run_passes(trainer, rows)  # compares trees with plain rows; not measured

        def seconds_of(layout: str) -> float:
            trainer.args.share_prefixes = layout == "trees"
            seconds = processor_seconds(partial(run_passes, trainers[layout], rows))
            peaks.setdefault(layout, peak_mib())
            return seconds

        seconds = medians({layout: partial(seconds_of, layout) for layout in trainers}, rounds)
        ratio = trainer.tree_logps.packing_ratio
    return row(shape, other, seconds, peaks) | {"tokens, ratio": f"{ratio:.1f}"}


def run_passes(trainer: Any, rows: dict[str, Any]) -> None:
    """Compute old log-probabilities, loss and gradient."""
    with torch.no_grad():
        log_probs, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            rows["completion_ids"].size(1),
            batch_size=256,
        )
    old_logps = (log_probs * rows["completion_mask"]).sum(1)
    trainer.compute_loss(trainer.model, rows | {"old_logps": old_logps}).backward()
    trainer.model.zero_grad()


def updates(shape: Shape, rounds: int = ROUNDS) -> dict[str, str]:
    """Measure whole updates of the laboratory. The first one, with the comparison, is not measured."""
    seconds, peaks = {}, {}
    for layout in ("trees", "plain"):
        # With this learning rate both layouts sample alike.
        options = {"share_prefixes": layout == "trees", "max_steps": rounds + 1, "learning_rate": 1e-6}
        with open_trainer(shape, **options) as trainer:
            trainer.train()
        logs = [log for log in trainer.state.log_history if "time/update_s" in log]
        seconds[layout] = median(sum(log[f"time/{phase}_s"] for phase in PHASES) for log in logs[1:])
        peaks[layout] = peak_mib()
    return row(shape, "plain", seconds, peaks)


def row(shape: Shape, other: str, seconds: dict[str, float], peaks: dict[str, float]) -> dict[str, str]:
    """Return the cells that passes and updates share."""
    return {
        "model": "laboratory" if shape.model == LAB.model else shape.model,
        "problems x k": f"{shape.num_problems} x {shape.num_generations}",
        "T": str(shape.num_turns),
        "carry": shape.carry,
        "prompt": str(shape.prompt),
        f"{other} s": f"{seconds[other]:.3g}",
        "trees s": f"{seconds['trees']:.3g}",
        "ratio": f"{seconds[other] / seconds['trees']:.2f}",
        f"{other} MiB": f"{peaks[other]:.0f}",
        "trees MiB": f"{peaks['trees']:.0f}",
    }


PARTS = [
    partial(passes, LAB),
    *(partial(passes, replace(MBPP, num_generations=k)) for k in (8, 16, 4)),
    *(
        partial(passes, replace(MBPP, num_turns=turns, carry=carry, instruction=added))
        for turns, carry, added in (
            (3, "transcript", 50),
            (2, "counterexamples", 30),
            (3, "counterexamples", 30),
        )
    ),
    *(partial(passes, replace(shape, num_turns=1), "trl") for shape in (LAB, MBPP)),
    partial(updates, LAB),
]

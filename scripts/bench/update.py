"""Passes of prefix trees against plain rows; whole updates beside TRL's trainer, with an account.

For the laboratory's base model, and for an adapter of Qwen2.5-Coder-0.5B-Instruct if it is in models/ (make
real-model). Passes take processor seconds of one thread, whole updates seconds of the clock.
"""

import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from bench import medians, processor_seconds
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import RLOOConfig, RLOOTrainer

from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import Executor
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.training.trainer import CoCoSTrainer
from cocos.training.update_timer import SAMPLING, UPDATE
from cocos.trajectories import begin


@dataclass(frozen=True)
class Shape:
    """Sizes of a batch, and the model that samples and computes it."""

    num_problems: int
    num_generations: int
    num_turns: int
    max_length: int  # of a completion, in tokens
    model: str  # a checkpoint
    protocol: str = "cocos"

    @property
    def num_rows(self) -> int:
        """Trajectories of a batch."""
        return self.num_problems * self.num_generations


LAB = Shape(32, 4, 2, 24, "data/toy/base")
CHAT = Shape(1, 8, 2, 48, "models/Qwen2.5-Coder-0.5B-Instruct", "chat")  # with a LoRA adapter
ROUNDS = 3


def load_model(shape: Shape) -> Any:
    """Return the model in float32."""
    return AutoModelForCausalLM.from_pretrained(shape.model, dtype="float32")


def sample_rows(trainer: Any, shape: Shape) -> dict[str, Any]:
    """Return rows that the model samples for the first problems of the laboratory."""
    torch.manual_seed(0)
    prompts = [p for p in trainer.prompts[: shape.num_problems] for _ in range(shape.num_generations)]
    rows: dict[str, Any] = trainer.rows(trainer.player.sample(prompts))
    return rows | {"advantages": torch.linspace(-1, 1, len(rows["prompt_ids"]))}


OPTIONS = {
    **{"beta": 0.0, "report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1},
    **{"gradient_checkpointing": False, "use_cpu": True, "bf16": False},
}


def adapter(shape: Shape) -> LoraConfig | None:
    """Return the adapter that is trained; None: all weights are."""
    return LoraConfig(r=16, lora_alpha=32, target_modules="all-linear") if shape.model == CHAT.model else None


@contextmanager
def open_trainer(shape: Shape, **options: Any) -> Iterator[Any]:
    """Yield a CoCoSTrainer on the laboratory's problems."""
    with tempfile.TemporaryDirectory() as folder, Executor(2) as executor:
        args = CoCoSConfig(
            output_dir=folder,
            model_name_or_path=shape.model,
            train_data="data/toy/train.jsonl",
            num_turns=shape.num_turns,
            num_generations=shape.num_generations,
            global_batch_size=shape.num_rows,
            per_device_train_batch_size=shape.num_rows,
            rollout_batch_size=256,
            max_completion_length=shape.max_length,
            max_truncated_share=1.0,
            credit="turn",
            temperature=1.0,
            **OPTIONS | options,
        )
        prompts, tokenizer = begin(load_problems("data/toy/train.jsonl")), load_tokenizer(shape.model)
        model, protocol = load_model(shape), named_protocol(shape.protocol)
        peft = {"peft_config": adapter(shape)}
        yield CoCoSTrainer(model, args, prompts, executor, protocol, tokenizer, **peft)


def trl_trainer(folder: str, shape: Shape, ours: Any, **options: Any) -> Any:
    """Return TRL's RLOOTrainer with the prompts, sizes and adapter of ours. Its reward is random."""
    texts = [ours.protocol.first_turn(prompt.problem) for prompt in ours.prompts]
    chats = [[{"role": "user", "content": text}] for text in texts]
    return RLOOTrainer(
        model=load_model(shape),
        reward_funcs=lambda completions, **_: torch.rand(len(completions)).tolist(),
        args=RLOOConfig(
            output_dir=folder,
            num_generations=shape.num_generations,
            per_device_train_batch_size=shape.num_rows,
            max_completion_length=shape.max_length,
            temperature=1.0,
            **OPTIONS | options,
        ),
        train_dataset=Dataset.from_dict({"prompt": chats if ours.protocol.is_chat else texts}),
        processing_class=load_tokenizer(shape.model),
        peft_config=adapter(shape),
    )


def peak_mib() -> float:
    """Return the largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # from KiB


def passes(shape: Shape, rounds: int = ROUNDS) -> dict[str, str]:
    """Measure the passes of an update, of trees and of plain rows.

    The layouts alternate over the rounds. Trees come first, so that the peak memory after them is theirs.
    """
    torch.set_num_threads(1)
    peaks: dict[str, float] = {}
    with open_trainer(shape, num_iterations=2) as trainer:
        rows = sample_rows(trainer, shape)
        run_passes(trainer, rows)  # compares trees with plain rows; not measured

        def seconds_of(layout: str) -> float:
            trainer.args.share_prefixes = layout == "trees"
            seconds = processor_seconds(partial(run_passes, trainer, rows))
            peaks.setdefault(layout, peak_mib())
            return seconds

        seconds = medians({layout: partial(seconds_of, layout) for layout in ("trees", "plain")}, rounds)
        ratio = trainer.tree_logps.packing_ratio
    return row(shape, "plain", seconds, peaks) | {"tokens, ratio": f"{ratio:.1f}"}


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
    """Measure whole updates, ours and then TRL's. The first one, with the comparison, is not measured.

    A completion of TRL's ends at the end of the text or at the limit, not at [DONE].
    """
    options = {"max_steps": rounds + 1, "learning_rate": 1e-6}
    seconds, tokens, peaks = {}, {}, {}
    with open_trainer(shape, **options) as ours, tempfile.TemporaryDirectory() as folder:
        for name, length in (("trees", "completion_length_t1"), ("trl", "completions/mean_length")):
            trainer = ours if name == "trees" else trl_trainer(folder, shape, ours, **options)
            trainer.train()
            logs = [log for log in trainer.state.log_history if "step_time" in log][1:]
            median_of = {key: median(log[key] for log in logs) for key in logs[0]}
            seconds[name], tokens[name] = median_of["step_time"], median_of[length] * shape.num_rows
            peaks[name] = peak_mib()
            if name == "trees":
                parts = account(ours.model, shape, median_of, logs[-1])
    ratio = seconds["trl"] / tokens["trl"] * tokens["trees"] / seconds["trees"]
    return row(shape, "trl", seconds, peaks) | {"a token, ratio": f"{ratio:.2f}"} | parts


def account(model: Any, shape: Shape, log: dict[str, float], last: dict[str, float]) -> dict[str, str]:
    """Return the seconds of an update's parts, and those of products of matrices in times of their floors.

    The floors are the products alone, of the same shapes, and for a step also the bytes of the weights over
    the bandwidth of a copy.
    """
    weights = [m.weight.detach() for name, m in model.named_modules() if is_whole(name, m)]
    prompt = (last["num_tokens"] - last["sampled_tokens_total"]) / last["episodes"]
    num_scored = round(log["sampled_tokens"])

    def products_s(num_tokens: int, num_scored: int) -> float:
        rows = [num_scored if len(weight) == model.config.vocab_size else num_tokens for weight in weights]
        inputs = [torch.ones(count, weight.shape[1]) for count, weight in zip(rows, weights, strict=True)]
        return clock_seconds(lambda: [x @ weight.T for x, weight in zip(inputs, weights, strict=True)])

    step_s = log["time/steps_s"] / (log["completion_length_t1"] - 1)
    pass_s = products_s(num_scored + round(prompt) * shape.num_problems, num_scored)
    copy_s = clock_seconds(lambda: [weight.clone() for weight in weights]) / 2  # it reads and writes
    parts = {part: log[f"time/{part}_s"] for part in (*SAMPLING, "execution", *UPDATE, "rest")}
    num_products = 1 if adapter(shape) else 2  # of the backward pass: frozen weights have no gradient
    return {f"time/{part}_s": f"{seconds:.3g}" for part, seconds in parts.items()} | {
        "step / products": f"{step_s / products_s(shape.num_rows, shape.num_rows):.2f}",
        "step / bytes": f"{step_s / copy_s:.2f}",
        "forward / products": f"{parts['forward'] / pass_s:.2f}",
        "backward / products": f"{parts['backward'] / pass_s / num_products:.2f}",
    }


def is_whole(name: str, module: Any) -> bool:
    """Return whether a module is a layer of the model, not one of an adapter."""
    return type(module) is torch.nn.Linear and "lora_" not in name


def clock_seconds(call: Any) -> float:
    """Return the seconds of a call, the shorter of two."""
    spent = []
    for _ in range(2):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return min(spent)


def row(shape: Shape, other: str, seconds: dict[str, float], peaks: dict[str, float]) -> dict[str, str]:
    """Return the cells that passes and updates share."""
    return {
        "model": Path(shape.model).name,
        "problems x k": f"{shape.num_problems} x {shape.num_generations}",
        "T": str(shape.num_turns),
        f"{other} s": f"{seconds[other]:.3g}",
        "trees s": f"{seconds['trees']:.3g}",
        "ratio": f"{seconds[other] / seconds['trees']:.2f}",
        f"{other} MiB": f"{peaks[other]:.0f}",
        "trees MiB": f"{peaks['trees']:.0f}",
    }


PARTS = [
    partial(passes, LAB),
    partial(passes, replace(LAB, num_turns=3)),
    partial(updates, replace(LAB, num_turns=1)),
]
if Path(CHAT.model).exists():
    PARTS += [partial(passes, CHAT), partial(updates, replace(CHAT, num_turns=1), 1)]

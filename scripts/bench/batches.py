"""Batches of rows like those of training, of any size, and the trainers that the benchmark gives them to."""

from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from trl import RLOOConfig, RLOOTrainer
from trl.trainer.utils import pad

from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import Executor
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.training.prefix_tree import pack
from cocos.training.trainer import CoCoSTrainer
from cocos.trajectories import begin


@dataclass(frozen=True)
class Shape:
    """Sizes of a batch of rows, in tokens, and the model that computes them."""

    name: str
    num_problems: int
    num_generations: int
    num_turns: int
    prompt: int
    answer: int
    instruction: int
    model: str  # a checkpoint, or a key of RANDOM_MODELS


LAB = Shape("lab", 32, 4, 2, 63, 10, 1, "data/toy/base")  # the mean lengths of what its base model samples
MBPP = Shape("mbpp", 1, 8, 2, 130, 65, 50, "2 layers")
WHOLE = Shape("whole", 1, 8, 2, 130, 65, 50, "30 layers")

SMOLLM2_WIDTH = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
}
# Sizes of random models: SmolLM2-135M's width with few layers and with all of them, and Qwen2.5-0.5B.
RANDOM_MODELS = {
    "2 layers": SMOLLM2_WIDTH | {"vocab_size": 8192, "num_hidden_layers": 2},
    "30 layers": SMOLLM2_WIDTH | {"vocab_size": 49152, "num_hidden_layers": 30},
    "0.5B": {
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "num_hidden_layers": 24,
    },
}


def make_rows(shape: Shape) -> dict[str, Any]:
    """Return rows like those of training, of random tokens. Lengths vary by a third around their mean."""
    chance = torch.Generator().manual_seed(0)
    vocabulary = RANDOM_MODELS[shape.model]["vocab_size"]

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


def sample_rows(trainer: Any, shape: Shape) -> dict[str, Any]:
    """Return rows that the laboratory's base model samples for its first problems."""
    torch.manual_seed(0)
    prompts = [p for p in trainer.prompts[: shape.num_problems] for _ in range(shape.num_generations)]
    rows: dict[str, Any] = trainer.rows(trainer.player.sample(prompts))
    return rows | {"advantages": torch.linspace(-1, 1, len(rows["prompt_ids"]))}


def load_model(name: str) -> Any:
    """Return a checkpoint, or a random model."""
    if name not in RANDOM_MODELS:
        return AutoModelForCausalLM.from_pretrained(name, dtype="float32")
    torch.manual_seed(0)
    config = LlamaConfig(
        **RANDOM_MODELS[name], max_position_embeddings=8192, tie_word_embeddings=True, pad_token_id=0
    )
    return LlamaForCausalLM(config)


OPTIONS = {
    "beta": 0.0,
    "report_to": "none",
    "disable_tqdm": True,
    "gradient_checkpointing": False,
    "save_strategy": "no",
    "logging_steps": 1,
    "use_cpu": True,
    "bf16": False,
}


def our_trainer(folder: str, shape: Shape, **options: Any) -> tuple[Any, Any]:
    """Return a CoCoSTrainer on the laboratory's problems, and its executor."""
    batch = shape.num_problems * shape.num_generations
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
    executor, prompts = Executor(2), begin(load_problems("data/toy/train.jsonl"))
    tokenizer = load_tokenizer("data/toy/base")
    trainer = CoCoSTrainer(
        load_model(shape.model), args, prompts, executor, named_protocol("cocos"), tokenizer
    )
    return trainer, executor


def trl_trainer(folder: str, model: str) -> Any:
    """Return TRL's RLOOTrainer. It is given rows, so its data and its reward are never used."""
    return RLOOTrainer(
        model=load_model(model),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=RLOOConfig(output_dir=folder, num_iterations=2, **OPTIONS),
        train_dataset=Dataset.from_dict({"prompt": ["x"] * 64}),
        processing_class=load_tokenizer("data/toy/base"),
    )


def operations(model: Any, rows: dict[str, Any]) -> dict[str, float]:
    """Count the operations of a forward pass over the rows, and over their trees.

    Two operations per token and weight of a matrix product, and four per pair of tokens that attend, channel
    and layer. Padding counts for the rows, whose attention is causal, but not for the trees: it is no work.
    """
    input_ids = torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1)
    mask = torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1)
    trees, _ = pack(input_ids, mask, rows["completion_ids"].size(1))
    num_rows, length = input_ids.shape
    weights = sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    channels = 4 * model.config.num_hidden_layers * model.config.hidden_size

    def count(tokens: int, pairs: int) -> float:
        return float(2 * tokens * weights + channels * pairs)

    pairs = sum(depth + 1 for depth in trees.position_ids)
    return {
        "plain": count(input_ids.numel(), num_rows * length * (length + 1) // 2),
        "shared": count(len(trees), pairs),
        "packing_ratio": input_ids.numel() / len(trees),
    }

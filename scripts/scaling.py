"""Print the table of docs/scaling.md: estimated memory and time of the recipes for real models.

    python scripts/scaling.py

The shapes are those of the checkpoints' config.json. A test compares the table with the page.
"""

from dataclasses import replace

from peft import LoraConfig
from transformers import LlamaConfig, PretrainedConfig, Qwen2Config

from cocos.files.markdown import markdown_table
from cocos.planning.memory import fits, gib, peak, phases
from cocos.planning.schedule import (
    A10,
    A100,
    Card,
    Schedule,
    Seconds,
    prompt_lengths,
    seconds_per_update,
    training_seconds,
)
from cocos.planning.shapes import FLOAT32, Layout, ModelShape, Workload
from cocos.planning.shapes_from_options import model_shape

CONFIGS: dict[str, PretrainedConfig] = {
    "qwen2.5-coder-0.5b": Qwen2Config(
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        max_position_embeddings=32768,
    ),
    "qwen2.5-1.5b": Qwen2Config(
        vocab_size=151936,
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        max_position_embeddings=131072,
    ),
    "llama-3.2-1b": LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        tie_word_embeddings=True,
        max_position_embeddings=131072,
    ),
    "deepseek-coder-1.3b": LlamaConfig(
        vocab_size=32256,
        hidden_size=2048,
        intermediate_size=5504,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=16,
        tie_word_embeddings=False,
        max_position_embeddings=16384,
    ),
}
ADAPTER = LoraConfig(r=16, task_type="CAUSAL_LM")  # --use_peft with TRL's defaults

# MBPP train: 374 problems. The longest prompt has 983 characters, at an assumed 2.9 characters per token.
FIRST_PROMPT, INSTRUCTION, ANSWER = 340, 48, 512
PROMPTS_T = prompt_lengths(FIRST_PROMPT, ANSWER, INSTRUCTION, turns=2)
SCHEDULE = Schedule(
    problems=374, trajectories=128, group=2, turns=2, trained_turns=2, problems_per_rollout=64
)
UPDATES = 1500
BOOST_ROWS, BOOST_TOKENS, BOOST_UPDATES = 256, 400, 1000  # tokens per row, including padding: assumed

SHAPES = {name: model_shape(config) for name, config in CONFIGS.items()}
ADAPTED = {name: model_shape(config, ADAPTER) for name, config in CONFIGS.items()}


def load(num_gpus: int, per_device: int = 4, rollout: int = 64) -> Workload:
    """Return the batches of the recipes on one GPU, for the memory estimate."""
    return SCHEDULE.workload(PROMPTS_T, ANSWER, num_gpus, rollout, per_device)


LORA = Layout(FLOAT32, base_weights=2)  # --use_peft --dtype bfloat16; adapters are in float32
SMALL = load(1, per_device=2, rollout=32)  # small batches, for 24 GB
MACHINES = ((A10, 1), (A100, 1), (A100, 8))


def layout_on(name: str, card: Card, num_gpus: int) -> tuple[str, ModelShape, Layout, Workload]:
    """Return the layout of a recipe on a machine: full training if it fits, else LoRA.

    Cards of 24 GB get the small batches.

    Returns:
        The layout's name, the model's shape, the layout and the batches.

    """
    at = SMALL if card is A10 else load(num_gpus)
    batches = ", small" if card is A10 else ""
    full = Layout(zero_stage=2, num_gpus=num_gpus)
    if fits(peak(phases(SHAPES[name], full, at)), card.memory_gib):
        return f"ZeRO-2{batches}", SHAPES[name], full, at
    return f"LoRA{batches}", ADAPTED[name], replace(LORA, num_gpus=num_gpus), at


def stage_2_seconds(name: str, card: Card, num_gpus: int) -> Seconds:
    """Return the seconds of one update of stage 2."""
    _, shape, layout, at = layout_on(name, card, num_gpus)
    return seconds_per_update(shape, layout, SCHEDULE, card, PROMPTS_T, ANSWER, at.rollout_rows)


def cocos_hours(name: str, card: Card, num_gpus: int) -> float:
    """Return the hours of all updates of stage 2."""
    return stage_2_seconds(name, card, num_gpus).total * UPDATES / 3600


def boost_hours(name: str, card: Card, num_gpus: int) -> float:
    """Return the hours of all updates of stage 1."""
    _, shape, layout, _ = layout_on(name, card, num_gpus)
    tokens = BOOST_ROWS * BOOST_TOKENS / num_gpus
    return training_seconds(shape, layout, card, tokens) * BOOST_UPDATES / 3600


def recipe_table() -> str:
    """Return a table of every recipe on three machines: layout, memory, seconds and hours."""
    rows = []
    for name in CONFIGS:
        for card, num_gpus in MACHINES:
            layout_name, shape, layout, at = layout_on(name, card, num_gpus)
            memory = phases(shape, layout, at)
            worst = max(memory, key=lambda phase: memory[phase].total)
            seconds = stage_2_seconds(name, card, num_gpus)
            cells = [name, f"{num_gpus} x {card.memory_gib} GB", layout_name]
            cells.append(f"{gib(peak(memory))} ({worst})")
            cells += [f"{part:.0f}" for part in (*seconds, seconds.total)]
            cells += [f"{cocos_hours(name, card, num_gpus):.0f}", f"{boost_hours(name, card, num_gpus):.1f}"]
            rows.append(cells)
    head = ["recipe", "machine", "layout", "GiB per GPU", "rollout s", "scoring s", "update s"]
    return markdown_table([*head, "s per update", "CoCoS h", "Boost h"], rows)


if __name__ == "__main__":
    print(recipe_table())

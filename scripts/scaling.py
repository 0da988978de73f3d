"""Print the tables of docs/scaling.md: estimated memory and time of the recipes for real models.

    python scripts/scaling.py

The shapes are those of the checkpoints' config.json. A test compares the table with the page.
"""

from dataclasses import dataclass, replace

from peft import LoraConfig
from transformers import LlamaConfig, PretrainedConfig, Qwen2Config

from cocos.files.markdown import markdown_table
from cocos.planning.memory import fits, gib, peak, phases
from cocos.planning.schedule import (
    A10,
    A100,
    CALIBRATED_S,
    H100,
    H200,
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
ENGINE_SHARE = 0.3  # TRL's --vllm_gpu_memory_utilization


@dataclass(frozen=True)
class Recipe:
    """Sizes of configs/cocos_NAME.yaml on MBPP train, which has 374 problems."""

    model: str  # key of CONFIGS
    schedule: Schedule
    prompts_T: list[int]  # tokens before each turn's answer
    answer: int  # longest answer
    updates: int


# The longest prompt of MBPP train has 983 characters, at an assumed 2.9 characters per token; the instruction
# of a second turn has 48 tokens, and 170 with the error of one test.
FIRST_PROMPT, INSTRUCTION, ANSWER = 340, 48, 512
PROMPTS_T = prompt_lengths(FIRST_PROMPT, ANSWER, INSTRUCTION, turns=2)
# MBPP has references, so that a program's time limit follows from them.
SCHEDULE = Schedule(
    problems=374,
    trajectories=128,
    group=2,
    turns=2,
    trained_turns=2,
    problems_per_rollout=64,
    timeout_s=CALIBRATED_S,
)
MUCODE = replace(
    SCHEDULE, group=8, turns=3, trained_turns=3, problems_per_rollout=16, waits_for_programs=True
)
RECIPES = {name: Recipe(name, SCHEDULE, PROMPTS_T, ANSWER, 1500) for name in CONFIGS} | {
    f"{model}-instruct": Recipe(model, MUCODE, prompt_lengths(340, 256, 170, turns=3), 256, 300)
    for model in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
}
BOOST_ROWS, BOOST_TOKENS, BOOST_UPDATES = 256, 400, 1000  # tokens per row, including padding: assumed

CONFIGS["qwen2.5-coder-1.5b"] = CONFIGS["qwen2.5-1.5b"]  # the same shape
SHAPES = {name: model_shape(config) for name, config in CONFIGS.items()}
ADAPTED = {name: model_shape(config, ADAPTER) for name, config in CONFIGS.items()}

LORA = Layout(FLOAT32, base_weights=2)  # --use_peft --dtype bfloat16; adapters are in float32
MACHINES = ((A10, 1), (A100, 1), (A100, 8), (H100, 1), (H100, 8), (H200, 1))


def load(recipe: Recipe, num_gpus: int, per_device: int = 4, rollout: int = 64) -> Workload:
    """Return the batches of a recipe on one GPU, for the memory estimate."""
    return recipe.schedule.workload(recipe.prompts_T, recipe.answer, num_gpus, rollout, per_device)


def layout_on(
    name: str, card: Card, num_gpus: int, engine_share: float = ENGINE_SHARE
) -> tuple[str, ModelShape, Layout, Workload]:
    """Return the layout of a recipe on a machine: full training if it fits, else LoRA.

    Cards of 24 GB get small batches.

    Args:
        engine_share: Share of the card that vLLM reserves; 0: transformers samples.

    Returns:
        The layout's name, the model's shape, the layout and the batches.

    """
    recipe = RECIPES[name]
    is_small = card is A10
    at = load(recipe, 1, per_device=2, rollout=32) if is_small else load(recipe, num_gpus)
    batches = ", small" if is_small else ""
    full = Layout(zero_stage=2, num_gpus=num_gpus, engine_share=engine_share)
    shape = SHAPES[recipe.model]
    if fits(peak(phases(shape, full, at)), card.memory_gib, engine_share):
        return f"ZeRO-2{batches}", shape, full, at
    lora = replace(LORA, num_gpus=num_gpus, engine_share=engine_share)
    return f"LoRA{batches}", ADAPTED[recipe.model], lora, at


def stage_2_seconds(name: str, card: Card, num_gpus: int, engine_share: float = ENGINE_SHARE) -> Seconds:
    """Return the seconds of one update of stage 2."""
    recipe = RECIPES[name]
    _, shape, layout, at = layout_on(name, card, num_gpus, engine_share)
    return seconds_per_update(
        shape, layout, recipe.schedule, card, recipe.prompts_T, recipe.answer, at.rollout_rows
    )


def cocos_hours(name: str, card: Card, num_gpus: int, engine_share: float = ENGINE_SHARE) -> float:
    """Return the hours of all updates of stage 2."""
    return stage_2_seconds(name, card, num_gpus, engine_share).total * RECIPES[name].updates / 3600


def boost_hours(name: str, card: Card, num_gpus: int) -> float:
    """Return the hours of all updates of stage 1."""
    _, shape, layout, _ = layout_on(name, card, num_gpus, engine_share=0.0)
    tokens = BOOST_ROWS * BOOST_TOKENS / num_gpus
    return training_seconds(shape, layout, card, tokens, tokens * BOOST_TOKENS / 2) * BOOST_UPDATES / 3600


def recipe_table() -> str:
    """Return a table of the recipes by machine: layout, memory, seconds, and hours with each sampler."""
    rows = []
    for name in RECIPES:
        for card, num_gpus in MACHINES:
            layout_name, shape, layout, at = layout_on(name, card, num_gpus)
            memory = phases(shape, layout, at)
            worst = max(memory, key=lambda phase: memory[phase].total)
            seconds = stage_2_seconds(name, card, num_gpus)
            cells = [name, f"{num_gpus} x {card.name.replace(',', '')}", layout_name]
            cells.append(f"{gib(peak(memory))} ({worst})")
            cells += [f"{part:.1f}" for part in (*seconds, seconds.total)]
            cells += [f"{cocos_hours(name, card, num_gpus):.1f}"]
            cells += [f"{cocos_hours(name, card, num_gpus, engine_share=0.0):.0f}"]
            rows.append([*cells, f"{boost_hours(name, card, num_gpus):.1f}"])
    head = ["recipe", "machine", "layout", "GiB per GPU", "rollout s", "programs s", "scoring s", "update s"]
    return markdown_table([*head, "s per update", "CoCoS h", "with transformers h", "Boost h"], rows)


if __name__ == "__main__":
    print(recipe_table())

"""Memory estimate, compared with the ZeRO paper, with DeepSpeed's estimator, with real tensors and with real runs."""

import re
import sys
from dataclasses import replace

import psutil
import pytest
import torch
from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    LlamaConfig,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from cocos.planning.memory import (
    GIB,
    NF4,
    Layout,
    Model,
    activation_bytes,
    cache_bytes,
    estimate,
    sized_model,
)
from cocos.training.run_log import read_log
from tests.support.commands import command
from tests.support.paths import ROOT, TOY

BASE = ROOT / "data/toy/base"


def states(parameters, layout):
    """Return the bytes of weights, gradients and optimizer of a model without layers or a vocabulary."""
    memory = estimate(Model(LlamaConfig(vocab_size=0), parameters, parameters), layout, 0, 0, 0)
    gradients = parameters * layout.weights * layout.share(2)
    return memory.weights + memory.optimizer + gradients, memory


# 7.5 B parameters on 64 GPUs, in the paper's own rounding (arXiv 1910.02054, fig. 1)
@pytest.mark.parametrize(
    ("stage", "num_gpus", "gb"), [(0, 1, 120), (1, 64, 31.4), (2, 64, 16.6), (3, 64, 1.9)]
)
def test_states_equal_those_of_the_zero_paper(stage, num_gpus, gb):
    layout = Layout(zero_stage=stage, num_gpus=num_gpus)
    assert states(7_500_000_000, layout)[0] / 1e9 == pytest.approx(gb, abs=0.05)


@pytest.mark.parametrize("num_gpus", [1, 2, 8])
def test_the_peak_of_a_step_equals_deepspeeds_estimate(num_gpus):
    _, memory = states(1_543_714_304, Layout(zero_stage=2, num_gpus=num_gpus, has_reference=False))
    _, theirs = estimate_zero2_model_states_mem_needs(1_543_714_304, num_gpus, cpu_offload=False)
    assert memory.peak - memory.overhead == pytest.approx(theirs, abs=2)


def test_the_states_of_a_real_model_equal_the_estimate():
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters())
    model(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()
    optimizer.step()
    parameters = list(model.parameters())
    total, memory = states(model.num_parameters(), Layout(4, 8))
    moments = [s.nbytes for state in optimizer.state.values() for name, s in state.items() if name != "step"]
    assert (memory.weights, memory.optimizer) == (sum(p.nbytes for p in parameters), sum(moments))
    assert total == memory.weights + sum(p.grad.nbytes for p in parameters) + sum(moments)


def test_adapter_parameters_equal_those_that_peft_creates(tiny_model):
    adapter = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    sizes = sized_model(AutoConfig.from_pretrained(tiny_model), adapter)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.bfloat16), adapter)
    trained = [p for p in model.parameters() if p.requires_grad]
    # rank 4 on two square maps of width 32 in two layers: 2 * 2 * 4 * (32 + 32)
    assert sizes.trained == sum(p.numel() for p in trained) == 1024
    assert estimate(sizes, Layout(4, 8), 0, 0, 0).weights == sum(p.nbytes for p in model.parameters())


def test_the_cache_estimate_equals_a_real_cache():
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    cache = DynamicCache(config=model.config)
    model(input_ids=torch.ones(3, 7, dtype=torch.long), past_key_values=cache)
    real = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert cache_bytes(sized_model(model.config), tokens=3 * 7, element=4) == real


def saved_bytes(config: LlamaConfig, dtype: torch.dtype, tokens: int, checkpoints: bool) -> int:
    """Return the bytes that the decoder keeps for its backward pass, without parameters."""
    model = AutoModelForCausalLM.from_config(config, dtype=dtype).train()
    if checkpoints:
        model.gradient_checkpointing_enable()
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in parameters:
            kept[place] = tensor  # keeping the tensor prevents reuse of its memory
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = model.model(input_ids=torch.ones(1, tokens, dtype=torch.long), use_cache=False)
    assert output.last_hidden_state.requires_grad
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize(("dtype", "element"), [(torch.bfloat16, 2), (torch.float32, 4)])
def test_activations_equal_those_that_autograd_keeps(dtype, element):
    def config(layers: int) -> LlamaConfig:
        return LlamaConfig(
            vocab_size=64, hidden_size=64, intermediate_size=160, num_hidden_layers=layers,
            num_attention_heads=4, num_key_value_heads=2,
        )  # fmt: skip

    tokens = 256
    model, layout = sized_model(config(3)), Layout(compute=element)
    plain = replace(layout, checkpoints_activations=False)
    layer = saved_bytes(config(3), dtype, tokens, False) - saved_bytes(config(2), dtype, tokens, False)
    assert activation_bytes(model, plain, tokens) == pytest.approx(3 * layer, rel=0.02)
    checkpoint = saved_bytes(config(3), dtype, tokens, True) - saved_bytes(config(2), dtype, tokens, True)
    assert checkpoint == tokens * 64 * element  # a layer's input
    held = activation_bytes(model, layout, tokens) - 2 * activation_bytes(model, plain, tokens) / 3
    assert held == pytest.approx(3 * checkpoint)


# Sizes of the recipes' models from their config.json, and their parameters from their pages on the hub.
MODELS = {
    "Qwen2.5-Coder-0.5B": (
        494_032_768,
        Qwen2Config(
            vocab_size=151_936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
            num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True,
        ),
    ),
    "Llama-3.2-1B": (
        1_235_814_400,
        LlamaConfig(
            vocab_size=128_256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
            num_attention_heads=32, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True,
        ),
    ),
    "deepseek-coder-1.3b": (
        1_346_471_936,
        LlamaConfig(
            vocab_size=32_256, hidden_size=2048, intermediate_size=5504, num_hidden_layers=24,
            num_attention_heads=16, num_key_value_heads=16, tie_word_embeddings=False,
        ),
    ),
    "Qwen2.5-1.5B": (
        1_543_714_304,
        Qwen2Config(
            vocab_size=151_936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28,
            num_attention_heads=12, num_key_value_heads=2, tie_word_embeddings=True,
        ),
    ),
}  # fmt: skip


def tokens(trajectories: int) -> tuple[int, int]:
    """Return the tokens of pairs of trajectories, and of their answers."""
    return trajectories // 2 * 340 + trajectories * (900 + 512 - 340), trajectories * 2 * 512


@pytest.mark.parametrize("name", MODELS)
def test_the_page_has_the_memory_of_the_recipes(name):
    """128 trajectories of two turns with prompts of 340 and 900 tokens, beside an engine's memory."""
    parameters, config = MODELS[name]
    model = sized_model(config)
    assert model.parameters == model.trained == parameters
    adapted, row = sized_model(config, LoraConfig(r=16, task_type="CAUSAL_LM")), 900 + 512
    runs = (
        (adapted, Layout(weights=4, optimizer=8, engine_share=0.3), row, *tokens(2), 32),
        (model, Layout(zero_stage=2, engine_share=0.3), row, *tokens(4), 64),
        (model, Layout(zero_stage=2, num_gpus=8, engine_share=0.3), row, *tokens(4), 16),
    )
    line = f"| {name} | {' | '.join(f'{estimate(*run).peak / GIB:.1f}' for run in runs)} |"
    assert line in (ROOT / "docs/scaling.md").read_text(), line


def test_a_run_by_hand():
    parameters, config = MODELS["Qwen2.5-1.5B"]
    model = Model(config, parameters, parameters)
    memory, p = estimate(model, Layout(zero_stage=2, num_gpus=8), 1412, 8 * 1412, 8 * 512, 16), parameters
    assert memory.weights == memory.reference == 2 * p and memory.optimizer == 12 * p / 8
    # bfloat16: a layer keeps 6 * 1536 + 2 * 256 + 4 * 8960 numbers and 2 * 1536 in float32
    layer = 2 * (6 * 1536 + 2 * 256 + 4 * 8960) + 4 * 2 * 1536
    activations = 8 * 1412 * (28 * 1536 * 2 + 2 * layer)
    # two tiles of 4,096 x 32,768 logits in bfloat16, hidden and head gradients in float32
    logits = 2 * 4096 * 32768 * 2 + 8 * 512 * 1536 * 4 + 151_936 * 1536 * 4
    assert memory.update == 2 * p / 8 + activations + logits
    # A pass over the 16 rows is larger than their cache, 28,672 per token, and logits.
    assert memory.sampling == 16 * 1412 * (2 * 1536 + 3 * 8960) * 2
    assert memory.peak == sum(memory) - min(memory.sampling, memory.update)
    gathered = estimate(model, Layout(zero_stage=3, num_gpus=8), 10, 1, 1, 1)
    assert gathered.sampling == 7 * 2 * p / 8 + 10 * 28_672 + 151_936 * (2 + 4 + 4)
    assert estimate(model, Layout(zero_stage=3, num_gpus=8, engine_share=0.3), 10, 1, 1, 1).sampling < 10**6
    # Without ZeRO nothing is sharded, and DistributedDataParallel adds buckets.
    one, two = (estimate(model, Layout(4, 8, num_gpus=n), 0, 0, 0) for n in (1, 2))
    assert two.update - one.update == 4 * p and one[:3] == two[:3] == (4 * p, 4 * p, 8 * p)
    # Of an adapter, the base is the reference, frozen and perhaps quantized; its head has no gradients.
    adapter = estimate(model._replace(trained=1000), Layout(4, 8, frozen=NF4), 0, 0, 0)
    assert adapter[:2] == (4000 + 0.5625 * p, 0) and adapter.update == 4000


@pytest.fixture(scope="module")
def qwen_shape(tmp_path_factory):
    """A checkpoint of Qwen2.5-0.5B's shape with random weights and the laboratory's tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "qwen"
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=151_936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = Qwen2ForCausalLM._from_config(
        config, dtype=torch.bfloat16
    )  # half the disk; the runs load float32
    assert model.num_parameters() == 494_032_768
    model.save_pretrained(folder)
    return folder


LORA = ("--use_peft", "--lora_target_modules", "q_proj", "v_proj")


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize(("flags", "needed_gib"), [((), 11), (LORA, 6)], ids=["full", "lora"])
def test_the_estimate_is_within_a_fifth_of_the_peak_of_a_run(qwen_shape, tmp_path, flags, needed_gib):
    """The process's largest memory, after two updates: optimizer states exist in the second."""
    free_gib = psutil.virtual_memory().available / GIB
    if free_gib < needed_gib:
        pytest.skip(f"{free_gib:.1f} GiB are free, and the run takes up to {needed_gib}: end other processes")
    words = (
        *(sys.executable, "train.py", "--config", "configs/toy/cocos.yaml", "--dev_data", ""),
        *("--model_name_or_path", qwen_shape, "--dtype", "float32", "--train_data", TOY / "boost.jsonl"),
        *("--global_batch_size", 8, "--per_device_train_batch_size", 8, "--max_truncated_share", 1),
        *("--max_steps", 2, "--save_strategy", "no", "--output_dir", tmp_path / "out", *flags),
    )
    plan = command(*words, "--dry_run").stdout
    estimated_gib = float(re.search(r"needs (\d+\.\d) GiB per process", plan)[1])
    done = command(*words, timeout_s=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    logs = [entry["metrics"] for entry in read_log(tmp_path / "out") if "metrics" in entry]
    measured_gib = max(log.get("peak_memory_mb", 0) for log in logs) / 1024
    print(plan, f"measured: {measured_gib:.2f} GiB", sep="\n")
    assert measured_gib / 1.2 < estimated_gib < 1.2 * measured_gib

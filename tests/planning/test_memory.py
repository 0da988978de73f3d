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

from cocos.config.command_line import parse_options
from cocos.config.trl_configs import CoCoSConfig
from cocos.planning.memory import (
    CPU_OVERHEAD,
    GIB,
    GPU_OVERHEAD,
    activation_bytes,
    cache_bytes,
    estimate,
    fits,
)
from cocos.planning.shapes import AUTOCAST, FLOAT32, NF4, ZERO_BF16, Layout, ModelShape, model_shape
from cocos.planning.workload import PassTokens, Workload, run_workload
from cocos.training.run_log import read_log
from tests.support.commands import command
from tests.support.paths import ROOT, TOY

BASE = ROOT / "data/toy/base"
NO_WORK = Workload(0, 0, 0, PassTokens(0, 0), PassTokens(0, 0))


def bare(parameters: int) -> ModelShape:
    """Return a shape with parameters but without layers or a vocabulary."""
    return ModelShape(parameters, 1, 0, 0, 1, 0, 1)


def states(shape, layout):
    """Return the bytes of weights, gradients and optimizer, without the copy of the optimizer's step."""
    memory = estimate(shape, replace(layout, precision=replace(layout.precision, step=0)), NO_WORK)
    return memory.weights + memory.update + memory.optimizer


# 7.5 B parameters on 64 GPUs, in the paper's own rounding (arXiv 1910.02054, fig. 1)
@pytest.mark.parametrize(
    ("stage", "num_gpus", "gb"), [(0, 1, 120), (1, 64, 31.4), (2, 64, 16.6), (3, 64, 1.9)]
)
def test_states_equal_those_of_the_zero_paper(stage, num_gpus, gb):
    layout = Layout(ZERO_BF16, stage, num_gpus)
    assert states(bare(7_500_000_000), layout) / 1e9 == pytest.approx(gb, abs=0.05)


@pytest.mark.parametrize("num_gpus", [1, 2, 8])
def test_the_peak_of_a_step_equals_deepspeeds_estimate(num_gpus):
    memory = estimate(bare(1_543_714_304), Layout(ZERO_BF16, 2, num_gpus, has_reference=False), NO_WORK)
    _, theirs = estimate_zero2_model_states_mem_needs(1_543_714_304, num_gpus, cpu_offload=False)
    assert memory.peak - memory.overhead == pytest.approx(theirs, abs=2)


def test_the_states_of_a_real_model_equal_the_estimate():
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters())
    model(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()
    optimizer.step()
    memory = estimate(bare(model.num_parameters()), Layout(FLOAT32), NO_WORK)
    parameters = list(model.parameters())
    assert memory.weights == sum(p.nbytes for p in parameters)
    assert memory.update == sum(p.grad.nbytes for p in parameters)
    moments = [s.nbytes for state in optimizer.state.values() for name, s in state.items() if name != "step"]
    assert memory.optimizer == sum(moments)


def test_adapter_parameters_equal_those_that_peft_creates(tiny_model):
    adapter = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    shape = model_shape(AutoConfig.from_pretrained(tiny_model), adapter)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.bfloat16), adapter)
    trained = [p for p in model.parameters() if p.requires_grad]
    # rank 4 on two square maps of width 32 in two layers: 2 * 2 * 4 * (32 + 32)
    assert shape.trained == shape.adapter_parameters == sum(p.numel() for p in trained) == 1024
    memory = estimate(shape, Layout(FLOAT32, frozen=2), NO_WORK)
    assert memory.weights == sum(p.nbytes for p in model.parameters())


def test_the_cache_estimate_equals_a_real_cache():
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    cache = DynamicCache(config=model.config)
    model(input_ids=torch.ones(3, 7, dtype=torch.long), past_key_values=cache)
    real = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert cache_bytes(model_shape(model.config), tokens=3 * 7, element=4) == real


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
    shape, layout = model_shape(config(3)), Layout(compute=element)
    plain = replace(layout, checkpoints_activations=False)
    layer = saved_bytes(config(3), dtype, tokens, False) - saved_bytes(config(2), dtype, tokens, False)
    assert activation_bytes(shape, plain, tokens) == pytest.approx(3 * layer, rel=0.02)
    checkpoint = saved_bytes(config(3), dtype, tokens, True) - saved_bytes(config(2), dtype, tokens, True)
    assert checkpoint == tokens * 64 * element  # a layer's input
    held = activation_bytes(shape, layout, tokens) - 2 * activation_bytes(shape, plain, tokens) / 3
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


def recipe_workload(num_gpus: int, per_device: int = 4, rollout: int = 64) -> Workload:
    """Return one GPU's share of an update of 128 trajectories with prompts of 340 and 900 tokens."""
    needed = ("--model_name_or_path", "m", "--train_data", "t", "--output_dir", "o", "--report_to", "none")
    sizes = ("--global_batch_size", 128 // num_gpus, "--rloo_k", 2, "--max_completion_length", 512)
    batches = ("--per_device_train_batch_size", per_device, "--rollout_batch_size", rollout)
    return run_workload(parse_options(CoCoSConfig, "", [*map(str, needed + sizes + batches)]), [340, 900])


@pytest.mark.parametrize("name", MODELS)
def test_the_page_has_the_memory_of_the_recipes(name):
    parameters, config = MODELS[name]
    shape = model_shape(config)
    assert shape.parameters == parameters
    adapted = model_shape(config, LoraConfig(r=16, task_type="CAUSAL_LM"))
    cells = []
    for shape_of_run, layout, workload in (
        (adapted, Layout(FLOAT32, frozen=2), recipe_workload(1, per_device=2, rollout=32)),
        (shape, Layout(zero_stage=2), recipe_workload(1)),
        (shape, Layout(zero_stage=2, num_gpus=8), recipe_workload(8)),
    ):
        # As beside vLLM, whose memory is not the run's.
        memory = estimate(shape_of_run, replace(layout, engine_share=0.3), workload)
        cells.append(f"{memory.peak / GIB:.1f}")
    row = f"| {name} | {' | '.join(cells)} |"
    assert row in (ROOT / "docs/scaling.md").read_text(), row


QWEN = ModelShape(1_543_714_304, 28, 1536, 8960, 2 * 128, 151_936, 131_072)
WORK = Workload(16, 900, 512, PassTokens(32 * 1412, 32 * 512), PassTokens(8 * 1412, 8 * 512))


def test_a_run_by_hand():
    memory, p = estimate(QWEN, Layout(ZERO_BF16, zero_stage=2, num_gpus=8), WORK), QWEN.parameters
    assert memory.weights == memory.reference == 2 * p and memory.optimizer == 12 * p / 8
    # bfloat16: a layer keeps 6 * 1536 + 2 * 256 + 4 * 8960 numbers and 2 * 1536 in float32
    layer = 2 * (6 * 1536 + 2 * 256 + 4 * 8960) + 4 * 2 * 1536
    activations = 8 * 1412 * (28 * 1536 * 2 + 2 * layer)
    # 4,096 answer tokens: two tiles of 4,096 x 32,768 in bfloat16, hidden and head gradients in float32
    logits = 2 * 4096 * 32768 * 2 + 4096 * 1536 * 4 + 151_936 * 1536 * 4
    assert memory.update == 2 * p / 8 + activations + logits
    # The pass over all rows is larger than sampling 16 of them.
    assert memory.sampling == 32 * 1412 * (2 * 1536 + 3 * 8960) * 2 + 4096 * 32768 * 2
    few = estimate(QWEN, Layout(ZERO_BF16), WORK._replace(scoring=PassTokens(0, 0))).sampling
    assert few == 16 * (1412 * 28_672 + 151_936 * (2 + 4 + 4) + 900 * (2 * 1536 + 3 * 8960) * 2)
    assert memory.overhead == GPU_OVERHEAD and memory.peak == sum(memory) - min(
        memory.sampling, memory.update
    )


def test_a_cpu_has_narrow_tiles_of_logits_and_no_cuda():
    layout = Layout(FLOAT32, has_reference=False, compute=4, is_cpu=True, checkpoints_activations=False)
    memory = estimate(replace(QWEN, layers=0), layout, Workload(4, 100, 50, *[PassTokens(600, 200)] * 2))
    # Two tiles of 200 answer tokens by 256 ids in float32, hidden and head gradients.
    assert memory.update - 4 * QWEN.parameters == 2 * 200 * 256 * 4 + 200 * 1536 * 4 + 151_936 * 1536 * 4
    assert memory.overhead == CPU_OVERHEAD


def test_sampling_under_stage_3_gathers_the_weights():
    layout = Layout(ZERO_BF16, zero_stage=3, num_gpus=8)
    memory = estimate(QWEN, layout, Workload(0, 1, 1, PassTokens(0, 0), PassTokens(0, 0)))
    live = 4 * 151_936 * 1536  # the embedding, the largest module
    assert memory.weights == 2 * QWEN.parameters / 8 + live
    assert memory.reference == 2 * QWEN.parameters / 8 and memory.sampling == 0
    one_row = estimate(QWEN, layout, Workload(1, 0, 0, PassTokens(0, 0), PassTokens(0, 0)))
    assert one_row.sampling == 7 * 2 * QWEN.parameters / 8 + 151_936 * (2 + 4 + 4)


def test_a_colocated_engine_takes_its_share_of_the_card_and_sampling_needs_no_cache_of_ours():
    layout = Layout(ZERO_BF16, zero_stage=2, engine_share=0.3)
    assert estimate(QWEN, layout, WORK._replace(scoring=PassTokens(0, 0))).sampling == 0
    assert fits(51.9, 80, 0.3) and not fits(52.1, 80, 0.3)
    assert fits(22.7, 24) and not fits(22.9, 24)


def test_without_zero_nothing_is_sharded_and_ddp_adds_buckets():
    one, two = (estimate(bare(10), Layout(AUTOCAST, num_gpus=n), NO_WORK) for n in (1, 2))
    # Gradients, their buckets, and autocast's copies in bfloat16.
    assert one.update == 40 + 20 and two.update == 2 * 40 + 20
    assert one.weights == two.weights == one.reference == 40 and one.optimizer == two.optimizer == 80


def test_an_adapter_needs_no_reference_and_a_quantized_base_half_a_byte():
    memory = estimate(replace(QWEN, adapter_parameters=1000), Layout(FLOAT32, frozen=NF4), NO_WORK)
    assert memory.weights == 4000 + 0.5625 * QWEN.parameters
    assert memory.reference == 0 and memory.update == 4000  # its head has no gradients


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

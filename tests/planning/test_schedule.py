"""Updates, tokens, seconds and processors, calculated by hand; and the page and recipes that quote them."""

import importlib.util
import math
import sys
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM
from trl.trainer.utils import RepeatSampler

from cocos.config.trl_configs import WITHOUT_VLLM
from cocos.executor.calibration import FLOOR_S
from cocos.planning.schedule import (
    A10,
    A100,
    CALIBRATED_S,
    ENDLESS,
    H100,
    LAUNCH_S,
    UTILISATION,
    Card,
    Schedule,
    engine_rows,
    prompt_lengths,
    seconds_per_update,
    training_seconds,
)
from cocos.planning.shapes import GIB, Layout, ModelShape
from tests.support.paths import ROOT
from tests.training.test_prefix_tree import packed

specification = importlib.util.spec_from_file_location("scaling", ROOT / "scripts" / "scaling.py")
scaling = importlib.util.module_from_spec(specification)
sys.modules["scaling"] = scaling
specification.loader.exec_module(scaling)

PAGE = (ROOT / "docs/scaling.md").read_text()
SCHEDULE = Schedule(
    problems=374, trajectories=128, group=2, turns=2, trained_turns=2, problems_per_rollout=64
)


def test_each_turn_adds_an_answer_and_an_instruction():
    assert prompt_lengths(first=100, answer=50, instruction=10, turns=3) == [100, 160, 220]


def test_rows_and_programs_of_an_update():
    assert (SCHEDULE.rows, SCHEDULE.programs) == (256, 256)
    assert replace(SCHEDULE, turns=3, trained_turns=1).rows == 128  # credit `last`
    assert replace(SCHEDULE, turns=3, trained_turns=1).programs == 384


def test_tokens_of_a_pass_by_hand():
    # Two rows of 160 + 50 tokens per trajectory; as trees, prompts of 100 once per group and 110 tokens after it.
    plain = replace(SCHEDULE, shares_prefixes=False)
    assert plain.loss_tokens(4, [100, 160], 50) == 4 * 2 * 210
    assert SCHEDULE.loss_tokens(4, [100, 160], 50) == 2 * 100 + 4 * 110
    assert SCHEDULE.loss_tokens(1, [100, 160], 50) == 210  # half a group
    assert (
        replace(SCHEDULE, trained_turns=1).loss_tokens(4, [100, 160], 50) == 2 * 160 + 4 * 50
    )  # credit `last`


def test_the_estimated_tokens_are_those_of_the_layout():
    """Two groups of three trajectories of two turns, whose answers of two tokens all differ."""
    rows = []
    for problem in (1, 2):
        for sibling in (3, 4, 5):
            first = [problem] * 6
            second = [*first, sibling, 6, 7, 7, 7]
            rows += [(first, [sibling, 6]), (second, [sibling, 8])]
    schedule = replace(SCHEDULE, group=3)
    estimated = schedule.loss_tokens(6, [6, 11], 2)
    trees, _ = packed(*rows)
    # The first prompt's last token is repeated for each answer, and the last token of a row is left out.
    assert estimated == len(trees) + 2 == 2 * (6 + 3 * 7)


def test_a_workload_by_hand():
    workload = SCHEDULE.workload([100, 160], 50, num_gpus=8, rollout_batch_size=12, per_device=4)
    assert (workload.rollout_rows, workload.prompt, workload.answer) == (12, 160, 50)
    assert workload.update == (640, 4 * 2 * 50)
    # The GPU's 16 trajectories have 8 x 320 = 2,560 tokens; twelve rows have 12 x 210 = 2,520.
    assert workload.scoring == (2520, 16 * 2 * 50 * 2520 // 2560)


@pytest.mark.parametrize(
    ("problems", "rollout", "updates_per_rollout"), [(374, 64, 1), (374, 128, 2), (63, 64, 1), (128, 64, 3)]
)
def test_a_pass_has_as_many_updates_as_trls_sampler_yields(problems, rollout, updates_per_rollout):
    group = 2
    schedule = replace(
        SCHEDULE,
        problems=problems,
        trajectories=rollout * group,
        problems_per_rollout=rollout,
        updates_per_rollout=updates_per_rollout,
    )
    given = problems * math.ceil(rollout / problems)  # CoCoSTrainer repeats too few problems
    sampler = RepeatSampler(range(given), group, rollout, repeat_count=updates_per_rollout)
    assert schedule.updates_per_pass == len(list(sampler)) / schedule.trajectories


TINY = ModelShape(10**6, 0, 2, 0, 0, 1, 1, 0, 0, 1)


def test_seconds_by_hand():
    card = Card("slow", 1, tflops=1e-3 / UTILISATION, tb_s=1.0)  # 1e9 operations per second
    layout = Layout(num_gpus=2)
    seconds = seconds_per_update(TINY, layout, SCHEDULE, card, [100, 160], answer=50, rollout_rows=16)
    # 64 trajectories per GPU: 4 batches of 50 steps with two layers' launches per turn, and 2e6 operations per token:
    # the first prompt once for two siblings, and ten tokens between the answers
    launches = 2 * 4 * 50 * 2 * LAUNCH_S["transformers"]
    assert seconds.rollout == pytest.approx(launches + 64 * (100 / 2 + 10) * 2e6 / 1e9)
    assert seconds.programs == pytest.approx(10 * (1 - 0.98**128))
    tokens = 32 * (100 + 2 * 110)  # 32 groups of two: the first prompt once, then what follows it twice
    assert seconds.scoring == pytest.approx(tokens * 2 * 2e6 / 1e9)  # policy and reference
    assert seconds.update == pytest.approx(tokens * 8e6 / 1e9)  # forward, repeated forward, backward
    assert seconds.total == pytest.approx(sum(seconds))


def test_a_step_takes_as_long_as_reading_the_weights_if_that_is_longer():
    card = Card("narrow", 1, tflops=1e6, tb_s=1e-6)  # 1 MB per second, so 2 MB of weights take two seconds
    one_turn = replace(SCHEDULE, turns=1, trained_turns=1)
    seconds = seconds_per_update(TINY, Layout(), one_turn, card, [1], answer=10, rollout_rows=128)
    assert seconds.rollout == pytest.approx(10 * 2.0, rel=1e-3)


def test_attention_takes_two_products_per_pair_head_and_layer():
    # A tree of a prompt of 100 and two paths of 110 more: 100^2 / 2 + 2 (210^2 - 100^2) / 2 pairs
    assert SCHEDULE.attended(2, [100, 160], 50) == 5000 + 2 * 17_050
    plain = replace(SCHEDULE, shares_prefixes=False)
    assert plain.attended(2, [100, 160], 50) == 4 * 210**2 / 2
    card, shape = Card("one", 1, 1e-3 / UTILISATION, 1.0), replace(TINY, heads=3, head_dim=8)
    attention = (
        4 * 2 * 3 * 8 * 1000
    )  # operations of 1,000 pairs: two products of 8 numbers, in 3 heads and 2 layers
    with_it = training_seconds(shape, Layout(), card, 7, 1000)
    assert with_it - training_seconds(shape, Layout(), card, 7) == pytest.approx(4 * attention / 1e9)


def test_a_turn_waits_for_programs_only_where_the_next_prompt_needs_them():
    assert FLOOR_S == CALIBRATED_S
    one = 1 - (1 - ENDLESS) ** 128  # at least one of 128 programs does not end: 92 %
    assert SCHEDULE.seconds_of_programs() == pytest.approx(10 * one) == pytest.approx(9.25, abs=0.01)
    told = replace(SCHEDULE, turns=3, waits_for_programs=True, timeout_s=CALIBRATED_S)
    assert told.seconds_of_programs() == pytest.approx(3 * one)


def test_vllm_samples_all_rows_that_its_cache_holds_in_steps_of_its_own_length():
    shape = replace(TINY, parameters=10**9, layers=10, kv_heads=2, head_dim=64)
    layout = Layout(engine_share=0.3)
    # Of 24 GiB, 7.2 are the engine's: less 2e9 bytes of weights and 1 GiB, for 5,120 bytes a token
    rows = engine_rows(shape, layout, A10, longest=1000)
    assert rows == int((0.3 * 24 * GIB - 2e9 - GIB) / (1000 * 5120))
    fast = replace(A100, tflops=1e9, tb_s=1e6)  # launching kernels is all that takes time
    one_turn = replace(SCHEDULE, turns=1, trained_turns=1)
    seconds = seconds_per_update(shape, layout, one_turn, fast, [10], answer=50, rollout_rows=4)
    assert seconds.rollout == pytest.approx(50 * 10 * LAUNCH_S["vLLM"], rel=1e-3)
    slow = seconds_per_update(shape, Layout(), one_turn, fast, [10], answer=50, rollout_rows=4)
    assert slow.rollout == pytest.approx(128 / 4 * 50 * 10 * LAUNCH_S["transformers"], rel=1e-3)


def test_the_message_of_a_missing_vllm_has_the_factor_of_the_plans():
    factor = round(LAUNCH_S["transformers"] / LAUNCH_S["vLLM"])
    assert f"about {factor} times as long" in WITHOUT_VLLM


def test_phases_that_a_run_skips_take_no_time():
    card, full = Card("one", 1, 1.0, 1.0), Layout()
    everything = training_seconds(TINY, full, card, 1000)
    assert training_seconds(TINY, replace(full, checkpoints_activations=False), card, 1000) == pytest.approx(
        everything * 6 / 8
    )
    adapted = replace(TINY, adapter_parameters=10)
    assert training_seconds(adapted, full, card, 1000) == pytest.approx(everything * 6 / 8)
    no_reference, twice = replace(full, has_reference=False), replace(SCHEDULE, updates_per_rollout=2)
    scoring = [
        seconds_per_update(TINY, layout, schedule, card, [1, 2], 1, 64).scoring
        for layout in (full, no_reference)
        for schedule in (SCHEDULE, twice)
    ]
    one_pass = scoring[3]
    assert one_pass > 0 and scoring == pytest.approx([2 * one_pass, 2 * one_pass, 0, one_pass])


def test_operations_per_token_equal_those_that_torch_counts():
    model = AutoModelForCausalLM.from_pretrained(ROOT / "data/toy/base", dtype=torch.float32)
    with FlopCounterMode(display=False) as counter:
        model(input_ids=torch.ones(4, 64, dtype=torch.long)).logits.sum().backward()
    parameters = sum(p.numel() for p in model.parameters())
    assert counter.get_total_flops() == pytest.approx(6 * parameters * 4 * 64, rel=0.15)


# Parameter counts from the checkpoints' pages on the hub.
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen2.5-coder-0.5b", 494_032_768),
        ("qwen2.5-1.5b", 1_543_714_304),
        ("llama-3.2-1b", 1_235_814_400),
        ("deepseek-coder-1.3b", 1_346_471_936),
    ],
)
def test_the_recipes_models_have_their_published_size(name, parameters):
    assert scaling.SHAPES[name].parameters == parameters


def test_the_table_of_the_page_equals_the_estimates():
    assert scaling.recipe_table() in PAGE


@pytest.mark.parametrize("name", scaling.RECIPES)
def test_the_hours_in_the_recipes_equal_the_estimates(name):
    boost = (ROOT / f"configs/boost_{name}.yaml").read_text().splitlines()[1]
    cocos = (ROOT / f"configs/cocos_{name}.yaml").read_text().splitlines()[1]
    assert f"One GPU with 80 GB and ZeRO-2: {scaling.boost_hours(name, scaling.A100, 1):.1f} hours" in boost
    eight, one, h100 = (scaling.cocos_hours(name, card, n) for card, n in ((A100, 8), (A100, 1), (H100, 1)))
    hours = f"Eight A100 of 80 GB, ZeRO-2, vLLM: {eight:.1f} hours; one: {one:.1f}; one H100: {h100:.1f} "
    assert hours in cocos
    assert "estimate" in boost and "estimate" in cocos

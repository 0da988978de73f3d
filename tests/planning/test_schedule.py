"""Updates, tokens, seconds and processors, calculated by hand; and the page and recipes that quote them."""

import importlib.util
import sys
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM
from trl.trainer.utils import RepeatSampler

from cocos.planning.schedule import (
    LAUNCH_S,
    UTILISATION,
    Card,
    Schedule,
    executor_cores,
    prompt_lengths,
    seconds_per_update,
    training_seconds,
)
from cocos.planning.shapes import Layout, ModelShape
from tests.support.paths import ROOT

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
    sampler = RepeatSampler(range(problems), group, rollout, repeat_count=updates_per_rollout)
    assert schedule.updates_per_pass == len(list(sampler)) / schedule.trajectories


TINY = ModelShape(10**6, 0, 2, 0, 0, 1, 1, 0, 0, 1)


def test_seconds_by_hand():
    card = Card("slow", 1, tflops=1e-3 / UTILISATION, tb_s=1.0)  # 1e9 operations per second
    layout = Layout(num_gpus=2)
    seconds = seconds_per_update(TINY, layout, SCHEDULE, card, [100, 160], answer=50, rollout_rows=16)
    # 64 trajectories per GPU: 4 batches of 50 steps with two layers' launches per turn, and 2e6 operations per token
    assert seconds.rollout == pytest.approx(2 * 4 * 50 * 2 * LAUNCH_S + 64 * 260 * 2e6 / 1e9)
    tokens = 64 * 2 * (160 + 50)
    assert seconds.scoring == pytest.approx(tokens * 2 * 2e6 / 1e9)  # policy and reference
    assert seconds.update == pytest.approx(tokens * 8e6 / 1e9)  # forward, repeated forward, backward
    assert seconds.total == pytest.approx(sum(seconds))


def test_a_step_takes_as_long_as_reading_the_weights_if_that_is_longer():
    card = Card("narrow", 1, tflops=1e6, tb_s=1e-6)  # 1 MB per second, so 2 MB of weights take two seconds
    seconds = seconds_per_update(TINY, Layout(), SCHEDULE, card, [1], answer=10, rollout_rows=128)
    assert seconds.rollout == pytest.approx(10 * 2.0, rel=1e-3)


def test_phases_that_a_run_skips_take_no_time():
    card, full = Card("one", 1, 1.0, 1.0), Layout()
    everything = training_seconds(TINY, full, card, 1000)
    assert training_seconds(TINY, replace(full, checkpoints_activations=False), card, 1000) == pytest.approx(
        everything * 6 / 8
    )
    adapted = replace(TINY, adapter_parameters=10)
    assert training_seconds(adapted, full, card, 1000) == pytest.approx(everything * 6 / 8)
    no_reference = replace(full, has_reference=False)
    scoring = [
        seconds_per_update(TINY, layout, SCHEDULE, card, [1, 2], 1, 64).scoring
        for layout in (full, no_reference)
    ]
    assert scoring[0] == pytest.approx(2 * scoring[1])


def test_operations_per_token_equal_those_that_torch_counts():
    model = AutoModelForCausalLM.from_pretrained(ROOT / "data/toy/base", dtype=torch.float32)
    with FlopCounterMode(display=False) as counter:
        model(input_ids=torch.ones(4, 64, dtype=torch.long)).logits.sum().backward()
    parameters = sum(p.numel() for p in model.parameters())
    assert counter.get_total_flops() == pytest.approx(6 * parameters * 4 * 64, rel=0.15)


def test_programs_that_time_out_determine_the_number_of_workers():
    assert executor_cores(64, seconds=14, timeout_s=10) == 1  # 12.9 processor seconds
    assert executor_cores(64, seconds=5, timeout_s=10) == 3
    assert executor_cores(64, seconds=5, timeout_s=10, timeout_share=0) == 1  # 0.1 processor seconds
    assert executor_cores(4, seconds=0.001, timeout_s=10) == 4  # more workers than programs would idle


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


@pytest.mark.parametrize("table", scaling.TABLES, ids=lambda table: table.__name__)
def test_the_tables_of_the_page_equal_the_estimates(table):
    assert table() in PAGE


@pytest.mark.parametrize("name", scaling.CONFIGS)
def test_the_hours_in_the_recipes_equal_the_estimates(name):
    boost = (ROOT / f"configs/boost_{name}.yaml").read_text().splitlines()[1]
    cocos = (ROOT / f"configs/cocos_{name}.yaml").read_text().splitlines()[1]
    assert f"One GPU with 80 GB and ZeRO-2: {scaling.boost_hours(name, scaling.A100, 1):.1f} hours" in boost
    eight, one = (scaling.cocos_hours(name, scaling.A100, n) for n in (8, 1))
    assert f"Eight GPUs with 80 GB and ZeRO-2: {eight:.0f} hours; one: {one:.0f} hours" in cocos
    assert "estimate" in boost and "estimate" in cocos

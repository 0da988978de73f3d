"""The command that a finished training run prints: the model is evaluated as it was trained."""

import shlex
from typing import Literal

import pytest
import torch
from transformers import TrainerState, TrainingArguments

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.option import default_values, option_names
from cocos.config.training_options import BoostOptions
from cocos.training.console import end_lines, start_lines
from cocos.training.model_card import ModelCard

CHANGED = {
    "prompt_signature": True,
    "placebo": "other",
    "carry": "counterexamples",
    "num_turns": 3,
    "max_completion_length": 64,
    "prompt_file": "wording.yaml",
    "few_shot_data": "examples.jsonl",
    "few_shot_examples": 5,
    "prompt_tests": 0,
    "visible_tests": 2,
    "feedback": "error",
    "feedback_failures": 2,
    "early_stop": True,
    "on_repeat": "tell",
    "system_prompt": "system.txt",
    "sandbox": "seccomp",
    "program_memory_mb": 2048,
    "program_processes": 8,
    "chat_template": "rag",
    "chat_template_kwargs": {"enable_thinking": False},
    "program_packages": ["numpy", "pandas"],
}


def last_lines(stage: Literal["Boost", "CoCoS"], options: dict[str, object]) -> str:
    """Return what a run of a stage with these options prints at its end."""
    card = ModelCard(stage, {"options": options}, {}, "first", "later")
    state = TrainerState(global_step=1, max_steps=1)
    return end_lines(card, TrainingArguments(output_dir="model", use_cpu=True), state, [])


def evaluation(**options: object) -> EvalConfig:
    """Return the options of the printed command of a run that was trained with these options."""
    text = last_lines("CoCoS", default_values(CoCoSOptions) | {"train_data": "train.jsonl"} | options)
    words = shlex.split(text.split("evaluate it: ")[1])
    assert words[:2] == ["cocos", "eval"]
    return parse_options(EvalConfig, "", words[2:])


@pytest.mark.parametrize("name", CHANGED)
def test_an_option_of_prompts_rules_lengths_and_programs_reaches_the_evaluation(name):
    needed = {
        "feedback_failures": {"feedback": "error"},
        "few_shot_data": {"protocol": "cocos-fewshot"},
        "placebo": {"carry": "counterexamples"},
    }
    assert getattr(evaluation(**needed.get(name, {}), **{name: CHANGED[name]}), name) == CHANGED[name]


def test_no_option_that_the_two_commands_share_is_forgotten():
    shared = set(option_names(CoCoSOptions, "wording", "prompt", "rule", "length", "executor"))
    shared &= set(option_names(EvalConfig, "wording", "prompt", "rule", "length", "executor"))
    untried = {"protocol", "min_isolation", "program_timeout_s", "program_timeout_factor"}
    assert shared == {*CHANGED, *untried}
    assert evaluation().program_timeout_s == EvalConfig.program_timeout_s


@pytest.mark.parametrize("max_steps", [2, 3, 4])
def test_a_continued_run_without_an_update_left_says_so(max_steps):
    card = ModelCard("CoCoS", {"options": {"model_name_or_path": "m"}}, {}, "first", "later")
    state = TrainerState(global_step=3, max_steps=max_steps)
    args = TrainingArguments(output_dir="model", use_cpu=True)
    text = start_lines(card, args, state, torch.nn.Linear(2, 2), "model/checkpoint-3")
    left = "" if max_steps == 4 else ": none is left; raise --max_steps to go on"
    assert f"continues after update 3 (model/checkpoint-3){left}\n" in text


def test_boost_ends_with_the_next_stage_and_its_evaluation_on_a_file_that_only_the_user_knows(tmp_path):
    rows = default_values(BoostOptions) | {"train_data": str(tmp_path / "boost_rows.jsonl")}
    *_, note, stage_2, test = last_lines("Boost", rows).splitlines()
    assert note == "next, with your file of problems for PROBLEMS.jsonl:"
    words = shlex.split(stage_2.removeprefix("stage 2: "))
    assert words[:2] == ["cocos", "train"]
    options = parse_options(CoCoSOptions, "", words[2:])
    assert (options.model_name_or_path, options.train_data) == ("model", "PROBLEMS.jsonl")
    assert "--test_data PROBLEMS.jsonl" in test
    assert "--test_data hub:mbpp/test" in last_lines("CoCoS", rows | {"train_data": "hub:mbpp/train"})
    (tmp_path / "test.jsonl").touch()
    assert f"--test_data {tmp_path}/test.jsonl" in last_lines("Boost", rows)

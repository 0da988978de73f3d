"""The command that a finished training run prints: the model is evaluated as it was trained."""

import shlex

import pytest
from transformers import TrainerState, TrainingArguments

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.command_line import parse_options
from cocos.config.eval_config import EvalConfig
from cocos.config.option import default_values, option_names
from cocos.training.console import end_lines
from cocos.training.model_card import ModelCard

CHANGED = {
    "num_turns": 3,
    "max_completion_length": 64,
    "prompt_file": "wording.yaml",
    "few_shot_data": "examples.jsonl",
    "prompt_tests": 0,
    "visible_tests": 2,
    "feedback": "error",
    "feedback_failures": 2,
    "early_stop": True,
    "on_repeat": "tell",
    "agent": "react",
    "max_repeats": 2,
    "system_prompt": "system.txt",
    "sandbox": "seccomp",
    "program_memory_mb": 2048,
    "program_packages": ["numpy", "pandas"],
    "runtime": "runsc",
}


def evaluation(**options: object) -> EvalConfig:
    """Return the options of the printed command of a run that was trained with these options."""
    record = {"options": default_values(CoCoSOptions) | {"train_data": "train.jsonl"} | options}
    card = ModelCard("CoCoS", record, {}, "first", "later")
    state = TrainerState(global_step=1, max_steps=1)
    text = end_lines(card, TrainingArguments(output_dir="model", use_cpu=True), state, [])
    words = shlex.split(text.split("evaluate it: ")[1])
    assert words[:2] == ["python", "test.py"]
    return parse_options(EvalConfig, "", words[2:])


@pytest.mark.parametrize("name", CHANGED)
def test_an_option_of_prompts_rules_lengths_and_programs_reaches_the_evaluation(name):
    needed = {"feedback_failures": {"feedback": "error"}, "few_shot_data": {"protocol": "cocos-fewshot"}}
    assert getattr(evaluation(**needed.get(name, {}), **{name: CHANGED[name]}), name) == CHANGED[name]


def test_no_option_that_the_two_commands_share_is_forgotten():
    shared = set(option_names(CoCoSOptions, "wording", "prompt", "rule", "length", "executor"))
    shared &= set(option_names(EvalConfig, "wording", "prompt", "rule", "length", "executor"))
    untried = {"protocol", "min_isolation", "program_timeout_s", "program_timeout_factor", "program_python"}
    assert shared == {*CHANGED, *untried}
    assert evaluation().program_timeout_s == EvalConfig.program_timeout_s

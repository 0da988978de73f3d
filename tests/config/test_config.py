"""Options of every command: names and aliases, defaults, config files and flags, and error messages."""

import copy
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from trl import TrlParser

from cocos.assembly.prompts import prompt_protocol
from cocos.config import trl_configs
from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.command_line import OptionParser, check_options, library_option_names, parse_options
from cocos.config.eval_config import EvalConfig, EvalSuiteConfig
from cocos.config.other_names import OTHER_NAMES
from cocos.config.prompt_options import PromptOptions
from cocos.config.training_options import BoostOptions
from cocos.config.trl_configs import INHERITED, BoostConfig, CoCoSConfig, _derive_values
from cocos.files.run_record import run_record
from cocos.generation.huggingface import resolve_dtype
from cocos.problems import Problem
from cocos.training.preflight import checked_options
from tests.support.paths import ROOT

NEEDED = {
    CoCoSConfig: {"train_data": "t.jsonl", "output_dir": "out", "model_name_or_path": "m"},
    BoostConfig: {"train_data": "t.jsonl", "output_dir": "out", "model_name_or_path": "m"},
    EvalConfig: {"test_data": "t.jsonl", "output_dir": "out", "model_name_or_path": "m"},
    BoostDataConfig: {"train_data": "t.jsonl", "output": "rows.jsonl", "model_name_or_path": "m"},
}


def options(config_type, *argv, **needed):
    """The options of a command line with these flags and those that are always needed."""
    needed = {**NEEDED[config_type], **needed}
    flags = [part for name, value in needed.items() for part in (f"--{name}", value)]
    return parse_options(config_type, "description", [*flags, *map(str, argv)])


def error_of(config_type, *argv) -> str:
    with pytest.raises(ValueError) as caught:
        options(config_type, *argv)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


def write_config(tmp_path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


# -- names --


@pytest.mark.parametrize(
    ("config_type", "flag", "value", "name", "expected"),
    [
        (CoCoSConfig, "--rloo_k", 8, "num_generations", 8),
        (CoCoSConfig, "--weight", 0.25, "gamma", 0.25),
        (CoCoSConfig, "--gamma", 0.75, "gamma", 0.75),
        (CoCoSConfig, "--wandb_run_name", "first", "run_name", "first"),
        (CoCoSConfig, "--local_rollout_forward_batch_size", 7, "rollout_batch_size", 7),
        (CoCoSConfig, "--global_batch_size", 64, "gradient_accumulation_steps", 16),  # 64 / 4 per device
        (CoCoSConfig, "--per_device_train_batch_size", 8, "gradient_accumulation_steps", 16),  # 128 / 8
        (CoCoSConfig, "--learning_rate", 3e-6, "learning_rate", 3e-6),
        (CoCoSConfig, "--num_train_epochs", 3, "max_steps", -1),  # TRL: the epochs decide
        (BoostConfig, "--global_batch_size", 64, "gradient_accumulation_steps", 64),  # 64 / 1 per device
        (BoostConfig, "--weight_decay", 0.1, "weight_decay", 0.1),
        (BoostConfig, "--eval_data", "dev.json", "metric_for_best_model", "eval_loss"),
        (CoCoSConfig, "--dev_data", "dev.jsonl", "metric_for_best_model", "eval_acc_t2"),
        (EvalConfig, "--num_turns", 5, "num_turns", 5),
        (EvalConfig, "--batch_size", 3, "batch_size", 3),
    ],
)
def test_a_flag_of_the_reference_commands_has_its_effect(config_type, flag, value, name, expected):
    assert getattr(options(config_type), name) != expected  # so that the flag makes a difference
    assert getattr(options(config_type, flag, value), name) == expected


@pytest.mark.parametrize("config_type", [CoCoSConfig, EvalConfig, BoostDataConfig])
def test_variables_of_the_chat_template_are_json_or_yaml(config_type, tmp_path):
    expected = {"enable_thinking": False}
    written = '{"enable_thinking": false}'
    assert options(config_type, "--chat_template_kwargs", written).chat_template_kwargs == expected
    (tmp_path / "c.yaml").write_text("chat_template_kwargs: {enable_thinking: false}\n")
    assert options(config_type, "--config", tmp_path / "c.yaml").chat_template_kwargs == expected
    for wrong in ("{enable_thinking: false}", "[1]", '{"a b": 1}'):
        with pytest.raises(ValueError, match=re.escape(f"--chat_template_kwargs {wrong} is no ")):
            options(config_type, "--chat_template_kwargs", wrong)


def test_variables_of_a_chat_template_need_a_protocol_that_uses_it():
    given = {"chat_template_kwargs": {"x": 1}}
    with pytest.raises(
        ValueError, match="--chat_template_kwargs needs a chat; choose --protocol chat, repair or fix"
    ):
        prompt_protocol(PromptOptions(**given))
    assert prompt_protocol(PromptOptions(protocol="repair", **given)).is_chat
    with pytest.raises(ValueError, match="--chat_template needs a chat; "):
        prompt_protocol(PromptOptions(chat_template="rag"))
    with pytest.raises(
        ValueError, match="--chat_template: an endpoint renders its chats itself; leave it out"
    ):
        EvalConfig(
            model_name_or_path="m", test_data="t", output_dir="o", generator="api", chat_template="rag"
        )


def test_the_defaults_are_the_papers():
    cocos, boost, evaluation = options(CoCoSConfig), options(BoostConfig), options(EvalConfig)
    assert (cocos.credit, cocos.gamma, cocos.num_turns, cocos.num_generations) == ("trajectory", 0.5, 2, 2)
    assert (cocos.learning_rate, cocos.lr_scheduler_type, cocos.max_steps) == (1e-5, "cosine", 1500)
    assert (cocos.temperature, cocos.beta, cocos.epsilon, cocos.reward) == (0.9, 0.01, 0.2, "fraction")
    # 128 trajectories per update: 4 per device, accumulated 32 times
    assert cocos.per_device_train_batch_size * cocos.gradient_accumulation_steps == 128
    assert (boost.learning_rate, boost.lr_scheduler_type, boost.max_steps) == (2e-5, "cosine", 1000)
    played = (evaluation.temperatures, evaluation.max_completion_length, evaluation.num_turns)
    assert played == ([0.0], 512, 2)


def test_with_dev_data_the_best_checkpoint_has_the_best_accuracy_of_the_last_turn():
    args = options(CoCoSConfig, "--dev_data", "dev.jsonl", "--num_turns", 3)
    assert (
        args.metric_for_best_model == "eval_acc_t3" and args.greater_is_better and args.load_best_model_at_end
    )
    assert args.eval_strategy == args.save_strategy == "steps" and args.eval_steps == args.save_steps
    assert options(CoCoSConfig).eval_strategy == "no"


@pytest.mark.parametrize(("emulated", "bf16"), [(True, False), (False, True)], ids=["T4", "A100"])
def test_bfloat16_is_chosen_on_a_gpu_that_computes_in_it_and_not_where_it_is_emulated(
    monkeypatch, emulated, bf16
):
    for module in (torch.cuda, torch.accelerator):
        monkeypatch.setattr(module, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or not emulated
    )
    args = SimpleNamespace(
        enable_jit_checkpoint=False, dtype=None, use_peft=False, deepspeed=None, use_cpu=False, bf16=None, fp16=False,
        dataloader_pin_memory=True, global_batch_size=None, num_train_epochs=0, hub_token=None,
    )  # fmt: skip
    _derive_values(args)
    assert args.bf16 is bf16
    assert resolve_dtype("auto") == ("bfloat16" if bf16 else "float32")


def test_the_options_that_a_resumed_run_must_keep_are_options():
    names = {field.name for config in (CoCoSConfig, BoostConfig) for field in dataclasses.fields(config)}
    assert set(INHERITED) <= names and {"lora_alpha", "dtype"} <= set(INHERITED)


def test_model_options_reach_from_pretrained_unless_model_init_kwargs_overrides_them():
    args = options(CoCoSConfig, "--dtype", "bfloat16", "--use_peft", "true", "--model_revision", "v2")
    expected = {"revision": "v2", "attn_implementation": None, "dtype": "bfloat16"}
    assert args.model_init_kwargs == expected
    own = ("--model_init_kwargs", '{"dtype": "float16", "use_kernels": true}')
    merged = options(BoostConfig, "--dtype", "bfloat16", "--use_peft", "true", *own).model_init_kwargs
    assert merged == expected | {"revision": "main", "dtype": "float16", "use_kernels": True}


def test_the_few_shot_protocol_reads_its_problems(tmp_path):
    solved = {"text": "Write one.", "code": "def one():\n    return 1", "test_list": ["assert one() == 1"]}
    path = tmp_path / "shots.jsonl"
    path.write_text(json.dumps(solved))
    protocol = prompt_protocol(options(EvalConfig, "--protocol", "cocos-fewshot", "--few_shot_data", path))
    assert "def one():\n    return 1\n[DONE]" in protocol.prefix(Problem("1", "Write two.", ()))
    assert prompt_protocol(options(EvalConfig)).examples == ()


# -- config files --


def test_flags_override_the_config_file(tmp_path):
    path = write_config(tmp_path, "gamma: 0.25\nnum_turns: 3\nlearning_rate: 1e-6\nbeta: 0\n")
    args = options(CoCoSConfig, "--config", path, "--num_turns", 4)
    assert (args.gamma, args.num_turns, args.learning_rate, args.beta) == (0.25, 4, 1e-6, 0.0)
    assert options(CoCoSConfig, f"--config={path}").num_turns == 3


def test_a_config_file_may_use_the_aliases(tmp_path):
    args = options(
        CoCoSConfig, "--config", write_config(tmp_path, "weight: 0.25\nrloo_k: 4\nwandb_run_name: first\n")
    )
    assert (args.gamma, args.num_generations, args.run_name) == (0.25, 4, "first")
    assert options(CoCoSConfig, "--config", tmp_path / "config.yaml", "--gamma", 1).gamma == 1.0


@pytest.mark.parametrize("config_type", [CoCoSOptions, BoostOptions, EvalConfig, BoostDataConfig])
def test_what_other_programs_call_an_option_is_answered_with_one_that_exists(config_type):
    library = library_option_names(getattr(config_type, "library_sources", ()))
    own = {field.name for field in dataclasses.fields(config_type)}
    known, num_answered = own | library, 0
    for other in {name for names in OTHER_NAMES.values() for name in names} - known:
        with pytest.raises(ValueError, match=f"unknown option: --{other}; ") as caught:
            OptionParser(config_type, "", library).parse([f"--{other}", "1"])
        if "did you mean" in str(caught.value):
            assert str(caught.value).split("--")[2].split("?")[0].split()[0] in known
            num_answered += 1
    assert num_answered > 15


def test_required_options_may_come_from_the_config_file(tmp_path):
    path = write_config(tmp_path, "model_name_or_path: m\ntest_data: t.jsonl\noutput_dir: out\n")
    args = parse_options(EvalConfig, "description", ["--config", str(path)])
    assert (args.model_name_or_path, args.test_data, args.output_dir) == ("m", "t.jsonl", "out")


# -- errors --


# Of each command: its options | words of the error | ...
WRONG = r"""
train --gama 0.3 | unknown option: --gama | did you mean --gamma?
train --gama=0.3 | unknown option: --gama; | did you mean --gamma?
eval --num_turn 3 | unknown option: --num_turn | did you mean --num_turns?
eval --xyzzy 3 | unknown option: --xyzzy | see --help
train --lr 1e-5 | unknown option: --lr; did you mean --learning_rate?
train --resume | --resume; did you mean --resume_from_checkpoint last?
train --num-gen 8 | unknown option: --num-gen; did you mean --num_generations?
eval --wandb | unknown option: --wandb; see --help
boost --epochs=2 | unknown option: --epochs; did you mean --num_train_epochs?
eval --max-new-tokens 9 | did you mean --max_completion_length?
eval --eval_data x | did you mean --test_data?
boost-data --program x | did you mean --program_timeout_s?
train --gamma half | --gamma | invalid float value: 'half' | see --help
train --num_turns 2.5 | --num_turns | invalid int value: '2.5' | see --help
train --credit first | --credit | invalid choice: 'first' (choose from  | turn | trajectory | last
train --reward sum | --reward is 'sum'; choose fraction, binary, mixed, count, random | module:function
train --gamma 1.5 | --gamma is 1.5; it must lie in [0, 1]
train --weight -0.1 | --weight is -0.1; it must lie in [0, 1]
train --gamma nan | --gamma is nan; it must lie in [0, 1]
train --num_turns 0 | --num_turns is 0; give 1 or more
eval --num_turns 0 | --num_turns is 0; give 1 or more
train --improvement_bonus 1 | --improvement_bonus needs --credit turn
train --max_at_k 0 | --max_at_k is 0 | 1 or more
train --max_at_k 3 --num_generations 8 | --max_at_k 3 | --num_turns 1
train --max_at_k 4 --num_turns 1 --num_generations 4 | --max_at_k 4 needs --num_generations above it, not 4
train --dtype bfloat16 | without a float32 copy | --use_peft true | deepspeed
boost --dtype float16 | without a float32 copy | leave --dtype out
train --global_batch_size 32 --per_device_train_batch_size 8 --steps_per_generation 1 | --steps_per_generation 1 | 8 trajectories, no multiple of the 32
train --global_batch_size 16 --per_device_train_batch_size 8 --generation_batch_size 24 | --generation_batch_size 24 | leave it out
train --vllm_enable_sleep_mode true | after every turn | leave it out
train --use_transformers_continuous_batching true | cannot stop at [DONE] | leave it out, or give --use_vllm true
train --use_transformers_paged true | cannot stop at [DONE]
train --global_batch_size 6 | --global_batch_size 6 is not divisible by 4 | change one
boost --global_batch_size 8 --per_device_train_batch_size 3 | --global_batch_size 8 is not divisible by 3 | change one
train --global_batch_size 0 | --global_batch_size is 0; give 1 or more
train --per_device_train_batch_size 0 | --per_device_train_batch_size is 0; give 1 or more
train --max_steps -1 | --max_steps is -1; give 1 or more, or --num_train_epochs
train --rloo_k 3 | --global_batch_size: 128 trajectories | divisible by --rloo_k 3
train --num_generations 3 | divisible by --num_generations 3
train --rloo_k 1 | --rloo_k is 1; give 2 or more
train --temperature 0 | --temperature is 0.0; give a finite number above 0
train --temperature inf | --temperature is inf; give a finite number above 0
train --torch_compile true | --torch_compile gives a model without | leave it out
eval --temperature 0 inf | --temperature is [0.0, inf]; give finite numbers
eval --generator api --base_url nonsense | --base_url nonsense is no URL
eval --generator api --base_url http://a:99999/v1 | --base_url http://a:99999/v1
eval --temperature nan | --temperature is [nan]; give finite numbers
eval --program_timeout_s inf | --program_timeout_s is inf; give a number above 0
train --beta -1 | --beta is -1.0; give 0 or more
train --learning_rate 0 | --learning_rate is 0.0; give a number above 0
train --max_infra_share 2 | --max_infra_share is 2.0; it must lie in [0, 1]
eval --program_timeout_s 0 | --program_timeout_s is 0.0; give a number above 0
eval --program_timeout_factor 0 | --program_timeout_factor is 0.0; give a number
eval --program_memory_mb 8 | --program_memory_mb is 8; give 64 or more
eval --executor_workers 0 | --executor_workers is 0; give 1 or more
train --output_dir "" | --output_dir is missing; see --help
train --local_rollout_forward_batch_size x | --local_rollout_forward_batch_size: invalid int value
train --sync_ref_model true | resumed run would differ | leave it out
train --enable_jit_checkpoint true | on SIGTERM and Ctrl-C a run always | leave it out
boost --enable_jit_checkpoint true | on SIGTERM and Ctrl-C a run always | leave it out
train --top_p 0.9 | --top_p is 0.9 | leave it at 1.0 and use --temperature
train --normalize_advantages true | --normalize_advantages has no effect, because | leave it out
train --turn_weights 0 1 | --turn_weights needs --credit turn
train --turn_betas 0.1 | --turn_betas is [0.1] | --num_turns numbers
train --limit 0 | --limit is 0; give 1 or more
train --reward a:b --reward_tests hidden | --reward_tests hidden has no effect on a --reward of your own
eval --test_data "" | --test_data is missing; see --help
eval --batch_size 0 | --batch_size is 0; give 1 or more
eval --num_samples 4 | set --temperature above 0
eval --answers buggy references c.jsonl | --answers has 3 sources of a turn or more each, more than --num_turns 2
eval --base_url http://127.0.0.1/v1 | --base_url needs --generator api
eval --generator api --concurrency 0 | --concurrency
eval --generator api --max_retries -1 | --max_retries
train --config | --config: give the path of a YAML file after it
train --config configs/cocos.yaml --config=configs/quick.yaml | --config is given twice; write the options of both files into one
train --config absent.yaml | --config: | 'absent.yaml' | give a readable YAML file
"""
COMMANDS = {"train": CoCoSConfig, "boost": BoostConfig, "eval": EvalConfig, "boost-data": BoostDataConfig}


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_a_wrong_command_line_raises_one_line_that_names_the_option(line):
    command, *words = line.split(" | ")
    name, *argv = shlex.split(command)
    message = error_of(COMMANDS[name], *argv)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("options_type", [CoCoSOptions, BoostOptions])
@pytest.mark.parametrize("name", ["model_name_or_path", "train_data"])
def test_a_command_needs_model_and_data_but_the_configuration_of_a_trainer_does_not(
    options_type, name, tmp_path, monkeypatch
):
    given = {"model_name_or_path": "m", "train_data": "t.jsonl", "output_dir": str(tmp_path), name: ""}
    monkeypatch.setattr(sys, "argv", ["train", *(f"--{key}={value}" for key, value in given.items())])
    with pytest.raises(ValueError, match=f"^--{name} is missing; see --help$"):
        checked_options(options_type, None)
    full = {CoCoSOptions: CoCoSConfig, BoostOptions: BoostConfig}[options_type]
    assert full(output_dir=str(tmp_path), report_to="none").output_dir == str(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gama: 0.4", ["unknown key in the config file: --gama", "did you mean --gamma?"]),
        ("gamma: half", ["--gamma", "invalid float value: 'half'"]),
        ("gamma: [0.1, 0.2]", ["gamma: one value expected", "[0.1, 0.2]"]),
        ("num_turns: 0", ["--num_turns is 0"]),
        ("gamma: [0.1", ["--config:", "config.yaml", "line 1", "give a readable YAML file"]),
        ("", ["config.yaml: contains no options", "write one per line"]),
        ("gamma: 0.1\nbeta: 0\ngamma: 0.2", ["line 3: the key 'gamma' occurs twice; remove one"]),
        ("config: other.yaml", ["a file cannot name another"]),
        ("2: 3", ["every key is the name of an option"]),
        ("gamma: {a: 1}", ["--gamma", "invalid float value"]),
        *(
            (f"{name}: null", [f"--{name}: the config file gives no value; give one or remove the line"])
            for name in ("num_turns", "max_steps")
        ),
    ],
)
def test_a_config_file_is_checked_like_flags(tmp_path, text, words):
    message = error_of(CoCoSConfig, "--config", write_config(tmp_path, text))
    assert all(word in message for word in words), message


def test_a_config_file_that_is_not_text_is_refused_by_name(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(bytes(range(200, 256)))
    assert "--config: 'utf-8' codec can't decode" in error_of(CoCoSConfig, "--config", path)


def test_a_kl_coefficient_per_turn_keeps_the_reference_model():
    assert options(CoCoSConfig, "--beta", 0, "--turn_betas", 0.25, 0.01).beta == 0.25


def test_without_vllm_transformers_samples_and_one_process_says_what_it_costs(monkeypatch, caplog):
    monkeypatch.setattr(trl_configs, "find_spec", lambda name: None)
    assert not options(CoCoSConfig, "--use_vllm", "true").use_vllm
    [line] = caplog.messages
    assert "vLLM is not installed" in line and "several times as long" in line and "--use_vllm false" in line
    monkeypatch.setenv("RANK", "1")
    assert not options(CoCoSConfig, "--use_vllm", "true").use_vllm and len(caplog.messages) == 1
    monkeypatch.setattr(trl_configs, "find_spec", lambda name: name)
    assert options(CoCoSConfig, "--use_vllm", "true").use_vllm


# -- the files in configs/ --

FOLDERS = (".", "toy", "agents", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
SHIPPED = [path for folder in FOLDERS for path in sorted((ROOT / "configs" / folder).glob("*.yaml"))]
SHIPPED.remove(ROOT / "configs" / "toy" / "study.yaml")  # scripts/study.py reads it, see test_study.py
SHIPPED.remove(ROOT / "configs" / "models.yaml")  # short names, see test_model_names.py
SHIPPED = [path for path in SHIPPED if path.stem != "minutes"]  # scripts/real.py prints them
READERS = {  # the first that the name begins with
    **{"boost_data": BoostDataConfig, "boost": BoostConfig, "feedback_boost_data": BoostDataConfig},
    **{"feedback_boost": BoostConfig, "feedback_eval": EvalConfig},
    **dict.fromkeys(("cocos", "quick", "score", "feedback"), CoCoSConfig),
    **dict.fromkeys(("eval", "reflect", "react", "tools"), EvalConfig),
}


@pytest.mark.parametrize("path", SHIPPED, ids=[str(path.relative_to(ROOT)) for path in SHIPPED])
def test_every_shipped_file_is_read_by_its_command_and_takes_effect(path, monkeypatch):
    monkeypatch.setattr(trl_configs, "find_spec", lambda name: name)  # vLLM is installed
    content = yaml.safe_load(path.read_text())
    config_type = next(reader for name, reader in READERS.items() if path.stem.startswith(name))
    needed = {name: value for name, value in NEEDED[config_type].items() if name not in content}
    flags = [part for name, value in needed.items() for part in (f"--{name}", value)]
    config = parse_options(config_type, "description", ["--config", str(path), *flags])
    for name, value in content.items():
        if isinstance(value, int | float):
            assert getattr(config, name) in (value, [value]), name


def test_every_recipe_for_gpus_samples_with_vllm():
    recipes = [path for path in SHIPPED if path.parent.name == "configs" and path.stem != "quick"]
    trained = [path for path in recipes if READERS.get(path.stem.split("_")[0]) is CoCoSConfig]
    assert len(trained) == 3
    assert all(yaml.safe_load(path.read_text())["use_vllm"] is True for path in trained)


@pytest.mark.parametrize("agent", ["reflect", "react", "tools"])
@pytest.mark.parametrize("num_turns", [1, 2, 7])
def test_an_agents_file_is_played_with_any_number_of_turns(agent, num_turns):
    path = ROOT / "configs/agents" / f"{agent}.yaml"
    config = options(EvalConfig, "--config", path, "--num_turns", num_turns)
    assert (config.agent, config.num_turns) == (agent, num_turns)
    assert 1 <= len(config.temperatures) <= num_turns


@pytest.mark.parametrize("path", SHIPPED, ids=[str(path.relative_to(ROOT)) for path in SHIPPED])
def test_every_shipped_file_starts_with_two_comment_lines(path):
    first, second, third = path.read_text().splitlines()[:3]
    assert first.startswith("# ") and second.startswith("# ") and not third.startswith("#")


def test_the_files_that_the_laboratory_reads_exist():
    for path in (ROOT / "configs" / "toy").glob("*.yaml"):
        for name, value in yaml.safe_load(path.read_text()).items():
            if name.endswith("_data") or name == "model_name_or_path":
                assert (ROOT / value).exists(), f"{path}: {name}"


def test_programs_wait_for_half_of_the_ranks_timeout_and_without_limit_on_one_rank(monkeypatch):
    args = options(CoCoSConfig, "--ddp_timeout", 600)
    assert args.max_executor_wait_s is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert args.max_executor_wait_s == 300


# -- speed --


@pytest.mark.parametrize("options_type", [CoCoSOptions, BoostOptions])
def test_the_names_of_inherited_options_are_those_of_the_full_parser(options_type):
    """They are read from source files; a renamed file or class of TRL would lose some."""
    full = OptionParser(getattr(trl_configs, options_type.full_name), None)
    own = {field.name for field in dataclasses.fields(options_type)}
    inherited = {action.dest for action in full._actions} - own - {"help", "config", "print_config"}
    ours = {"disable_dropout", "num_generations_eval"}  # redeclared in trl_configs.py
    assert inherited - ours <= library_option_names(options_type.library_sources)


@pytest.mark.parametrize(
    "argv", [["--warmup_steps", "5"], ["--warmup-steps=5"], ["--no_use_cpu"], ["--lora_r", "8", "--use_peft"]]
)
def test_an_inherited_option_is_accepted_before_trl_is_imported(argv):
    needed = [part for name, value in NEEDED[CoCoSConfig].items() for part in (f"--{name}", value)]
    assert check_options(CoCoSOptions, "description", [*needed, *argv]).train_data == "t.jsonl"


def test_a_misspelt_inherited_option_is_refused_before_a_missing_one_is_reported():
    with pytest.raises(ValueError, match=r"^unknown option: --warmup_stepz; did you mean --warmup_steps\?$"):
        check_options(CoCoSOptions, "description", ["--warmup_stepz", "3"])


def test_an_unknown_key_of_a_config_file_is_refused_before_trl_is_imported(tmp_path):
    path = write_config(tmp_path, "warmup_steps: 3\nwarmup_stepz: 3\n")
    with pytest.raises(ValueError, match=r"^unknown key in the config file: --warmup_stepz; did you mean"):
        check_options(CoCoSOptions, "description", ["--config", str(path)])


@pytest.mark.parametrize("config_type", [CoCoSConfig, BoostConfig])
def test_the_arguments_are_those_of_trls_parser(config_type):
    """Ours needs no TRL; flags, defaults, choices and numbers of values must still be those of TRL's."""

    class Theirs(TrlParser):
        @staticmethod
        def _parse_dataclass_field(parser, field):
            field = copy.copy(field)
            field.metadata = {name: value for name, value in field.metadata.items() if name != "role"}
            TrlParser._parse_dataclass_field(parser, field)

    theirs = {action.option_strings[0]: action for action in Theirs(config_type)._actions}
    ours = {action.option_strings[0]: action for action in OptionParser(config_type)._actions}
    assert ours.keys() - theirs.keys() == {"--config", "--print_config"} and theirs.keys() <= ours.keys()
    for flag, action in theirs.items():
        for name in ("option_strings", "dest", "required", "default", "choices", "nargs"):
            expected, found = getattr(action, name), getattr(ours[flag], name)
            if name == "choices":
                expected, found = (None if part is None else list(part) for part in (expected, found))
            if name == "default" and flag.startswith("--no_"):
                continue  # the first action of an option decides
            if name == "nargs" and isinstance(found, int):
                continue  # --reward_clip_range has two values, which TRL's parser cannot read
            if name == "nargs" and ours[flag].const is True:
                expected = "?"  # TRL's parser wants a value after an option whose default is None
            assert found == expected, (flag, name)
        if action.type in (int, float):
            assert ours[flag].type is action.type


def test_options_are_checked_without_importing_a_library_that_takes_seconds():
    modules = "training_options, cocos_options, eval_config, boost_data_config, command_line"
    code = f"import sys; from cocos.config import {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not {"torch", "transformers", "trl", "accelerate", "numpy"} & set(done.stdout.split())


# -- merged options, and runs that are started again --


def test_the_merged_options_are_printed_as_a_config_file_that_gives_them_again(tmp_path, capsys):
    first = write_config(tmp_path, "num_turns: 3\nbatch_size: 7\n")
    given = (
        "--batch_size 5 --model_name_or_path m --test_data a.jsonl b.jsonl --output_dir out --temperature 0.5"
    )
    flags = ["--config", str(first), *shlex.split(given)]
    with pytest.raises(SystemExit) as stopped:
        parse_options(EvalSuiteConfig, "description", [*flags, "--print_config"])
    assert stopped.value.code == 0
    path = tmp_path / "merged.yaml"
    path.write_text(capsys.readouterr().out)
    again = parse_options(EvalSuiteConfig, "description", ["--config", str(path)])
    assert again == parse_options(EvalSuiteConfig, "description", flags)
    assert (again.num_turns, again.batch_size, again.test_data) == (3, 5, ["a.jsonl", "b.jsonl"])


def test_the_merged_options_of_a_training_contain_those_of_trl_that_were_given(tmp_path, capsys):
    path = write_config(tmp_path, "warmup_steps: 3\ngamma: 0.25\n")
    with pytest.raises(SystemExit):
        check_options(CoCoSOptions, "description", ["--config", str(path), "--lora_r", "4", "--print_config"])
    content = yaml.safe_load(capsys.readouterr().out)
    assert (content["warmup_steps"], content["lora_r"], content["gamma"]) == (3, 4, 0.25)
    assert "weight_decay" not in content and content["num_turns"] == 2


@pytest.mark.parametrize("config_type", [CoCoSConfig, BoostConfig, EvalConfig, BoostDataConfig])
def test_a_run_is_started_again_from_its_record(config_type, tmp_path):
    flags = {
        CoCoSConfig: ("--rloo_k", 4, "--beta", 0, "--warmup_steps", 7, "--dev_data", "d.jsonl", "--dry_run"),
        BoostConfig: ("--global_batch_size", 64, "--weight_decay", 0.1, "--use_peft", "--lora_r", 4),
        EvalConfig: ("--num_turns", 4, "--temperature", 0.7, 0.2, "--resume", "--task_ids", "a", "b"),
        BoostDataConfig: ("--num_samples", 3),
    }[config_type]
    first = options(config_type, *flags)
    record = tmp_path / "run.json"
    record.write_text(json.dumps(run_record(first), default=str))
    again = parse_options(
        config_type,
        "description",
        ["--config", str(record), f"--{'output' if config_type is BoostDataConfig else 'output_dir'}", "new"],
    )
    changed = {
        field.name
        for field in dataclasses.fields(config_type)
        if getattr(first, field.name, None) != getattr(again, field.name, None)
    }
    assert changed <= {"output_dir", "output", "dry_run", "resume", "logging_dir", "accelerator_config"}
    assert not getattr(again, "resume", False) and not getattr(again, "dry_run", False)


def test_a_path_in_the_home_folder_and_a_bundled_file_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    args = options(
        EvalConfig, "--config", "configs/toy/eval.yaml", test_data="data/toy/dev.jsonl", output_dir="~/out"
    )
    assert args.output_dir == str(tmp_path / "out") and args.batch_size == 80
    assert args.test_data == str(ROOT / "data/toy/dev.jsonl")
    (tmp_path / "data/toy").mkdir(parents=True)
    (tmp_path / "data/toy/dev.jsonl").write_text("")
    assert options(EvalConfig, test_data="data/toy/dev.jsonl").test_data == "data/toy/dev.jsonl"


def test_a_config_without_a_value_for_an_option_that_may_have_none_is_read(tmp_path):
    args = options(EvalConfig, "--config", write_config(tmp_path, "limit: null\nvisible_tests: null\n"))
    assert args.limit is None and args.visible_tests is None


def test_a_token_is_neither_saved_nor_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    for config_type in (CoCoSConfig, BoostConfig):
        args = options(config_type, "--hub_token", "hf_PLANTED")
        torch.save(args, tmp_path / "training_args.bin")  # as transformers does beside every checkpoint
        (tmp_path / "run.json").write_text(json.dumps(run_record(args), default=str))
        assert not any(b"PLANTED" in path.read_bytes() for path in tmp_path.iterdir())
        assert os.environ["HF_TOKEN"] == "hf_PLANTED"  # from which the hub's client takes it
        with pytest.raises(SystemExit):
            options(config_type, "--hub_token", "hf_PLANTED", "--print_config")
        assert "PLANTED" not in capsys.readouterr().out


def test_the_first_runs_configuration_takes_a_dev_set():
    args = options(
        CoCoSConfig, "--config", "configs/quick.yaml", "--dev_data", "dev.jsonl", output_dir="nowhere"
    )
    assert args.eval_steps == args.save_steps == 10 and args.load_best_model_at_end
    with pytest.raises(ValueError, match=r"--save_steps 10.* is no multiple of --eval_steps 4"):
        options(CoCoSConfig, "--config", "configs/quick.yaml", "--dev_data", "dev.jsonl", "--eval_steps", 4)

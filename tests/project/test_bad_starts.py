"""Starts that cannot work: each is one line that names the option and the remedy."""

import json
import shutil
import socket
import sys

import pytest

from cocos.commands.export import export_parser
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.command_line import parse_options
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import TokenTranscripts, load_tokenizer
from cocos.page.page_options import PageOptions
from cocos.training.checkpoints import faults_named
from cocos.training.preflight import checked_options
from cocos.training.run_log import check_loggers
from cocos.training.start import warn_about_dev_data
from tests.support.commands import command, complaint
from tests.support.paths import TOY


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[", "unexpected"),
    ],
)
def test_a_chat_template_that_fails_is_named_with_the_roles_that_it_refuses(template, reason):
    tokenizer = load_tokenizer(str(TOY / "base"))
    tokenizer.chat_template = template
    with pytest.raises(ValueError, match="the chat template refuses the messages user") as caught:
        TokenTranscripts(tokenizer, ()).start("Double a number.", is_chat=True)
    assert reason in str(caught.value) and "choose another --protocol" in str(caught.value)


def test_a_logger_whose_package_is_missing_is_named_before_the_training_starts(monkeypatch):
    monkeypatch.setattr("cocos.training.run_log.find_spec", lambda name: None)
    for name, package in (("mlflow", "mlflow"), ("azure_ml", "azureml"), ("tensorboard", "tensorboard")):
        with pytest.raises(
            ValueError, match=f"--report_to {name}: the package is missing; pip install {package}$"
        ):
            check_loggers([name])
    check_loggers([])


def test_both_loggers_can_be_given_in_a_flag_and_in_a_file(tmp_path):
    file = tmp_path / "a.yaml"
    for given, loggers in (
        (["--report_to", "tensorboard", "wandb"], ["tensorboard", "wandb"]),
        (["--config", file], ["tensorboard", "wandb"]),
        (["--report_to", "tensorboard"], ["tensorboard"]),
        ([], []),
    ):
        file.write_text("report_to: [tensorboard, wandb]\n")
        for config_type in (CoCoSConfig, BoostConfig):
            words = ["--model_name_or_path", "m", "--train_data", "t", "--output_dir", "o", *map(str, given)]
            assert parse_options(config_type, "", words).report_to == loggers


@pytest.mark.parametrize(
    ("config_type", "options", "words"),
    [
        (CoCoSConfig, {"eval_steps": 3}, "--eval_steps has no effect without --dev_data; give it, or leave"),
        (BoostConfig, {"eval_steps": 3}, "--eval_steps has no effect without --eval_data; give it, or leave"),
        (CoCoSConfig, {"train_data": "a", "dev_data": "a"}, "--dev_data is --train_data, so what is trained"),
        (BoostConfig, {"train_data": "a", "eval_data": "a"}, "--eval_data is --train_data, so what is"),
        (CoCoSConfig, {"train_data": "a", "dev_data": "b", "eval_steps": 3}, ""),
        (CoCoSConfig, {}, ""),
    ],
)
def test_data_of_the_evaluation_that_cannot_be_meant_is_warned_about(config_type, options, words, caplog):
    steps = {"save_steps": 3} if "eval_steps" in options else {}
    warn_about_dev_data(config_type(output_dir="o", **options, **steps))
    assert words in caplog.text and bool(words) == bool(caplog.text)


@pytest.mark.parametrize("config_type", [CoCoSConfig, BoostConfig])
@pytest.mark.parametrize("steps", [{"eval_steps": 3}, {"eval_steps": 3, "save_steps": 4}])
def test_checkpoints_that_are_not_evaluated_are_refused_by_the_options_that_were_given(config_type, steps):
    data = "dev_data" if config_type is CoCoSConfig else "eval_data"
    with pytest.raises(
        ValueError, match=r"^--save_steps [\d.]+ is no multiple of --eval_steps [\d.]+: the best"
    ):
        config_type(output_dir="o", **{data: "d"}, **steps)
    assert config_type(output_dir="o", **{data: "d"}, save_steps=3).eval_steps == 3  # follows


@pytest.mark.processes
def test_a_port_in_use_or_out_of_range_is_named_with_its_option():
    for port in (0, 99999):
        with pytest.raises(ValueError, match=rf"^--port is {port}; give 1 to 65535$"):
            PageOptions(port=port, roots=[str(TOY)])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = complaint(sys.executable, "-m", "cocos", "page", "--port", port, "--roots", TOY)
    assert f"--address 127.0.0.1 --port {port}: Address already in use; choose another --port" in line


@pytest.mark.processes
def test_a_port_of_the_launcher_that_is_in_use_is_named_with_its_option(tmp_path, problems_file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        done = command(
            *(sys.executable, "train.py", "--model_name_or_path", TOY / "base"),
            *("--train_data", problems_file, "--output_dir", tmp_path / "out", "--ddp_timeout", 20),
            **ranks | {"MASTER_PORT": str(taken.getsockname()[1])},
        )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "the processes of this run cannot connect (" in done.stderr
    assert "choose another --master_port of the launcher" in done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ("[1]", "a JSON list; give an object"),
        ('{"scheduler": {}}', "its scheduler would replace --lr_scheduler_type"),
        (None, "cannot be read (No such file or directory); give a JSON file"),
    ],
)
def test_a_damaged_file_of_deepspeed_is_named_with_its_option(content, words, tmp_path, monkeypatch):
    path = tmp_path / "zero.json"
    if content is not None:
        path.write_text(content)
    given = f"--model_name_or_path=m --train_data=t --output_dir={tmp_path}/out --deepspeed={path}"
    monkeypatch.setattr(sys, "argv", ["train", *given.split()])
    monkeypatch.setenv("LOCAL_RANK", "0")
    with pytest.raises(ValueError) as caught:
        checked_options(CoCoSOptions, None)
    assert str(caught.value).startswith(f"--deepspeed {path}: ") and words in str(caught.value)


def test_a_checkpoint_of_another_model_is_named():
    args = CoCoSConfig(output_dir="out")
    for reason in (
        "Error(s) in loading state_dict for LlamaForCausalLM:\n\tsize mismatch for model.embed_tokens.weight",
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    ):
        expected = pytest.raises(
            ValueError, match=r"^--resume_from_checkpoint c-4: its tensors are not those"
        )
        with expected, faults_named(args, "out", "c-4"):
            raise RuntimeError(reason)
        with pytest.raises(RuntimeError, match="size"), faults_named(args, "out"):
            raise RuntimeError(reason)


def test_a_token_without_an_embedding_is_named(tiny_model):
    tokenizer = load_tokenizer(tiny_model)
    tokenizer.add_tokens(["Double"])
    generator = HuggingFaceGenerator(load_model(tiny_model), tokenizer, max_completion_length=4)
    prompt = generator.start("Double a number.", is_chat=False)
    with pytest.raises(ValueError, match=r"makes the id \d+ \('Double'\), but the model has \d+ ids"):
        generator.generate([prompt], 0.0)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"vocab_size": -1}, "config.json has a size below 0 (Trying to create tensor with negative dimension",),
        ({"num_attention_heads": 0}, "no model can be made of its config.json (ZeroDivisionError: "),
        ({"hidden_size": "big"}, "no model can be made of its config.json (StrictDataclassFieldValidationError: ",),
    ],
)  # fmt: skip
def test_a_config_with_impossible_sizes_is_named(tiny_model, tmp_path, entry, words):
    folder = shutil.copytree(tiny_model, tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | entry))
    with pytest.raises(ValueError) as caught:
        load_model(str(folder))
    assert words in str(caught.value)


def test_the_options_of_other_commands_are_met_with_the_usage_of_a_command_without_them():
    for words in (["--model_name_or_path", "m", "--output_dir", "o"], ["m", "--model_name_or_path=o"]):
        with pytest.raises(
            ValueError, match=r"^unknown option: --model_name_or_path; usage: \S.* MODEL FOLDER \[options\]$"
        ):
            export_parser().parse_args(words)
    with pytest.raises(ValueError, match=r"^unknown option: --dtpe; did you mean --dtype\?$"):
        export_parser().parse_args(["--dtpe", "bfloat16"])

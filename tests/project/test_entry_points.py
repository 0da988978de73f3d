"""The commands of the README, run as their users run them, on a tiny model."""

import importlib.util
import json
import shutil
import sys

import pytest

from cocos.problems import load_problems
from tests.support.commands import command, complaint, free_port, succeed
from tests.support.paths import TOY

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory):
    """Boost rows in the released README's format: a JSON list whose prompts end with the bare marker."""
    rows = [
        {"prompt": "double a number\n\n[BEGIN]", "completion": "def f(x):\n    return x\n[DONE]"},
        {
            "prompt": "double a number\n\n[BEGIN]\ndef f(x):\n    return x\n[DONE]\n\nPlease correct it.\n\n[CORRECT]",
            "completion": "def f(x):\n    return 2 * x\n[DONE]",
        },
    ] * 4
    path = tmp_path_factory.mktemp("rows") / "boost.json"
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.skipif(shutil.which("g++") is None, reason="deepspeed compiles its CPU operators with g++")
@pytest.mark.nightly
def test_the_reference_boost_command_works_as_written(tiny_model, rows_file, tmp_path):
    succeed(
        *("deepspeed", "--num_gpus", 1, "--master_port", free_port(), "./boost/boost_train.py"),
        *("--deepspeed", "configs/deepspeed/zero2.json"),
        *("--model_name_or_path", tiny_model),
        *("--global_batch_size", 4),
        *("--train_data", rows_file),
        *("--eval_data", rows_file),
        *("--output_dir", tmp_path / "boost"),
        *("--report_to", "wandb"),
        *("--wandb_run_name", "boost-reference"),
        *("--weight_decay", 0.1),
        *("--max_steps", 2),  # the one thing added: 1000 updates are the default
    )
    run = json.loads((tmp_path / "boost/run.json").read_text())["options"]
    assert run["weight_decay"] == 0.1 and run["run_name"] == "boost-reference"
    assert run["gradient_accumulation_steps"] == 4 and run["deepspeed"] == "configs/deepspeed/zero2.json"
    assert (tmp_path / "boost/model.safetensors").exists()
    [state] = (tmp_path / "boost").glob("checkpoint-*/trainer_state.json")
    assert any("eval_loss" in log for log in json.loads(state.read_text())["log_history"])


@pytest.mark.skipif(shutil.which("g++") is None, reason="deepspeed compiles its CPU operators with g++")
@pytest.mark.nightly
def test_the_reference_training_command_works_as_written(tiny_model, problems_file, tmp_path):
    succeed(
        *("deepspeed", "--num_gpus", 2, "--master_port", free_port(), "train.py"),
        *("--deepspeed", "configs/deepspeed/zero2.json"),
        *("--model_name_or_path", tiny_model),
        *("--local_rollout_forward_batch_size", 4),
        *("--train_data", problems_file),
        *("--output_dir", tmp_path / "cocos"),
        *("--report_to", "wandb"),
        *("--wandb_run_name", "cocos-reference"),
        *("--rloo_k", 4),
        *("--weight", 0.25),
        # added, to be done within a test: the defaults are 1500 updates of 128 trajectories and 512 tokens
        *("--max_steps", 1, "--global_batch_size", 8, "--max_completion_length", 4),
        *("--max_truncated_share", 1),
    )
    run = json.loads((tmp_path / "cocos/run.json").read_text())["options"]
    assert run["num_generations"] == 4 and run["gamma"] == 0.25 and run["rollout_batch_size"] == 4
    assert run["gradient_accumulation_steps"] == 1
    assert (tmp_path / "cocos/model.safetensors").exists()


def test_the_reference_evaluation_command_works_as_written(problems_file, tmp_path):
    done = succeed(
        *(sys.executable, "test.py"),
        *("--output_dir", tmp_path / "eval"),
        *("--test_data", problems_file),
        *("--num_turns", 3),
        *("--batch_size", 4),
        *("--model_name_or_path", TOY / "base"),
        *("--max_completion_length", 40),
    )
    rows = [json.loads(line) for line in (tmp_path / "eval/samples.jsonl").read_text().splitlines()]
    assert [row["task_id"] for row in rows] == [p.task_id for p in load_problems(problems_file)]
    assert all(len(row["turns"]) == 3 for row in rows)
    metrics = json.loads((tmp_path / "eval/metrics.json").read_text())
    right = [
        sum(turn["is_right"] for turn in turns) / 6
        for turns in zip(*(row["turns"] for row in rows), strict=True)
    ]
    assert [metrics["metrics"][f"acc_t{t}"]["value"] for t in (1, 2, 3)] == pytest.approx(right)
    run = json.loads((tmp_path / "eval/run.json").read_text())
    assert (
        run["feedback"] == "none" and run["isolation"] and len(run["data_sha256"][str(problems_file)]) == 64
    )
    assert run["options"]["protocol"] == "cocos" and "torch" in run["versions"]
    assert "acc after" in done.stdout and (tmp_path / "eval/report.png").stat().st_size > 5000


def test_boost_rows_are_made_and_trained_on(problems_file, tmp_path):
    rows = tmp_path / "rows.jsonl"
    succeed(
        *(sys.executable, "scripts/make_boost_data.py", "--config", "configs/toy/boost_data.yaml"),
        *("--train_data", problems_file, "--output", rows),
    )
    made = [json.loads(line) for line in rows.read_text().splitlines()]
    first = [row for row in made if row["prompt"].endswith("[BEGIN]\n")]
    second = [row for row in made if row["prompt"].endswith("[CORRECT]\n")]
    assert len(first) == len(second) == len(made) // 2 > 0
    succeed(
        *(sys.executable, "boost/boost_train.py", "--config", "configs/toy/boost.yaml"),
        *("--train_data", rows, "--output_dir", tmp_path / "boost", "--max_steps", 1),
    )
    assert (tmp_path / "boost/model.safetensors").exists()


def test_cocos_trains_from_a_config_and_says_how_to_evaluate(problems_file, tmp_path):
    out = tmp_path / "cocos"
    done = succeed(
        *(sys.executable, "train.py", "--config", "configs/toy/cocos.yaml"),
        *("--model_name_or_path", TOY / "base"),
        *("--train_data", problems_file, "--dev_data", problems_file, "--output_dir", out),
        *("--max_steps", 2, "--global_batch_size", 8, "--per_device_train_batch_size", 4, "--eval_steps", 1),
        *("--save_steps", 1, "--feedback", "error", "--early_stop", "true", "--prompt_tests", 1),
    )
    run = json.loads((out / "run.json").read_text())
    assert run["options"]["credit"] == "turn" and run["feedback"] == "error" and run["options"]["early_stop"]
    command = done.stdout.rstrip().split("evaluate it: ")[1]
    assert command.endswith("--prompt_tests 1 --feedback error --early_stop true --max_completion_length 24")
    state = json.loads((out / "checkpoint-2/trainer_state.json").read_text())
    assert any(log.get("sampled_t2", 1) < 1 for log in state["log_history"])
    assert set(run["data_sha256"]) == {str(problems_file)}


@pytest.mark.parametrize(
    "script", ["train.py", "boost/boost_train.py", "test.py", "scripts/make_boost_data.py"]
)
def test_the_help_fits_on_two_pages_and_lists_our_options_in_sections(script):
    lines = succeed(sys.executable, script, "--help").stdout.splitlines()
    assert len(lines) <= 120 and max(map(len, lines)) <= 118
    assert "run:" in lines or script.startswith("scripts")
    assert "programs under test:" in lines or script.startswith("boost")


def test_help_all_lists_the_options_of_the_libraries_too():
    lines = succeed(sys.executable, "train.py", "--help_all").stdout.splitlines()
    assert "options of TRL and transformers:" in lines and any("--warmup_steps" in line for line in lines)


@pytest.mark.nightly
def test_credit_last_needs_whole_groups_on_every_device(tiny_model, problems_file, tmp_path):
    done = command(
        *("torchrun", "--nproc_per_node", 2, "--master_port", free_port(), "train.py"),
        *(
            "--model_name_or_path",
            tiny_model,
            "--train_data",
            problems_file,
            "--output_dir",
            tmp_path / "out",
        ),
        *("--credit", "last", "--rloo_k", 8, "--global_batch_size", 8, "--report_to", "none"),
        "--dry_run",
    )
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert "--credit last needs whole groups on a device: 4 trajectories" in done.stderr


@pytest.mark.parametrize(
    ("package", "words"),
    [("bitsandbytes", ("--use_peft", "--load_in_4bit")), ("liger_kernel", ("--use_liger_kernel",))],
)
def test_a_missing_package_is_named_in_one_line(package, words, problems_file, tmp_path):
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    line = complaint(
        *(sys.executable, "train.py", "--model_name_or_path", TOY / "base", "--train_data", problems_file),
        *("--output_dir", tmp_path / "out", "--report_to", "none", "--global_batch_size", 8, *words),
    )
    assert f"pip install -U {package}" in line or f"pip install {package.replace('_', '-')}" in line

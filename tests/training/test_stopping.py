"""Ctrl-C in training: once, it saves a checkpoint; twice, it stops at once. SIGTERM, a full disk or memory, a missing login."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from cocos.training.checkpoints import faults_named
from tests.support.commands import command, succeed
from tests.support.paths import TOY
from tests.support.training import DESTRUCTIVE_AFTER_ONE, process, short_run

pytestmark = pytest.mark.processes

# Source that a run executes before its script: signals of a terminal at known places.
CTRL_C_IN_ROLLOUT = """
import os, signal
from cocos.executor import Executor
submit, set_limits, sent, references = Executor.submit, Executor.set_limits, [], []
def limited(executor, *limits):  # the references have run
    references.append(executor.stats.programs)
    return set_limits(executor, *limits)
def signalled(executor, program):  # programs of update 2 are being executed
    if len(sent) < {times} and references and executor.stats.programs - references[0] > 16:
        sent.append(os.killpg(os.getpid(), signal.SIGINT))  # as a terminal does
    return submit(executor, program)
Executor.submit, Executor.set_limits = signalled, limited
"""
CTRL_C_IN_BOOST = """
import os, signal
from trl import SFTTrainer
evaluate = SFTTrainer.evaluate
def signalled(trainer, *inputs, **names):  # in the evaluation after update 2, which is worse than the first
    if trainer.state.global_step == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return evaluate(trainer, *inputs, **names)
SFTTrainer.evaluate = signalled
"""


MICRO_BATCHES = """
import os, signal
from cocos.training.trainer import CoCoSTrainer
rows, step = CoCoSTrainer.rows, CoCoSTrainer.training_step
def signalled(trainer, trajectories):  # the samples of update {update} are there
    if trainer.state.global_step == {update} - 1:
        os.kill(os.getpid(), signal.{signal})
    return rows(trainer, trajectories)
def counted(trainer, *inputs):
    print("micro-batch of update", trainer.state.global_step + 1)
    return step(trainer, *inputs)
CoCoSTrainer.rows, CoCoSTrainer.training_step = signalled, counted
"""
IN_ROLLOUT = """
import os, signal
from cocos.generation import huggingface
sample_ids, steps = huggingface.sample_ids, []
def signalled(*inputs):  # step 0: never
    steps.append(1)
    if len(steps) == {step}:
        os.kill(os.getpid(), signal.SIGTERM)
    print("sampling step", len(steps), flush=True)
    return sample_ids(*inputs)
huggingface.sample_ids = signalled
"""
FULL_MEMORY = """
import torch
from cocos.training.trainer import CoCoSTrainer
rows = CoCoSTrainer.rows
def full(trainer, trajectories):  # in update 2
    if trainer.state.global_step == 1:
        torch.empty(2**50)
    return rows(trainer, trajectories)
CoCoSTrainer.rows = full
"""


def end(running):
    """Wait for a run; return its exit status, and its lines on stderr without those of loading weights and the isolation."""
    done = running.finish()
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    others = ("Loading weights", "programs isolated by")
    said = [line for line in done.stderr.splitlines() if line and not any(part in line for part in others)]
    return done.returncode, said


def boost(rows, out, *words):
    """Options of a short run of boost_train.py."""
    return (
        *("boost/boost_train.py", "--config", "configs/toy/boost.yaml", "--train_data", rows),
        *("--global_batch_size", 8, "--per_device_train_batch_size", 8, "--output_dir", out, *words),
    )


def test_ctrl_c_while_programs_are_executed_ends_the_update_and_saves_a_checkpoint(data, tmp_path):
    """The executor's workers and the data loader's, which the terminal signals too, say nothing."""
    out = tmp_path / "out"
    before = CTRL_C_IN_ROLLOUT.format(times=1)
    status, lines = end(
        process(
            "train.py", *short_run(data, out, "--max_steps", 9, "--dataloader_num_workers", 1), before=before
        )
    )
    assert status == 130
    assert lines == [
        "stopping and saving a checkpoint; Ctrl-C again stops at once",
        "stopped by Ctrl-C after update 2 of 9; continue with --resume_from_checkpoint last",
    ]
    assert sorted(path.name for path in out.iterdir()) == ["checkpoint-2", "log.jsonl", "run.json"]
    state = json.loads((out / "checkpoint-2/trainer_state.json").read_text())
    logs = [log for log in state["log_history"] if "loss" in log]
    assert [log["step"] for log in logs] == [1, 2] and logs[1]["infra_failures"] == 0


def test_a_second_ctrl_c_stops_at_once(data, tmp_path):
    before = CTRL_C_IN_ROLLOUT.format(times=2)
    status, lines = end(
        process("train.py", *short_run(data, tmp_path / "out", "--max_steps", 9), before=before)
    )
    assert status == 130
    assert lines[1:] == ["stopped at once; updates since the last checkpoint are lost"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["log.jsonl", "run.json"]


def test_a_stopped_boost_run_keeps_its_last_checkpoint_beside_a_better_one(rows, tmp_path):
    """With --save_total_limit 1, transformers would delete the last one and keep the best only."""
    words = boost(rows, tmp_path / "out", "--eval_data", rows, "--max_steps", 5, "--eval_steps", 1)
    words += ("--save_steps", 1, "--save_total_limit", 1)
    for name, value in DESTRUCTIVE_AFTER_ONE.items():
        words += (f"--{name}", json.dumps(value) if isinstance(value, dict) else value)
    status, lines = end(process(*words, before=CTRL_C_IN_BOOST))
    assert status == 130
    assert lines[-1] == "stopped by Ctrl-C after update 2 of 5; continue with --resume_from_checkpoint last"
    state = json.loads((tmp_path / "out/checkpoint-2/trainer_state.json").read_text())
    assert state["global_step"] == 2 and state["best_global_step"] == 1
    assert not (tmp_path / "out/model.safetensors").exists()


@pytest.mark.parametrize(
    ("signal", "update", "saved", "end_of_line"),
    [
        ("SIGHUP", 2, ["checkpoint-1"], "after update 1 of 9; continue with --resume_from_checkpoint last"),
        ("SIGTERM", 1, [], "after update 0 of 9; start it again as before"),
    ],
)
def test_a_signal_ends_a_run_after_the_micro_batch_and_saves_the_last_whole_update(
    data, tmp_path, signal, update, saved, end_of_line
):
    words = short_run(
        data, tmp_path / "out", "--max_steps", 9, "--save_steps", 9, "--per_device_train_batch_size", 4
    )
    running = process("train.py", *words, before=MICRO_BATCHES.format(signal=signal, update=update))
    done = running.finish()
    assert done.returncode == {"SIGTERM": 143, "SIGHUP": 129}[signal] and "Traceback" not in done.stderr, (
        done.stderr[-3000:]
    )
    micro_batches = [line for line in done.stdout.splitlines() if line.startswith("micro-batch of update")]
    whole = [f"micro-batch of update {number}" for number in range(1, update) for _ in range(4)]
    assert micro_batches == [*whole, f"micro-batch of update {update}"], "one of four micro-batches"
    assert done.stderr.splitlines()[-1] == f"stopped by {signal} {end_of_line}"
    assert [path.name for path in (tmp_path / "out").glob("checkpoint-*")] == saved


def test_a_signal_while_tokens_are_sampled_is_answered_before_the_next_one_and_the_run_continues(
    data, tmp_path
):
    out, whole = tmp_path / "out", tmp_path / "whole"
    constant = ("--lr_scheduler_type", "constant")  # in runs of 2 and of 9 updates
    done = process(
        "train.py", *short_run(data, whole, *constant, "--max_steps", 2), before=IN_ROLLOUT.format(step=0)
    ).finish()
    assert done.returncode == 0, done.stderr[-3000:]
    num_steps = done.stdout.count("sampling step ")
    last = num_steps - 5  # in the last turn of update 2
    words = short_run(data, out, *constant, "--max_steps", 9, "--save_steps", 9)
    done = process("train.py", *words, before=IN_ROLLOUT.format(step=last)).finish()
    assert done.returncode == 143 and "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.stdout.count("sampling step ") == last
    line = "stopped by SIGTERM after update 1 of 9; continue with --resume_from_checkpoint last"
    assert done.stderr.splitlines()[-1] == line
    assert [path.name for path in out.glob("checkpoint-*")] == ["checkpoint-1"]
    resume = ("--resume_from_checkpoint", "last", "--accept_changes", "true")
    succeed(sys.executable, "train.py", *short_run(data, out, *constant, "--max_steps", 2, *resume))
    expected, continued = (load_file(folder / "model.safetensors") for folder in (whole, out))
    assert all(torch.equal(continued[name], tensor) for name, tensor in expected.items())


def test_a_full_memory_names_the_options_to_lower_and_how_to_go_on(data, tmp_path):
    words = short_run(data, tmp_path / "out", "--max_steps", 9, "--save_steps", 1)
    status, lines = end(process("train.py", *words, before=FULL_MEMORY))
    assert status == 2
    [error] = [line for line in lines if line.startswith("error: ")]
    assert error.startswith("error: the memory of the machine is full (")
    assert "allocate 4503599627370496 bytes" in error
    assert "; lower --per_device_train_batch_size, or --rollout_batch_size if it was full while" in error
    assert "; continue with --resume_from_checkpoint last --accept_changes true (" in error
    assert not (tmp_path / "out/.lock").exists()


def test_a_full_gpu_is_named_and_boost_has_no_rollout(tmp_path):
    args = SimpleNamespace(output_dir=tmp_path)
    with (
        pytest.raises(
            ValueError, match=r"^the memory of the GPU is full \(CUDA out of memory\. Tried"
        ) as raised,
        faults_named(args, tmp_path),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has 1 GiB free")
    assert str(raised.value).endswith("GPU 0 has 1 GiB free); lower --per_device_train_batch_size")
    with pytest.raises(RuntimeError, match="another error"), faults_named(args, tmp_path):
        raise RuntimeError("another error")


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 19 MB: room for one checkpoint of the laboratory's model, and a half."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk: run the tests as root")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=19m", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(
            f"no small disk can be mounted here ({done.stderr.strip()}): run the tests where mount works"
        )
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_is_named_and_the_last_whole_checkpoint_continues(rows, small_disk):
    words = boost(rows, small_disk / "out", "--max_steps", 3, "--save_strategy", "steps", "--save_steps", 1)
    words += ("--save_total_limit", 3)
    done = command(sys.executable, *words)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-2000:]
    [error] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert f"{small_disk}/out/checkpoint-2: the disk is full" in error
    assert "free some space" in error and "--resume_from_checkpoint last" in error
    assert [path.name for path in (small_disk / "out").glob("checkpoint-*")] == ["checkpoint-1"]

    elsewhere = small_disk.parent / "more"
    resume = ("--resume_from_checkpoint", small_disk / "out/checkpoint-1")
    words = boost(
        rows, elsewhere, *resume, "--max_steps", 2, "--save_strategy", "no", "--accept_changes", "true"
    )
    assert "continues after update 1" in succeed(sys.executable, *words).stdout
    moved = load_file(elsewhere / "model.safetensors")
    saved = load_file(small_disk / "out/checkpoint-1/model.safetensors")
    assert any(not torch.equal(moved[name], tensor) for name, tensor in saved.items())


def test_a_full_disk_at_the_end_names_the_output_folder(rows, small_disk):
    (small_disk / "other").write_bytes(bytes(16 << 20))
    done = command(sys.executable, *boost(rows, small_disk / "out", "--max_steps", 1))
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert f"error: {small_disk}/out: the disk is full" in done.stderr


def test_wandb_without_a_login_is_refused_before_the_model_is_loaded(rows, tmp_path):
    words = boost(rows, tmp_path / "out", "--report_to", "wandb")
    done = command(sys.executable, *words, WANDB_MODE=None, WANDB_API_KEY=None, HOME=str(tmp_path))
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert [line for line in done.stderr.splitlines() if line] == [
        "error: --report_to wandb: not logged in; run `wandb login`, set WANDB_MODE=offline to log to a "
        "folder, or choose --report_to tensorboard (COCOS_TRACEBACK=1 shows where)"
    ]
    assert not (tmp_path / "out").exists()


def test_a_damaged_model_is_one_line_before_anything_is_made(data, rows, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(TOY / "base", model)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    for words in (
        boost(rows, tmp_path / "out", "--model_name_or_path", model),
        ("train.py", *short_run(data, tmp_path / "out", "--max_steps", 1, "--model_name_or_path", model)),
    ):
        done = command(sys.executable, *words)
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-2000:]
        assert f"{weights}: the file is damaged" in done.stderr
        assert not (tmp_path / "out").exists()


def test_lora_options_without_use_peft_warn(caplog):
    from trl import ModelConfig

    from cocos.training.start import warn_about_unused_lora_options

    warn_about_unused_lora_options(ModelConfig(lora_r=8, use_peft=True))
    warn_about_unused_lora_options(ModelConfig())
    assert not caplog.messages
    warn_about_unused_lora_options(ModelConfig(lora_r=8, lora_target_modules=["q_proj"]))
    assert "--lora_r, --lora_target_modules: no effect without --use_peft" in caplog.text

"""kill -9 of a rank, of the executor's processes, of the whole run: nothing is left running, nothing is corrupt, and the next
start goes on.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress

import pytest

from cocos.executor import Executor, ExecutorError
from tests.support.commands import BIN, free_port
from tests.support.executor import assert_gone, watched, workers
from tests.support.paths import ROOT, TOY
from tests.support.training import SIGNAL_IN_UPDATE

pytestmark = pytest.mark.processes

RUN = """
import os, runpy, sys
sys.path.insert(0, os.getcwd())
import tests.support.deepspeed_without_spinning
if os.environ['RANK'] == '1' and '--resume_from_checkpoint' not in sys.argv:
    {before}
runpy.run_path('train.py', run_name='__main__')
"""


def launch(script, data, *words):
    """Two ranks under ZeRO-2 on the processor, saving after every update."""
    options = (
        *("--deepspeed", "configs/deepspeed/zero2.json", "--config", "configs/toy/cocos.yaml"),
        *("--model_name_or_path", TOY / "base", "--train_data", data / "train.jsonl", "--max_steps", 3),
        *("--dev_data", "", "--save_strategy", "steps", "--save_steps", 1, "--max_completion_length", 40),
        *("--global_batch_size", 16, "--per_device_train_batch_size", 8, "--disable_tqdm", True),
    )
    words = ("deepspeed", "--num_gpus", 2, "--master_port", free_port(), script, *options, *words)
    environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    return subprocess.Popen(
        [str(word) for word in words],
        cwd=ROOT,
        env=os.environ | environment | {"HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="deepspeed compiles its CPU operators with g++")
@pytest.mark.nightly
def test_after_kill_9_of_a_rank_the_launcher_ends_the_rest_and_the_next_start_goes_on(data, tmp_path):
    script = tmp_path / "killed.py"
    before = SIGNAL_IN_UPDATE.format(update=2, signal="SIGKILL")
    script.write_text(RUN.format(before=f"exec({before!r})"))
    killed = launch(script, data, "--output_dir", tmp_path / "out")
    with watched(killed.pid) as started:
        said, _ = killed.communicate(timeout=300)
    assert killed.returncode != 0 and len(started) >= 6, said[-2000:]  # launchers, ranks, workers
    assert_gone(started)
    assert [path.name for path in (tmp_path / "out").glob("checkpoint-*")] == ["checkpoint-1"]
    assert not (tmp_path / "out/model.safetensors").exists()

    resumed = launch(script, data, "--output_dir", tmp_path / "out", "--resume_from_checkpoint", "last")
    with watched(resumed.pid) as started:
        said, _ = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, said[-3000:]
    assert_gone(started)
    state = json.loads((tmp_path / "out/checkpoint-3/trainer_state.json").read_text())
    logs = [log for log in state["log_history"] if "loss" in log]
    assert [log["step"] for log in logs] == [1, 2, 3] and [log["episodes"] for log in logs] == [16, 32, 48]
    assert {path.name for path in (tmp_path / "out/checkpoint-3").glob("rng_state_*")} == {
        "rng_state_0.pth",
        "rng_state_1.pth",
    }
    assert (tmp_path / "out/model.safetensors").exists()


def test_a_run_goes_on_when_its_executors_processes_are_killed(make_trainer):
    """Once in every update, while programs are queued: none is lost, and the weights are those of a quiet run."""

    def trained(is_disturbed):
        with Executor(num_workers=2) as executor:
            trainer = make_trainer(runner=executor)
            played = trainer.player.sample_beside

            def disturbed(*given):
                for pid in workers(executor):
                    os.kill(pid, signal.SIGKILL)
                return played(*given)

            if is_disturbed:
                trainer.player.sample_beside = disturbed
            trainer.train()
            return trainer.model.state_dict(), executor.stats

    quiet, _ = trained(is_disturbed=False)
    weights, stats = trained(is_disturbed=True)
    assert stats.worker_restarts >= 2 and stats.infra_failures == 0
    assert all((weights[name] == tensor).all() for name, tensor in quiet.items())


@pytest.mark.nightly
def test_a_run_stops_with_a_clear_error_when_its_executors_processes_keep_being_killed(make_trainer):
    stop = threading.Event()

    def kill_all():
        while not stop.wait(0.001):
            for pid in workers(executor):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    with Executor(num_workers=2) as executor:
        trainer = make_trainer(runner=executor)
        killer = threading.Thread(target=kill_all)
        killer.start()
        try:
            with pytest.raises(ExecutorError, match=r"failure of the executor|failing executor"):
                trainer.train()
        finally:
            stop.set()
            killer.join()
    assert trainer.state.global_step == 0

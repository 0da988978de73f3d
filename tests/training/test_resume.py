"""A run that is interrupted, however and however often, ends as if it had not been."""

import json
import shutil
import signal
from itertools import pairwise

import pytest
import torch
from safetensors.torch import load_file, save_file

from cocos.executor import Executor
from cocos.training.changes import Change, change_evaluation
from cocos.training.checkpoints import checkpoint_fault, find_checkpoint, write_checksums
from tests.support.executor import assert_gone, watched
from tests.support.training import SIGNAL_IN_UPDATE, long_run, process, toy_problems

pytestmark = pytest.mark.processes

EXIT_SIGTERM = 143
SECONDS = ("train_runtime", "peak_memory_mb", "step_time")

# Source that a run executes before train.py: it is killed at a known place.
SIGTERM_IN_BOOST = """
import os, signal
from trl import SFTTrainer
step = SFTTrainer.training_step
def signalled(trainer, *inputs):
    if trainer.state.global_step == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    return step(trainer, *inputs)
SFTTrainer.training_step = signalled
"""
KILL_IN_SAVE = """
import os, signal, torch
save = torch.save
def torn(state, path):  # weights and optimizer are there, the scheduler's file is half written
    if str(path).endswith('checkpoint-{update}/scheduler.pt'):
        open(path, 'wb').write(b'half')
        os.kill(os.getpid(), signal.SIGKILL)
    save(state, path)
torch.save = torn
"""


def end(running, status=0):
    """Wait for a run, which must end with that status, and return what it wrote to stderr."""
    done = running.finish()
    assert done.returncode == status, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stderr


def state(checkpoint):
    return json.loads((checkpoint / "trainer_state.json").read_text())


def logs(checkpoint):
    """Everything that was logged, but for how long it took."""
    return [
        {
            key: value
            for key, value in log.items()
            if not (key in SECONDS or key.startswith("time/") or key.endswith("_per_s"))
        }
        for log in state(checkpoint)["log_history"]
        if "train_runtime" not in log
    ]


def test_killed_torn_and_stopped_it_ends_as_if_uninterrupted(finished, data, tmp_path):
    words = ("train.py", *long_run(data, tmp_path))
    last = ("--resume_from_checkpoint", "last")
    killed = process(*words, before=SIGNAL_IN_UPDATE.format(update=4, signal="SIGKILL"))
    with watched(killed.pid) as started:
        end(killed, -signal.SIGKILL)
    assert len(started) >= 2, "the run had workers"
    assert_gone(started)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-2"]

    end(process(*words, *last, before=KILL_IN_SAVE.format(update=4)), -signal.SIGKILL)
    assert (tmp_path / "checkpoint-4/optimizer.pt").exists()

    # In mid-update: what it has drawn and counted is undone in the checkpoint.
    stopped = process(*words, *last, before=SIGNAL_IN_UPDATE.format(update=6, signal="SIGTERM"))
    said = end(stopped, EXIT_SIGTERM)
    assert "checkpoint-4: it has no trainer_state.json" in said
    assert "stopped by SIGTERM after update 5 of 6; continue with --resume_from_checkpoint last" in said
    assert not (tmp_path / "model.safetensors").exists(), "an unfinished run leaves no final model"

    end(process(*words, "--resume_from_checkpoint", tmp_path / "checkpoint-5"))
    once, again = finished.out / "checkpoint-6", tmp_path / "checkpoint-6"
    assert logs(again) == logs(once)
    assert [log["epoch"] for log in logs(once) if "loss" in log] == pytest.approx(
        [n / 3 for n in range(1, 7)]
    )
    for counter in ("global_step", "num_input_tokens_seen", "best_metric", "best_global_step"):
        assert state(again)[counter] == state(once)[counter], counter
    counted, same = (state(out)["stateful_callbacks"]["RunCounters"]["attributes"] for out in (once, again))
    assert counted.pop("warnings") == same.pop("warnings")
    assert counted["executor"]["programs"] == same["executor"]["programs"] > 6 * 12
    assert counted["executor"]["tests"] == same["executor"]["tests"]
    for name in ("checkpoint-6", "."):
        before, after = (load_file(out / name / "model.safetensors") for out in (finished.out, tmp_path))
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) for key in before), name
    moments, same = (torch.load(out / "optimizer.pt")["state"] for out in (once, again))
    assert all(torch.equal(moments[i]["exp_avg_sq"], same[i]["exp_avg_sq"]) for i in moments)


def test_a_whole_checkpoint_is_taken_and_each_damaged_one_is_named_and_passed_over(finished, tmp_path):
    best, last = sorted(finished.out.glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
    for folder in (best, last):
        shutil.copytree(folder, tmp_path / folder.name)
    out, copy = str(tmp_path), tmp_path / last.name
    assert (
        find_checkpoint("last", out)
        == find_checkpoint("True", out)
        == find_checkpoint(str(copy), out)
        == str(copy)
    )
    for name in ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"):
        whole = (copy / name).read_bytes()
        (copy / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=rf"{last.name}: {name} is damaged; name another one, or `last`"):
            find_checkpoint(str(copy), out)
        assert find_checkpoint("last", out) == str(tmp_path / best.name), name
        (copy / name).write_bytes(whole)
    (copy / "optimizer.pt").unlink()
    (tmp_path / best.name / "trainer_state.json").unlink()
    with pytest.raises(
        ValueError, match=r"no complete checkpoint.*without the optimizer's state.*never finished"
    ):
        find_checkpoint("last", out)


def test_changed_bytes_of_a_checkpoint_are_noticed_by_its_checksums(tmp_path):
    folder = tmp_path / "checkpoint-2"
    folder.mkdir()
    (folder / "trainer_state.json").write_text("{}")
    torch.save({"step": 2}, folder / "optimizer.pt")
    save_file({"weight": torch.ones(1000)}, folder / "model.safetensors")
    write_checksums(folder).join()
    assert checkpoint_fault(folder) is None
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-2000] + bytes(2000))  # still a whole file
    assert checkpoint_fault(folder) == "model.safetensors is damaged"
    (folder / "checksums.json").unlink()  # as of a run that was killed before they were written
    assert checkpoint_fault(folder) is None


@pytest.mark.parametrize("wanted", ["last", "True", "nowhere/checkpoint-2"])
def test_without_a_checkpoint_there_is_a_clear_error(wanted, tmp_path):
    with pytest.raises(
        ValueError, match=rf"--resume_from_checkpoint {wanted}: no (such folder|complete checkpoint)"
    ):
        find_checkpoint(wanted, str(tmp_path))
    assert find_checkpoint(None, str(tmp_path)) is None


def test_the_best_and_the_last_checkpoint_are_kept(finished):
    kept = {int(path.name[11:]) for path in finished.out.glob("checkpoint-*")}
    recorded = state(finished.out / "checkpoint-6")
    assert kept >= {recorded["best_global_step"], 6} and len(kept) == 2


def test_a_finished_run_that_is_resumed_trains_nothing_and_leaves_the_best_model(make_trainer, tmp_path):
    """8 problems, 4 an update: step 3 is in the middle of an epoch, where transformers would go on to 4."""
    options = {"max_steps": 3, "save_strategy": "steps", "save_steps": 1}
    make_trainer(**options).train()
    again = make_trainer(**options)
    again.train(resume_from_checkpoint=find_checkpoint("last", str(tmp_path / "out")))
    assert again.state.global_step == 3
    saved = load_file(tmp_path / "out/checkpoint-3/model.safetensors")
    assert all(torch.equal(tensor, again.model.state_dict()[name]) for name, tensor in saved.items())
    assert not (tmp_path / "out/checkpoint-4").exists()


def test_a_run_that_is_continued_past_its_end_trains_with_the_options_of_its_continuation(
    make_trainer, tmp_path
):
    """Two updates, then two more with other options: each is made, at the rate that its log entry has."""
    saved = {"save_strategy": "steps", "save_steps": 1, "save_total_limit": 4, "lr_scheduler_type": "linear"}
    make_trainer(learning_rate=3e-4, **saved).train()
    other = {"learning_rate": 1e-3, "weight_decay": 0.5, "adam_beta1": 0.8, "adam_epsilon": 1e-6}
    again = make_trainer(max_steps=4, **saved | {"save_steps": 0.25}, **other)
    again.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-2"))
    logged = [log for log in again.state.log_history if "loss" in log]
    # 3e-4 * 2/2 and 1/2, then 1e-3 * 2/4 and 1/4; 8 problems, 4 an update
    assert [log["learning_rate"] for log in logged] == pytest.approx([3e-4, 1.5e-4, 5e-4, 2.5e-4])
    assert [log["epoch"] for log in logged] == [0.5, 1.0, 1.5, 2.0]
    checkpoints = [tmp_path / f"out/checkpoint-{step}" for step in range(1, 5)]
    weights = [load_file(folder / "model.safetensors") for folder in checkpoints]
    for before, after in pairwise(weights):
        assert any((after[name] != before[name]).any() for name in before)
    groups = torch.load(checkpoints[2] / "optimizer.pt")["param_groups"]
    assert [group["weight_decay"] for group in groups] == [0.5, 0.0]
    assert all((group["betas"], group["eps"]) == ((0.8, 0.999), 1e-6) for group in groups)
    assert [group["lr"] for group in groups] == [2.5e-4, 2.5e-4], "of update 4"


def test_the_best_checkpoint_is_forgotten_if_another_evaluation_chooses_it(make_trainer, tmp_path):
    options = {"dev_data": "dev.jsonl", "dev_problems": toy_problems("dev")[:2]}
    options |= {"eval_steps": 1, "save_steps": 1, "max_steps": 1}
    first = make_trainer(**options)
    first.train()
    state_file = tmp_path / "out/checkpoint-1/trainer_state.json"
    state_file.write_text(json.dumps(json.loads(state_file.read_text()) | {"best_metric": 1.1}))
    for is_other, best in ((False, 1), (True, 2)):
        again = make_trainer(**options | {"max_steps": 2})
        again.has_other_evaluation = is_other
        again.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-1"))
        assert again.state.best_global_step == best
    gamma, num_turns, dev = Change("gamma", 0, 1), Change("num_turns", 2, 3), Change("dev.jsonl", "a", "b")
    assert [change_evaluation(again.args, [change]) for change in (gamma, num_turns, dev)] == [
        False,
        True,
        True,
    ]


def test_the_memory_of_warnings_and_the_executors_counts_are_taken_up(make_trainer, tmp_path):
    """A gap that was first seen before the interruption, and programs that another process executed."""
    options = {"max_steps": 1, "save_strategy": "steps", "save_steps": 1, "global_batch_size": 16}
    with Executor(num_workers=1) as executor:
        first = make_trainer(runner=executor, **options)
        first.run_warnings.dead_batches = 7
        first.run_warnings.check_gap(0.25)
        first.collapsed = "the training has collapsed at update 0"
        first.train()
        programs = executor.stats.programs
    assert programs > 4
    with Executor(num_workers=1) as executor:
        second = make_trainer(runner=executor, **options)
        second.run_warnings.dead_batches = 9
        second.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-1"))
        assert executor.stats.programs == programs
    assert second.run_warnings.state_dict() == first.run_warnings.state_dict()
    assert first.run_warnings.state_dict()["first_gap"] == 0.25
    assert second.collapsed == "the training has collapsed at update 0"
    assert second.run_warnings.dead_batches == 9, "options are those of the second start"


def test_a_generation_that_serves_several_updates_is_drawn_again_for_the_rest_of_them(make_trainer, tmp_path):
    """With two updates per generation, a run resumed after the first plays the same problems once more and
    the next ones at step 2, as an uninterrupted one does.
    """

    def played(max_steps, resume=None):
        trainer = make_trainer(
            num_iterations=2, max_steps=max_steps, save_strategy="steps", save_steps=1, save_total_limit=4
        )
        batches = []
        play = trainer.player.sample_beside
        trainer.player.sample_beside = lambda prompts, meanwhile: (
            batches.append((trainer.state.global_step, [p.problem.task_id for p in prompts]))
            or play(prompts, meanwhile)
        )
        trainer.train(resume_from_checkpoint=resume)
        return dict(batches)

    whole = played(4)
    assert sorted(whole) == [0, 2] and whole[0] != whole[2]
    assert played(4, str(tmp_path / "out/checkpoint-1")) == {1: whole[0], 2: whole[2]}


def test_boost_is_stopped_and_resumed_in_the_same_way(rows, tmp_path):
    """From checkpoint-1 of a whole run, stopped after update 2: its checkpoint-2 is the whole run's."""
    words = (
        *("boost/boost_train.py", "--config", "configs/toy/boost.yaml", "--train_data", rows),
        *("--max_steps", 3, "--global_batch_size", 8, "--per_device_train_batch_size", 8),
        *("--disable_tqdm", True),
        *("--save_strategy", "steps", "--save_steps", 1, "--save_total_limit", 3),
    )
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    end(process(*words, "--output_dir", whole))
    resume = ("--resume_from_checkpoint", whole / "checkpoint-1", "--output_dir", stopped)
    said = end(process(*words, *resume, before=SIGTERM_IN_BOOST), EXIT_SIGTERM)
    assert "stopped by SIGTERM after update 2 of 3" in said and not (stopped / "model.safetensors").exists()
    before, after = (load_file(out / "checkpoint-2/model.safetensors") for out in (whole, stopped))
    assert all(torch.equal(before[key], after[key]) for key in before)
    moved = load_file(whole / "checkpoint-1/model.safetensors")
    assert any((before[key] != moved[key]).any() for key in before)

    more = ("--max_steps", 4, "--learning_rate", 1e-3, "--lr_scheduler_type", "linear")
    more += ("--accept_changes", True)
    end(process(*words, "--output_dir", whole, "--resume_from_checkpoint", "last", *more))
    last = state(whole / "checkpoint-4")["log_history"][-1]
    assert (last["step"], last["learning_rate"]) == (4, 2.5e-4)
    before, after = (load_file(whole / f"checkpoint-{step}/model.safetensors") for step in (3, 4))
    assert any((before[key] != after[key]).any() for key in before)
    card, record = (whole / "README.md").read_text(), json.loads((whole / "run.json").read_text())
    for change in ("learning_rate was 0.0005, is 0.001", "max_steps was 3, is 4"):
        assert f"{change} after update 3" in card and f"{change} after update 3" in record["changes"]

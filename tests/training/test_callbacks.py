"""What ends a run early, when it saves, and what it says about itself at its end."""

import pytest
import torch
from transformers import AutoModelForCausalLM, TrainerControl

from cocos.problems import load_problems
from cocos.training.callbacks import COLLAPSED_LOGS, SaveByTime, StopOnCollapse
from cocos.training.console import clock_text
from tests.support.paths import TOY

COLLAPSING = {
    # The first update has the learning rate 0, the others one that destroys the model.
    **{"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 1, "learning_rate": 5.0},
    **{"num_turns": 1, "max_truncated_share": 1.0, "max_steps": 8, "eval_steps": 1, "save_steps": 1},
    **{"dev_data": "dev.jsonl", "save_total_limit": 1},
}


@pytest.mark.processes
def test_a_run_that_is_made_to_collapse_ends_by_itself_with_its_best_checkpoint(make_trainer, tmp_path):
    trainer = make_trainer(dev_problems=load_problems(TOY / "train.jsonl")[:24], **COLLAPSING)
    trainer.train()
    accuracies = [log["eval_acc_t1"] for log in trainer.state.log_history if "eval_acc_t1" in log]
    assert accuracies[0] > 0.1 and max(accuracies[1:]) < accuracies[0] / 2
    assert trainer.state.global_step == 3  # two low evaluations in a row
    [remark] = trainer.remarks()
    assert remark.startswith("stopped by itself, because the training has collapsed: dev acc_t1 is 0")
    assert trainer.state.best_global_step == 1 and (tmp_path / "out/checkpoint-1").exists()
    start = AutoModelForCausalLM.from_pretrained(TOY / "base", dtype=torch.float32).state_dict()
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(tensor, start[name]), name


@pytest.mark.processes
def test_a_policy_without_entropy_ends_its_run(make_trainer):
    """At a temperature of 0.001 the policy always takes its first choice."""
    trainer = make_trainer(
        temperature=1e-3, max_steps=COLLAPSED_LOGS + 3, per_device_train_batch_size=4, global_batch_size=4
    )
    trainer.train()
    assert trainer.state.global_step == COLLAPSED_LOGS
    [remark] = [remark for remark in trainer.remarks() if "collapsed" in remark]
    assert "the policy's entropy is" in remark


def stopped_at(trainer, repeats, entropy=0.5):
    """Return the log entry at which a run is stopped whose entries have these shares of repeats; None: never."""
    callback, control = StopOnCollapse(trainer), TrainerControl()
    for number, (second, third) in enumerate(repeats, start=1):
        logs = {"loss": 0.0, "entropy": entropy, "repeated_t1_t2": second, "repeated_t2_t3": third}
        callback.on_log(trainer.args, trainer.state, control, logs=logs)
        if control.should_training_stop:
            return number
    return None


def test_a_policy_that_has_learnt_to_repeat_every_program_ends_its_run(make_trainer):
    trainer, all_repeat = make_trainer(), [(1.0, 1.0)] * COLLAPSED_LOGS
    assert stopped_at(trainer, [(0.6, 1.0), *all_repeat]) == COLLAPSED_LOGS + 1
    assert trainer.remarks()[0].endswith("has collapsed: every program repeats the one before it")
    # Another program in between, or at one of the turns, starts the count again.
    assert stopped_at(trainer, [(0.6, 1.0), *all_repeat[1:], (1.0, 0.99), *all_repeat[1:]]) is None
    # A model that has always repeated itself has not collapsed: it may yet learn to correct.
    assert stopped_at(trainer, all_repeat * 3) is None
    # An evaluation or a last log entry, without a loss, does not count.
    callback, control = StopOnCollapse(trainer), TrainerControl()
    for _ in range(2 * COLLAPSED_LOGS):
        callback.on_log(trainer.args, trainer.state, control, logs={"entropy": 0.0, "repeated_t1_t2": 1.0})
    assert not control.should_training_stop


@pytest.mark.processes
def test_it_goes_on_without_the_option(make_trainer):
    trainer = make_trainer(
        dev_problems=load_problems(TOY / "train.jsonl")[:8],
        **COLLAPSING | {"max_steps": 4},
        stop_on_collapse=False,
    )
    trainer.train()
    assert trainer.state.global_step == 4 and trainer.remarks() == []


@pytest.mark.processes
def test_a_run_without_any_gradient_says_so_at_its_end(make_trainer):
    trainer = make_trainer(max_completion_length=2, max_truncated_share=1.0)  # no program can be right
    trainer.train()
    [remark] = trainer.remarks()
    assert remark.startswith("no update had a gradient,") and "raise --temperature" in remark
    trainer.beta = 0.05
    assert "no update had a gradient of the rewards" in trainer.remarks()[0]
    assert "only the KL divergence (--beta 0.05) changed the model; raise" in trainer.remarks()[0]
    trainer = make_trainer()
    trainer.train()
    assert trainer.remarks() == []


@pytest.mark.processes
def test_a_checkpoint_that_is_too_old_is_replaced_after_the_update(make_trainer, tmp_path):
    trainer = make_trainer(save_strategy="steps", save_steps=50, max_steps=2)
    trainer.add_callback(SaveByTime(minutes=1e-6))
    trainer.train()
    assert sorted(path.name for path in (tmp_path / "out").glob("checkpoint-*")) == [
        "checkpoint-1",
        "checkpoint-2",
    ]


def test_the_clock_tells_hours_and_minutes():
    logs = {"time/each_s": 118.4, "time/left_s": 118.4 * 1488}
    assert clock_text(logs, 1500) == " (of 1500, 118 s each, 49 h left)"
    assert clock_text({"time/each_s": 2.5, "time/left_s": 600.0}, 240) == " (of 240, 2.5 s each, 10 min left)"
    assert clock_text({"time/each_s": 2.5, "time/left_s": 100.0}, 240).endswith("100 s left)")
    assert clock_text({"eval_acc_t1": 0.5}, 240) == ""

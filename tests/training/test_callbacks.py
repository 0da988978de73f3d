"""What a run warns of, when it saves, and what it says about itself at its end."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, TrainerState

from cocos.training.callbacks import SaveByTime
from cocos.training.collapse import COLLAPSED_LOGS, collapse
from cocos.training.console import clock_text, format_line
from tests.support.paths import TOY
from tests.support.training import DESTRUCTIVE_AFTER_ONE, toy_problems

COLLAPSING = {
    # The first update changes no bit, the others destroy the model.
    **DESTRUCTIVE_AFTER_ONE,
    **{"num_turns": 1, "max_truncated_share": 1.0, "max_steps": 5, "eval_steps": 1, "save_steps": 1},
    **{"dev_data": "dev.jsonl", "save_total_limit": 2},
}


@pytest.mark.processes
def test_a_run_that_is_made_to_collapse_warns_once_goes_on_and_repeats_it_at_its_end(
    make_trainer, tmp_path, caplog
):
    trainer = make_trainer(dev_problems=toy_problems()[:24], **COLLAPSING)
    trainer.train()
    accuracies = [log["eval_acc_t1"] for log in trainer.state.log_history if "eval_acc_t1" in log]
    assert accuracies[0] > 0.1 and max(accuracies[1:]) < accuracies[0] / 2
    assert trainer.state.global_step == 5
    [warning] = [record.message for record in caplog.records if "collapsed" in record.message]
    # two low evaluations in a row
    remark = "the training has collapsed at update 3: dev acc_t1 is 0.000, below half of its best value"
    assert warning.startswith(remark) and warning.endswith("; stop the run, or lower --learning_rate")
    assert trainer.remarks()[0].startswith(remark)
    # The best checkpoint is what the run saves, as that of every other run.
    assert trainer.state.best_global_step == 1 and (tmp_path / "out/checkpoint-1").exists()
    start = AutoModelForCausalLM.from_pretrained(TOY / "base", dtype=torch.float32).state_dict()
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(tensor, start[name]), name
    state = json.loads((tmp_path / "out/checkpoint-5/trainer_state.json").read_text())
    counters = state["stateful_callbacks"]["RunCounters"]["attributes"]
    assert counters["collapsed"].startswith(remark), "a resumed run knows it"


def collapsed_at(repeats, entropy=0.5):
    """Return the log entry that shows a collapse, and what it shows, of a run with these shares of repeats; None: none does."""
    state = TrainerState()
    for number, (second, third) in enumerate(repeats, start=1):
        logs = {"loss": 0.0, "entropy": entropy, "repeated_t1_t2": second, "repeated_t2_t3": third}
        state.log_history.append(logs)
        if reason := collapse(state, "eval_acc_t3"):
            return number, reason
    return None


def test_a_policy_without_entropy_has_collapsed():
    found = collapsed_at([(0.5, 0.5)] * COLLAPSED_LOGS, entropy=1e-4)
    assert found == (COLLAPSED_LOGS, "the policy's entropy is 0.0001 nats a token")


def test_a_policy_that_has_learnt_to_repeat_every_program_has_collapsed():
    all_repeat = [(1.0, 1.0)] * COLLAPSED_LOGS
    found = collapsed_at([(0.6, 1.0), *all_repeat])
    assert found == (COLLAPSED_LOGS + 1, "every program repeats the one before it")
    # Another program in between, or at one of the turns, starts the count again.
    assert collapsed_at([(0.6, 1.0), *all_repeat[1:], (1.0, 0.99), *all_repeat[1:]]) is None
    # A model that has always repeated itself has not collapsed: it may yet learn to correct.
    assert collapsed_at(all_repeat * 3) is None
    # An evaluation or a last log entry, without a loss, does not count.
    without_loss = TrainerState(log_history=[{"entropy": 0.0, "repeated_t1_t2": 1.0}] * 2 * COLLAPSED_LOGS)
    assert not collapse(without_loss, "eval_acc_t2")


@pytest.mark.processes
def test_a_run_without_any_gradient_says_so_at_its_end(make_trainer):
    trainer = make_trainer(max_completion_length=2, max_truncated_share=1.0)  # no program can be right
    trainer.train()
    [remark] = trainer.remarks()
    updates = trainer.state.global_step
    assert remark.startswith(f"{updates} of {updates} updates learnt nothing from rewards, because no traj")
    assert "the run started from; raise --temperature" in remark
    [first, *_] = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert "nothing learnt from rewards: no trajectory earned more" in format_line(first)
    trainer.beta = 0.05
    assert "only the KL divergence (--beta 0.05) changed the model; raise" in trainer.remarks()[0]
    trainer.run_warnings.total_dead = 1
    assert trainer.remarks()[0].startswith(f"1 of {updates} updates learnt nothing")
    trainer = make_trainer()
    trainer.train()
    assert trainer.remarks() == []


@pytest.mark.processes
def test_an_update_whose_only_gradient_is_that_of_kl_learns_nothing_from_rewards(make_trainer):
    trainer = make_trainer(
        max_completion_length=2, max_truncated_share=1.0, beta=0.5, learning_rate=1e-2, max_steps=3
    )
    trainer.train()
    assert trainer.remarks()[0].startswith("3 of 3 updates learnt nothing from rewards")


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

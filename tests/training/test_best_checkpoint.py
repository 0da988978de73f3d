"""Which checkpoint of a run is its best, and that it exists."""

import pytest

from tests.support.training import DESTRUCTIVE_AFTER_ONE, toy_problems

pytestmark = pytest.mark.processes


def chosen(trainer, *evaluations):
    """Return the updates that were the best when they were evaluated. Each evaluation is (acc@1, acc@2)."""
    best = []
    for step, (first, second) in enumerate(evaluations, start=1):
        trainer.state.global_step = step
        metrics = {"eval_acc_t1": first, "eval_acc_t2": second}
        trainer.log(dict(metrics))  # as `evaluate` does
        if trainer._determine_best_metric(metrics, None):
            best.append(step)
    assert trainer.state.best_global_step == best[-1]
    return best


@pytest.fixture
def trainer(make_trainer):
    dev_problems = toy_problems("dev")[:2]
    return make_trainer(dev_data="dev.jsonl", dev_problems=dev_problems, eval_steps=1, save_steps=4)


def test_the_last_turn_decides_whatever_the_others_are(trainer):
    assert chosen(trainer, (0.5, 0.8), (0.9, 0.7), (0.1, 0.9)) == [1, 3]
    assert trainer.state.best_metric == 0.9


def test_a_tie_goes_to_the_higher_mean_over_the_turns_and_then_to_the_later_update(trainer):
    # Means 0.8, 0.955, 0.955, 0.9: update 3 equals update 2, update 4 is worse at its first attempt.
    assert chosen(trainer, (0.6, 1.0), (0.91, 1.0), (0.91, 1.0), (0.8, 1.0)) == [1, 2, 3]


def test_a_tie_is_broken_against_the_evaluation_of_the_best_update_not_of_the_one_before(trainer):
    assert chosen(trainer, (0.9, 1.0), (1.0, 0.9), (0.8, 1.0), (0.95, 1.0)) == [1, 4]


def test_the_best_weights_are_saved_between_two_regular_checkpoints(make_trainer, tmp_path):
    """An evaluation after each update; the second update destroys the model, and --save_steps is 4."""
    trainer = make_trainer(
        dev_problems=toy_problems()[:24],
        **DESTRUCTIVE_AFTER_ONE,
        **{"num_turns": 1, "max_truncated_share": 1.0, "max_steps": 3, "eval_steps": 1, "save_steps": 4},
        dev_data="dev.jsonl",
    )
    trainer.train()
    assert trainer.state.best_global_step == 1
    assert trainer.state.best_model_checkpoint == str(tmp_path / "out/checkpoint-1")

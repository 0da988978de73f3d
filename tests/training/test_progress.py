"""The line that a person reads while training."""

from cocos.training.console import format_line


def test_a_line_shows_the_metrics_of_the_turns_and_leaves_the_rest_to_the_loggers():
    logs = {"loss": 0.25, "reward_t1": 0.5, "acc_t2": 0.75, "entropy": 3.0, "epoch": 1, "step_time": 2.0}
    assert format_line(logs) == "reward_t1=0.500 acc_t2=0.750"


def test_supervised_training_shows_its_loss():
    assert format_line({"loss": 0.25, "entropy": 3.0}) == "loss=0.250"
    assert format_line({"eval_loss": 0.5, "eval_runtime": 2.0}) == "dev loss=0.500"


def test_an_evaluation_is_marked_as_one():
    assert format_line({"eval_acc_t1": 0.5, "eval_c2i_t1_t2": 0.125}) == "dev acc_t1=0.500 c2i_t1_t2=0.125"


def test_what_shows_nothing_prints_nothing():
    assert format_line({"train_runtime": 1.0}) == ""
    assert format_line({"reward_t1": None}) == ""

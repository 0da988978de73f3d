"""The charts of training runs: what their legends say, several runs, and charts that say nothing."""

from cocos.page.training_view import charts_of_runs, legend


def entry(step, **metrics):
    return {"step": step, "time": 0.0, "metrics": metrics}


def test_legends_are_words_and_name_the_run_only_if_there_are_several():
    metrics = ("i2c_t1_t2", "eval_c2i_t1_t2", "repeated_wrong_t2_t3", "eval_acc_t2", "time/rollout_s", "loss")
    assert [legend(name) for name in metrics] == [
        "repaired (i→c) 1 to 2", "spoilt (c→i) 1 to 2", "wrong ones, 2 to 3", "turn 2", "rollout", "loss",
    ]  # fmt: skip
    assert legend("acc_t1", "a") == "a: turn 1"


def test_charts_of_zeros_are_left_out_and_others_stay():
    log = [entry(1, kl_t1=0.0, kl_t2=0.0, loss=1e-8, acc_t1=0.5), entry(2, kl_t1=0.0, loss=-2e-8, acc_t1=0.0)]
    assert charts_of_runs({"a": log}) == {"Accuracy per turn": {1: {"turn 1": 0.5}, 2: {"turn 1": 0.0}}}
    assert "Loss" in charts_of_runs({"a": [entry(1, loss=0.7)]})


def test_several_runs_share_a_chart():
    logs = {"a": [entry(1, acc_t1=0.5)], "b": [entry(1, acc_t1=0.25), entry(3, acc_t1=0.75)]}
    assert charts_of_runs(logs) == {
        "Accuracy per turn": {1: {"a: turn 1": 0.5, "b: turn 1": 0.25}, 3: {"b: turn 1": 0.75}}
    }

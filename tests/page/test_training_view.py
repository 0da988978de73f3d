"""The charts of training runs: what their legends say, several runs, and charts that say nothing."""

import json

from streamlit.testing.v1 import AppTest

from cocos.page.training_view import chart_of, charts_of_runs, legend, names_in_legends


def entry(step, **metrics):
    return {"step": step, "time": 0.0, "metrics": metrics}


def test_legends_are_words_and_name_the_run_only_if_there_are_several():
    metrics = ("i2c_t1_t2", "eval_c2i_t1_t2", "repeated_wrong_t2_t3", "eval_acc_t2", "time/rollout_s", "loss")
    assert [legend(name) for name in metrics] == [
        "repaired (i→c) 1 to 2", "spoilt (c→i) 1 to 2", "wrong ones, 2 to 3", "turn 2", "rollout", "loss",
    ]  # fmt: skip
    assert legend("acc_t1", "a") == "turn 1, a"


def test_charts_of_zeros_are_left_out_and_others_stay():
    log = [entry(1, kl_t1=0.0, kl_t2=0.0, loss=1e-8, acc_t1=0.5), entry(2, kl_t1=0.0, loss=-2e-8, acc_t1=0.0)]
    assert charts_of_runs({"a": log}) == {"Accuracy per turn": {1: {"turn 1": 0.5}, 2: {"turn 1": 0.0}}}
    assert "Loss" in charts_of_runs({"a": [entry(1, loss=0.7)]})


def test_runs_whose_names_have_a_colon_are_drawn_also_alone_in_a_chart(tmp_path):
    for name, metric in (("a:b", "loss"), ("c", "acc_t1")):
        (tmp_path / name).mkdir()
        log = [json.dumps(entry(step, **{metric: 0.5})) for step in (1, 2)]
        (tmp_path / name / "log.jsonl").write_text("\n".join(log))

    def app(folder):
        from pathlib import Path

        from cocos.page.training_view import _show_runs

        _show_runs({name: Path(folder) / name for name in ("a:b", "c")})

    page = AppTest.from_function(app, args=(str(tmp_path),), default_timeout=180).run()
    assert not page.exception
    assert sorted(element.value for element in page.caption) == ["Accuracy per turn", "Loss"]
    chart = chart_of("Loss", {2: {"loss, a:b": 0.25}, 1: {"loss, a:b": 0.5}}, 2)
    assert chart.data.to_dict("list") == {"update": [1, 2], "value": [0.5, 0.25], "curve": ["loss, a:b"] * 2}


def test_a_legend_is_whole_and_without_the_folders_that_all_runs_share():
    assert names_in_legends(["out/x/a", "out/y/b"]) == {"out/x/a": "x/a", "out/y/b": "y/b"}
    assert list(names_in_legends(["out/a"]).values()) == ["out/a"]
    several, one = (chart_of("Loss", {1: row}, 1).to_dict() for row in ({"a": 1.0, "b": 2.0}, {"a": 1.0}))
    assert several["encoding"]["color"]["legend"]["labelLimit"] == 0  # no label is cut off
    assert one["encoding"]["color"]["legend"] is None and one["mark"]["point"] is True
    assert several["description"] == "Loss"


def test_several_runs_share_a_chart():
    logs = {"a": [entry(1, acc_t1=0.5)], "b": [entry(1, acc_t1=0.25), entry(3, acc_t1=0.75)]}
    assert charts_of_runs(logs) == {
        "Accuracy per turn": {1: {"turn 1, a": 0.5, "turn 1, b": 0.25}, 3: {"turn 1, b": 0.75}}
    }

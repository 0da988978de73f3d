"""log.jsonl of a training run: what is read back, what a resumed run keeps, and what a reader is told."""

import json
import logging
import time

from transformers import TrainerControl, TrainerState, TrainingArguments

from cocos.training.run_log import SILENCE_S, RunLog, charts_of, read_log, run_status


def started(folder, step):
    """Return a log that a run at this step has begun, and the run's state and arguments."""
    state = TrainerState(global_step=step, is_world_process_zero=True)
    details = {"examples": ["example"], "solved": {"train-1": [0, 1, 4]}}
    log, args = RunLog(lambda: details), TrainingArguments(output_dir=str(folder), use_cpu=True)
    log.on_train_begin(args, state, TrainerControl())
    return log, args, state


def logged(folder, step, *steps):
    log, args, state = started(folder, step)
    for state.global_step in steps:
        log.on_log(args, state, TrainerControl(), {"loss": float(state.global_step), "kl_t1": float("nan")})
    logging.getLogger("cocos.training.monitor").warning("learns nothing")
    log.on_train_end(args, state, TrainerControl())
    logging.getLogger("cocos").warning("after the run")


def test_entries_and_warnings_are_read_back_without_values_that_json_lacks(tmp_path):
    logged(tmp_path, 0, 1)
    entry, warning = read_log(tmp_path)
    assert (entry["step"], entry["metrics"], entry["examples"]) == (1, {"loss": 1.0}, ["example"])
    assert entry["solved"] == {"train-1": [0, 1, 4]}
    assert warning["warning"] == "learns nothing"


def test_an_evaluation_is_not_logged_with_the_trajectories_of_the_update_before_it(tmp_path):
    log, args, state = started(tmp_path, 0)
    log.on_log(args, state, TrainerControl(), {"eval_acc_t1": 0.5})
    [entry] = read_log(tmp_path)
    assert entry["metrics"] == {"eval_acc_t1": 0.5} and not {"examples", "solved"} & entry.keys()


def test_a_resumed_run_drops_what_was_logged_after_its_checkpoint_and_a_new_one_everything(tmp_path):
    logged(tmp_path, 0, 1, 2, 3)
    logged(tmp_path, 2, 3)
    assert [entry["step"] for entry in read_log(tmp_path) if "metrics" in entry] == [1, 2, 3]
    logged(tmp_path, 0, 1)
    assert [entry["step"] for entry in read_log(tmp_path) if "metrics" in entry] == [1]


def test_a_half_written_line_is_left_out(tmp_path):
    logged(tmp_path, 0, 1)
    with open(tmp_path / "log.jsonl", "a") as file:
        file.write('{"step": 2, "ti')
    assert [entry["step"] for entry in read_log(tmp_path)] == [1, 1]


def test_the_status_tells_a_run_that_goes_on_from_one_that_is_silent_and_one_that_has_ended():
    now = {"step": 3, "time": time.time(), "metrics": {}}
    assert run_status([now]).endswith("the run goes on")
    assert run_status([now | {"time": time.time() - 2 * SILENCE_S}]).endswith("or it was stopped")
    assert run_status([now | {"metrics": {"train_runtime": 9.0}}]) == "ended after update 3"


def test_charts_take_metrics_by_their_whole_names():
    metrics = {"acc_t1": 0.5, "eval_acc_t1": 0.25, "acc_t1_of_something": 1.0, "time/rollout_s": 2.0}
    metrics |= {"repeated_t1_t2": 0.75, "repeated_wrong_t1_t2": 0.5, "eval_repeated_wrong_t1_t2": 1.0}
    charts = charts_of([json.loads(json.dumps({"step": 4, "time": 0, "metrics": metrics}))])
    assert charts == {
        "Accuracy per turn": {4: {"acc_t1": 0.5}},
        "Dev accuracy per turn": {4: {"eval_acc_t1": 0.25}},
        "Seconds per phase": {4: {"time/rollout_s": 2.0}},
        "Repeated programs, all and wrong ones": {4: {"repeated_t1_t2": 0.75, "repeated_wrong_t1_t2": 0.5}},
        "Dev: repaired, spoilt, wrong ones repeated": {4: {"eval_repeated_wrong_t1_t2": 1.0}},
    }

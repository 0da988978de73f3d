"""log.jsonl of a training run: what is read back, and what a resumed run keeps."""

import logging

from transformers import TrainerControl, TrainerState, TrainingArguments

from cocos.training.run_log import RunLog, read_log


def started(folder, step):
    """Return a log that a run at this step has begun, and the run's state and arguments."""
    state = TrainerState(global_step=step, is_world_process_zero=True)
    log, args = RunLog(lambda: ["example"]), TrainingArguments(output_dir=str(folder), use_cpu=True)
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
    assert warning["warning"] == "learns nothing"


def test_an_evaluation_is_not_logged_with_the_trajectories_of_the_update_before_it(tmp_path):
    log, args, state = started(tmp_path, 0)
    log.on_log(args, state, TrainerControl(), {"eval_acc_t1": 0.5})
    [entry] = read_log(tmp_path)
    assert entry["metrics"] == {"eval_acc_t1": 0.5} and "examples" not in entry


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

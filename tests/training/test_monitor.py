"""What a run says about itself, from trajectories made by hand."""

import logging
import math
import re
import time
from dataclasses import replace

import pytest
import torch

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.rewards import zero_spread
from cocos.training.monitor import RunWarnings, batch_metrics, hidden_gap, percentile, trajectory_metrics
from cocos.training.update_timer import SAMPLING, UPDATE, UpdateTimer, crowded_text, product_seconds
from cocos.trajectories import Trajectory, Turn
from tests.support.paths import ROOT


def turn(*passed, tokens=3, truncated=False, infra=False, in_child=None, code="x", error=None):
    if error:
        result = ExecutionResult((Verdict(*error),))
        return Turn((1, 2), Completion(tuple(range(tokens)), code), code, result)
    verdicts = tuple(Verdict(Status.PASSED if p else Status.FAILED, in_child_reason=in_child) for p in passed)
    result = ExecutionResult((), infra_error="the worker died") if infra else ExecutionResult(verdicts)
    return Turn((1, 2), Completion(tuple(range(tokens)), code, is_truncated=truncated), code, result)


def trajectory(*turns, hidden=0):
    tests = ("assert f(0)", "assert f(1)")
    visible = tests[: len(tests) - hidden]
    return Trajectory(Problem("1", "text", visible, hidden_test_list=tests[len(visible) :]), 0, turns)


def test_the_metrics_of_a_batch_by_hand():
    # turn 1: 1/2 and 2/2 pass; turn 2: 2/2 and 1/2; lengths 3 and 5, one of the two cut off
    batch = [
        trajectory(turn(True, False, tokens=5, truncated=True), turn(True, True)),
        trajectory(turn(True, True), turn(True, False)),
    ]
    found = batch_metrics(batch, [[0.5, 1.0], [1.0, 0.5]])
    assert (found["reward_t1"], found["reward_t2"]) == (0.75, 0.75)
    assert (found["acc_t1"], found["acc_t2"], found["delta_t1_t2"]) == (0.5, 0.5, 0.0)
    assert (found["i2c_t1_t2"], found["c2i_t1_t2"]) == (0.5, 0.5)
    assert (found["truncated_t1"], found["completion_length_t1"]) == (0.5, 4.0)
    assert found["infra_failures"] == 0


def test_repeats_are_counted_among_all_programs_and_among_the_wrong_ones():
    carried = replace(turn(True, True), is_carried=True)
    batch = [
        trajectory(turn(False, code="a"), turn(False, code="a")),  # wrong, repeated
        trajectory(turn(False, code="a"), turn(True, code="ab")),  # wrong, changed: 1 edit of 3 characters
        trajectory(turn(True, code="a"), turn(True, code="a")),  # right, repeated
        trajectory(turn(True, code="a"), carried),  # not sampled
    ]
    found = trajectory_metrics(batch)
    assert found["repeated_t1_t2"] == pytest.approx(2 / 3)
    assert found["repeated_wrong_t1_t2"] == 0.5
    assert found["edit_ratio_t1_t2"] == pytest.approx((0 + 1 / 3 + 0) / 3)
    assert found["sampled_t2"] == 0.75
    right = trajectory_metrics(batch[2:3])
    assert right["repeated_t1_t2"] == 1.0 and "repeated_wrong_t1_t2" not in right


def test_time_outs_and_errors_are_shares_of_the_executed_programs_of_a_turn():
    batch = [
        trajectory(turn(error=(Status.TIMEOUT,))),
        trajectory(turn(error=(Status.ERROR, "NameError"))),
        trajectory(turn(error=(Status.ERROR, "MyOwnError"))),  # any name: not a metric of its own
        trajectory(turn(False)),
        trajectory(turn(infra=True)),
    ]
    found = trajectory_metrics(batch)
    assert found["timeouts_t1"] == found["errors_t1/Timeout"] == 0.25
    assert [found[f"errors_t1/{kind}"] for kind in ("NameError", "other", "Failed")] == [0.25] * 3
    assert not any("MyOwnError" in name for name in found)


def test_the_95th_percentile_is_the_value_that_one_in_twenty_exceeds():
    assert percentile(range(1, 21), 95) == 19 and percentile([7], 95) == 7
    assert math.isnan(percentile([], 95))
    batch = [trajectory(turn(True, tokens=n)) for n in range(20, 0, -1)]
    assert trajectory_metrics(batch)["completion_length_p95_t1"] == 19


def test_an_executor_failure_is_counted_and_has_no_part_in_the_means():
    batch = [trajectory(turn(True, True), turn(infra=True)), trajectory(turn(False, True), turn(True, True))]
    found = batch_metrics(batch, [[1.0, None], [0.5, 1.0]])
    assert (found["infra_failures"], found["reward_t1"], found["reward_t2"]) == (1, 0.75, 1.0)
    assert found["acc_t1"] == 0.0  # of the one trajectory that was executed throughout
    nothing = batch_metrics(batch[:1] * 2, [[1.0, None]] * 2)
    assert math.isnan(nothing["reward_t2"]) and "acc_t1" not in nothing


def test_the_share_of_verdicts_that_programs_could_have_forged_is_measured():
    batch = [
        trajectory(turn(True, False), turn(True, True, in_child="the test awaits")),
        trajectory(turn(infra=True)),
    ]
    found = batch_metrics(batch[:1], [[0.5, 0.0]])
    assert found["in_child"] == 0.5
    assert math.isnan(batch_metrics(batch[1:], [[None]])["in_child"])


def test_in_child_verdicts_are_warned_about_once_with_problem_test_reason_and_remedy(caplog):
    warnings = RunWarnings(dead_batches=10)
    marked = trajectory(turn(True, False), turn(True, False, in_child="the test replaces sys.stdin"))
    with caplog.at_level(logging.WARNING):
        warnings.check_in_child([trajectory(turn(True, True)), trajectory(turn(infra=True))])
        assert caplog.text == ""
        warnings.check_in_child([trajectory(turn(True, True)), marked])
        warnings.check_in_child([marked])
    [record] = caplog.records
    assert record.getMessage().startswith("1 problems of this batch have tests that earn nothing")
    assert "'assert f(0)' of problem 1: the test replaces sys.stdin; drop " in record.getMessage()
    assert "--drop in_child, or reward them with --reward_in_child true" in record.getMessage()


def test_a_group_without_spread_teaches_nothing_at_that_turn():
    # two groups: at turn 1 all equal in both, at turn 2 in the first only; a None is not a value of its own
    groups = [[[1.0, 0.5], [1.0, None]], [[0.0, 1.0], [0.0, 0.0]]]
    assert zero_spread(groups) == [1.0, 0.5]


def test_the_hidden_gap_is_the_share_that_passes_all_it_was_shown_and_not_all_there_is():
    fitted = trajectory(turn(False, False), turn(True, False), hidden=1)
    right = trajectory(turn(False, False), turn(True, True), hidden=1)
    wrong = trajectory(turn(True, False), turn(False, True), hidden=1)
    assert hidden_gap([fitted, right, wrong, wrong]) == 0.25
    assert hidden_gap([trajectory(turn(True, False))]) is None


def test_a_growing_gap_is_warned_about_and_a_steady_one_is_not(caplog):
    warnings = RunWarnings(dead_batches=10)
    with caplog.at_level(logging.WARNING):
        for gap in (0.10, 0.14, 0.02):
            warnings.check_gap(gap)
        assert caplog.text == ""
        warnings.check_gap(0.16)
    assert (
        "16.0% of the dev completions pass the visible tests" in caplog.text
        and "10.0% at the first" in caplog.text
    )


def test_a_policy_far_from_its_start_is_warned_about_once(caplog):
    warnings = RunWarnings()
    with caplog.at_level(logging.WARNING):
        warnings.check_kl(0.1)
        assert caplog.text == ""
        warnings.check_kl(0.1412)
        warnings.check_kl(0.15)
    [record] = caplog.records
    assert record.getMessage().startswith(
        "the policy is 0.14 nats a token from the model that the run started"
    )


def test_dead_batches_are_warned_about_each_time_so_many_have_passed_in_a_row(caplog):
    warnings = RunWarnings(dead_batches=2)
    with caplog.at_level(logging.WARNING):
        for is_dead in (True, False, True):
            warnings.check_gradient(is_dead)
        assert caplog.text == ""
        warnings.check_gradient(True)
        assert "2 batches in a row" in caplog.text and "raise --temperature" in caplog.text


def test_the_parts_of_an_update_add_up(executor):
    logged: dict[str, float] = {}
    timer = UpdateTimer(executor, logged.update)
    part = timer.clocks.part
    timer.on_step_begin(None, None, None)
    with part("rollout"):
        sum(range(10**6))
        with part("steps"):
            time.sleep(0.05)
    with part("logprobs"):
        sum(range(10**6))
    read = timer.metrics([trajectory(turn(True, tokens=7))])
    assert read["time/rollout_s"] > read["time/steps_s"] >= 0.05 and read["time/logprobs_s"] > 0
    assert read["time/generation_s"] + read["time/execution_s"] == pytest.approx(read["time/rollout_s"])
    with part("rollout"), part("logprobs"):
        time.sleep(0.05)
    nested = timer.metrics([trajectory(turn(True, tokens=7))])
    assert nested["time/rollout_s"] < read["time/rollout_s"] + 0.04  # what is inside is not counted twice
    assert nested["time/logprobs_s"] >= read["time/logprobs_s"] + 0.05
    part("backward")(time.sleep)(0.05)
    timer.on_pre_optimizer_step(None, None, None)
    time.sleep(0.05)
    timer.on_optimizer_step(None, None, None)
    timer.on_step_end(None, None, None)
    assert min(logged["time/backward_s"], logged["time/optimizer_s"]) >= 0.05 and logged["time/rest_s"] >= 0
    parts = sum(logged[f"time/{name}_s"] for name in ("trees", "forward", "backward", "optimizer", "rest"))
    assert logged["time/update_s"] == pytest.approx(parts)
    with part("rollout"):
        pass
    assert timer.metrics([trajectory(turn(True))])["time/rollout_s"] < read["time/rollout_s"]  # a new update


def test_threads_that_wait_for_other_work_are_warned_about_and_stay_as_many():
    assert crowded_text(0.00025, 0.00014) == crowded_text(0.00025, 0.001) == ""
    assert "takes 22 times as long" in crowded_text(0.00025, 0.0055)
    before = torch.get_num_threads()
    assert min(product_seconds(repeats=2)) > 0 and torch.get_num_threads() == before


def test_every_metric_is_explained_on_the_method_page(executor):
    page = (ROOT / "docs/training.md").read_text().split("## Logged metrics")[1].split("\n## ")[0]
    explained = set(re.findall(r"`([\w/@]+)`", page))
    batch = [trajectory(turn(True), turn(True), hidden=0)]
    names = {*batch_metrics(batch, [[1.0, 1.0]]), *UpdateTimer(executor, {}.update).metrics(batch)}
    names |= {f"time/{part}_s" for part in (*SAMPLING, *UPDATE, "update", "rest")}
    names |= {"peak_memory_mb", "eval_hidden_gap", "frac_reward_zero_std_t1"}
    names |= {"frac_groups_flat", "draws", "prompts_drawn"}
    names |= {"sampled_tokens", "sampled_tokens_total", "entropy_t1", "return_t1_std", "repeated_wrong_t1_t2"}
    names |= {"kl_t1", "kl_per_token"}
    assert {
        name for name in names if name not in explained and re.sub(r"_t2$", "_t1", name) not in explained
    } == set()

"""A trajectory as a row of samples.jsonl."""

import json
from dataclasses import replace

from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.trajectories import Trajectory, Turn


def trajectory(problem):
    wrong = Verdict(Status.FAILED, "AssertionError", "4 is not 5", expected="4", actual="5", duration_s=0.25)
    results = [
        ExecutionResult((Verdict(Status.PASSED), wrong, wrong), isolation="rlimits", duration_s=0.512345),
        ExecutionResult((), infra_error="the worker died", isolation="rlimits"),
        ExecutionResult((Verdict(Status.PASSED),) * 3, isolation="rlimits", duration_s=0.1),
    ]
    turns = [
        Turn(
            tuple(range(10 * n)),
            Completion((1,) * n, f"text {n}", n == 1, False, 0.123456),
            f"code {n}",
            result,
        )
        for n, result in enumerate(results, start=1)
    ]
    return Trajectory(problem, sample=2, turns=tuple(turns))


def test_a_row_carries_every_turns_answer_reward_verdicts_tokens_and_time(problem):
    row = json.loads(json.dumps(trajectory_to_row(trajectory(problem)), allow_nan=False))
    wrong = {
        "status": "failed",
        "error_type": "AssertionError",
        "message": "4 is not 5",
        "expected": "4",
        "actual": "5",
        "duration_s": 0.25,
    }
    assert all(wrong.items() <= verdict.items() for verdict in row["turns"][0]["verdicts"][1:])
    assert [verdict["status"] for verdict in row["turns"][0]["verdicts"]] == ["passed", "failed", "failed"]
    first = {name: value for name, value in row["turns"][0].items() if name != "verdicts"}
    assert first == {
        "told": "",
        "completion": "text 1",
        "code": "code 1",
        "reward": 1 / 3,
        "is_right": False,
        "is_given": False,
        "is_carried": False,
        "is_resampled": False,
        "error_type": "AssertionError",
        "infra_error": None,
        "isolation": "rlimits",
        "num_prompt_tokens": 10,
        "num_completion_tokens": 1,
        "is_truncated": True,
        "generation_s": 0.1235,
        "execution_s": 0.5123,
    }
    assert (row["task_id"], row["sample"], row["text"]) == ("1", 2, "Write a function to double a number.")


def test_a_row_carries_the_tests_that_its_verdicts_are_about_the_hidden_ones_last(problem):
    hidden = replace(
        trajectory(problem).problem, test_list=problem.test_list[:2], hidden_test_list=problem.test_list[2:]
    )
    row = trajectory_to_row(replace(trajectory(problem), problem=hidden))
    assert row["tests"] == ["assert double(2) == 4", "assert double(0) == 0", "assert double(-1) == -2"]
    assert row["num_visible_tests"] == 2 and len(row["turns"][0]["verdicts"]) == 3


def test_a_failure_of_the_executor_is_null_and_not_0(problem):
    turns = trajectory_to_row(trajectory(problem))["turns"]
    assert [turn["reward"] for turn in turns] == [1 / 3, None, 1.0]
    assert [turn["is_right"] for turn in turns] == [False, False, True]
    assert turns[1]["infra_error"] == "the worker died" and turns[1]["verdicts"] == []
    assert '"reward": null' in json.dumps(turns[1])


def test_tokens_are_counted_per_turn(problem):
    turns = trajectory_to_row(trajectory(problem))["turns"]
    assert [(t["num_prompt_tokens"], t["num_completion_tokens"]) for t in turns] == [
        (10, 1),
        (20, 2),
        (30, 3),
    ]


def test_a_row_becomes_a_trajectory_that_makes_the_same_row_again(problem):
    told = replace(trajectory(problem).turns[0], told="It fails.", is_resampled=True)
    counted = replace(
        told, completion=Completion((), "text", num_prompt_tokens=7, num_completion_tokens=3), is_carried=True
    )
    played = replace(trajectory(problem), turns=(*trajectory(problem).turns, told, counted))
    row = json.loads(json.dumps(trajectory_to_row(played, feedback="error")))
    assert row["feedback"] == "error" and row["turns"][-1]["num_completion_tokens"] == 3
    assert trajectory_to_row(trajectory_from_row(row, problem), feedback="error") == row

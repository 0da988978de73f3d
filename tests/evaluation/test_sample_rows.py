"""The schema of samples.jsonl: rows and their version."""

import json
from dataclasses import fields, replace
from types import UnionType
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from cocos.assembly.rules import conditions
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.sample_rows import (
    ExtraTurnKeys,
    ExtraVerdictKeys,
    SampleRow,
    TurnRow,
    VerdictRow,
    trajectory_from_row,
    trajectory_to_row,
    validate_row,
)
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.files.json_lines import DataError, Place
from cocos.generation import Completion
from cocos.trajectories import Step, Trajectory, Turn

CONDITIONS = conditions(EvalConfig(model_name_or_path="m", test_data="t", output_dir="o"))


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


def test_a_row_has_every_turns_completion_reward_verdicts_tokens_and_times(problem):
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
        "feedback": "",
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


def test_a_row_has_the_tests_of_its_verdicts_the_hidden_ones_last(problem):
    hidden = replace(
        trajectory(problem).problem, test_list=problem.test_list[:2], hidden_test_list=problem.test_list[2:]
    )
    row = trajectory_to_row(replace(trajectory(problem), problem=hidden))
    assert row["tests"] == ["assert double(2) == 4", "assert double(0) == 0", "assert double(-1) == -2"]
    assert row["num_visible_tests"] == 2 and len(row["turns"][0]["verdicts"]) == 3


def test_the_reward_is_null_and_not_0_after_a_failure_of_the_executor(problem):
    turns = trajectory_to_row(trajectory(problem))["turns"]
    assert [turn["reward"] for turn in turns] == [1 / 3, None, 1.0]
    assert [turn["is_right"] for turn in turns] == [False, False, True]
    assert turns[1]["infra_error"] == "the worker died" and turns[1]["verdicts"] == []
    assert '"reward": null' in json.dumps(turns[1])


def test_the_reward_of_a_row_is_the_share_of_passed_tests_in_child_ones_too(problem):
    marked = Verdict(Status.PASSED, in_child_reason="the test replaces sys.stdin")
    turn = Turn((), Completion((), "x"), "x", ExecutionResult((Verdict(Status.PASSED), marked)))
    row = trajectory_to_row(Trajectory(problem, turns=(turn,)))["turns"][0]
    assert (row["reward"], row["is_right"]) == (1.0, True)
    assert [verdict["in_child_reason"] for verdict in row["verdicts"]] == [
        None,
        "the test replaces sys.stdin",
    ]


def test_tokens_are_counted_per_turn(problem):
    turns = trajectory_to_row(trajectory(problem))["turns"]
    assert [(t["num_prompt_tokens"], t["num_completion_tokens"]) for t in turns] == [
        (10, 1),
        (20, 2),
        (30, 3),
    ]


def test_a_row_converted_to_a_trajectory_and_back_is_the_same_row(problem):
    feedback = replace(trajectory(problem).turns[0], feedback="It fails.", is_resampled=True)
    thought = {"thought": "<think>Hm.</think>", "num_thought_tokens": 2}
    counted = replace(
        feedback,
        completion=Completion((), "text", num_prompt_tokens=7, num_completion_tokens=3, **thought),
        is_carried=True,
    )
    played = replace(trajectory(problem), turns=(*trajectory(problem).turns, feedback, counted))
    row = json.loads(json.dumps(trajectory_to_row(played, feedback="error")))
    assert row["feedback"] == "error" and row["turns"][-1]["num_completion_tokens"] == 3
    assert thought.items() <= row["turns"][-1].items()
    assert trajectory_to_row(trajectory_from_row(row, problem), feedback="error") == row


def test_an_agents_turn_and_the_number_of_the_api_key_survive_a_row(problem):
    first = trajectory(problem).turns[0]
    turn = replace(first, step=Step("reflect", 0.45), completion=replace(first.completion, key=2))
    turn = replace(turn, request="Repair it.")
    played = replace(trajectory(problem), turns=(first, turn))
    row = json.loads(json.dumps(trajectory_to_row(played)))
    names = ("node", "temperature", "api_key", "request")
    assert [turn.get(name) for turn in row["turns"] for name in names] == [
        *[None] * 4,
        "reflect",
        0.45,
        2,
        "Repair it.",
    ]
    assert trajectory_to_row(trajectory_from_row(row, problem)) == row


# -- schema --


def own_keys(schema):
    """Return the keys of a schema with their types, without those that only some rows have."""
    inherited = {TurnRow: ExtraTurnKeys, VerdictRow: ExtraVerdictKeys}.get(schema, schema).__optional_keys__
    return {key: kind for key, kind in get_type_hints(schema).items() if key not in inherited}


def has_type(value, kind):
    if isinstance(kind, UnionType):
        return any(has_type(value, part) for part in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_args(kind):  # a list
        return isinstance(value, list) and all(has_type(item, get_args(kind)[0]) for item in value)
    if kind in (TurnRow, VerdictRow):
        return isinstance(value, dict) and value.keys() == kind.__required_keys__
    return type(value) is kind or (kind is float and type(value) is int)


def test_a_row_has_the_keys_of_the_schema_and_values_of_their_types(problem):
    row = json.loads(json.dumps(trajectory_to_row(trajectory(problem), **CONDITIONS)))
    objects = [(SampleRow, row), *((TurnRow, turn) for turn in row["turns"])]
    objects += [(VerdictRow, verdict) for turn in row["turns"] for verdict in turn["verdicts"]]
    assert len(objects) == 1 + 3 + 6
    for schema, value in objects:
        kinds = own_keys(schema) | (CONDITION_TYPES if schema is SampleRow else {})
        assert value.keys() == kinds.keys()
        assert [key for key, kind in kinds.items() if not has_type(value[key], kind)] == []
    assert row["schema_version"] == 3
    # The value of an expression (`Executor.values`) is no outcome of a test.
    assert {field.name for field in fields(Verdict)} - {"encoded"} == VerdictRow.__annotations__.keys()


# A row records what was used: the protocol by its name, and the temperature of every turn.
CONDITION_TYPES = {name: get_type_hints(EvalConfig)[name] for name in CONDITIONS} | {
    "temperature": list[float]
}


PLACE = Place("run/samples.jsonl", 3)


def test_a_row_of_this_version_is_accepted(problem):
    row = trajectory_to_row(trajectory(problem), **CONDITIONS)
    assert validate_row(row, PLACE) is row


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": None}, "the row was written by an earlier version (it has no schema_version); "),
        ({"schema_version": 2}, "the row has schema_version 2, expected 3; "),
    ],
)
def test_a_row_of_another_version_is_refused_in_one_line_with_the_remedy(problem, changes, message):
    row = trajectory_to_row(trajectory(problem)) | changes
    row = {key: value for key, value in row.items() if value is not None}
    with pytest.raises(DataError) as caught:
        validate_row(row, PLACE)
    remedy = "score it again with --answers run/samples.jsonl and another --output_dir"
    assert str(caught.value) == f"run/samples.jsonl:3: {message}{remedy}"


@pytest.mark.parametrize("key", ["task_id", "sample", "text", "tests", "num_visible_tests", "turns"])
def test_a_row_without_a_key_is_not_a_row(problem, key):
    row = dict(trajectory_to_row(trajectory(problem)))
    del row[key]
    with pytest.raises(DataError, match=r"samples\.jsonl:3: not a row of samples\.jsonl"):
        validate_row(row, PLACE)


@pytest.mark.parametrize(
    "changes", [{"task_id": 1}, {"sample": "0"}, {"turns": {}}, {"turns": ["x"]}, {"turns": [{"code": ""}]}]
)
def test_a_row_with_a_value_of_the_wrong_type_is_not_a_row(problem, changes):
    row = trajectory_to_row(trajectory(problem)) | changes
    with pytest.raises(DataError, match=r"samples\.jsonl:3: not a row of samples\.jsonl"):
        validate_row(row, PLACE)

"""Answers of a file in place of a model's: which are used, and what is said of the others."""

import json

import pytest

from cocos.assembly.given_answers import given_answers, load_answers
from cocos.files.json_lines import DataError
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.trajectories import begin

PROBLEMS = [Problem(name, "Write it.", (f"assert {name}(2)",)) for name in ("double", "triple")]


def file_of(tmp_path, *rows):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def rows_of(*answers, **fields):
    return [{"task_id": problem.task_id, "answers": list(answers)} | fields for problem in PROBLEMS]


UNUSED = {
    "turns": (rows_of("x = 1", "x = 2", "x = 3"), "the last 2 turns are not used; raise --num_turns"),
    "samples": (
        [*rows_of("x = 1"), *rows_of("x = 2")],
        "2 rows of further samples are not used; raise --num_samples",
    ),
    "problems": (
        [*rows_of("x"), {"task_id": "other", "answers": ["x"]}],
        "rows of 1 problems are not used, first 'other'",
    ),
}


@pytest.mark.parametrize("what", UNUSED)
def test_answers_that_a_run_does_not_use_are_named(tmp_path, capsys, what):
    rows, note = UNUSED[what]
    given_answers([file_of(tmp_path, *rows)], begin(PROBLEMS), named_protocol("cocos"), 1)
    said = capsys.readouterr().err
    assert note in said and said.count("note: --answers") == 1
    given_answers([file_of(tmp_path, *rows_of("x = 1"))], begin(PROBLEMS), named_protocol("cocos"), 1)
    assert capsys.readouterr().err == ""


def test_the_number_of_a_sample_may_be_text_and_anything_else_is_refused(tmp_path):
    assert set(load_answers(file_of(tmp_path, *rows_of("x", sample="0")))) == {("double", 0), ("triple", 0)}
    with pytest.raises(
        DataError, match=r"answers.jsonl:1: field 'sample' is 'first'; expected a whole number"
    ):
        load_answers(file_of(tmp_path, *rows_of("x", sample="first")))
    with pytest.raises(
        DataError, match=r"answers.jsonl:1: field 'sample' is -1; expected a whole number, from"
    ):
        load_answers(file_of(tmp_path, *rows_of("x", sample=-1)))


def test_a_row_without_an_id_is_refused_at_its_line(tmp_path):
    with pytest.raises(DataError, match=r"answers.jsonl:2: expected .*task_id"):
        load_answers(file_of(tmp_path, rows_of("x")[0], {"answers": ["x"]}))

"""Rows and files that are not in MBPP format: the command that converts them is named."""

import gzip
import json
import shlex
from pathlib import Path

import pyarrow.parquet
import pytest

from cocos.commands.prepare import main as prepare_main
from cocos.dataprep.named_sets import load_problem_set
from cocos.dataprep.sources import PUBLIC_SOURCES
from cocos.problems import DataError
from tests.support.paths import dataset


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_problem_set(str(path))
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


RAW_COLUMNS = {
    "humaneval": ["task_id", "prompt", "entry_point", "canonical_solution", "test"],
    "humanevalfix": ["task_id", "prompt", "entry_point", "canonical_solution", "test", "buggy_solution"],
    "humanevalplus": ["task_id", "prompt", "entry_point", "canonical_solution", "test", "plus_input"],
    "mbppplus": ["task_id", "prompt", "entry_point", "canonical_solution", "plus_input", "assertion"],
    "kodcode": ["question_id", "question", "solution", "test_code"],
}


@pytest.mark.parametrize("name", RAW_COLUMNS)
def test_a_raw_row_of_a_public_set_names_the_command_that_converts_it(tmp_path, name):
    path = tmp_path / "raw.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(dict.fromkeys(RAW_COLUMNS[name], "x")).encode()))
    assert refusal(path) == (
        f"{path}:1: a raw row of the public set {name}; convert it: cocos prepare {name} "
        f"--input {path} --output_dir data/{name}"
    )
    assert name in PUBLIC_SOURCES
    table = pyarrow.Table.from_pylist([dict.fromkeys(RAW_COLUMNS[name], "x")])
    pyarrow.parquet.write_table(table, tmp_path / "raw.parquet")
    assert f"is a Parquet file, not JSON; convert it: cocos prepare {name} --input" in refusal(
        tmp_path / "raw.parquet"
    )


def test_columns_of_other_names_csv_and_parquet_name_the_command_that_converts_them(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"id": 1, "question": "Double.", "tests": ["assert f(1) == 2"]}))
    assert refusal(path) == (
        f"{path}:1: has the columns id, question, tests, but not text and test_list; convert it, for example: "
        f"cocos prepare jsonl --input {path} --columns text=question test_list=tests "
        "--output_dir data/own"
    )
    path = tmp_path / "own.csv"
    path.write_text("question,tests\n")
    assert refusal(path).endswith(f"cocos prepare csv --input {path} --output_dir data/own")
    path = tmp_path / "own.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"question": "x"}]), path)
    columns = "--columns text=question test_list=COLUMN"
    assert refusal(path).endswith(f"cocos prepare parquet --input {path} {columns} --output_dir data/own")


@pytest.mark.parametrize(
    ("file", "content", "options"),
    [
        ("my data.csv", "question,asserts\nDouble.,assert f(1) == 2\n", "--columns text=question test_list=asserts"),
        ("a.tsv", "text\ttest_list\nDouble.\tassert f(1) == 2\n", "--tests lines"),
        ("a.jsonl", json.dumps({"text": "Double.", "test_list": "def test_f():\n    assert f(1) == 2"}), "pytest"),
        ("a.jsonl", json.dumps({"text": "Double.", "test_list": ["assert f(1) == 2"]}), "jsonl"),
    ],
)  # fmt: skip
def test_the_command_that_converts_a_file_converts_it_as_it_is_printed(
    tmp_path, monkeypatch, capsys, file, content, options
):
    monkeypatch.chdir(tmp_path)
    Path(file).write_text(content)
    with pytest.raises(ValueError, match="is a file; SOURCE is its format, and --input the file: ") as caught:
        prepare_main([file])
    command = shlex.split(str(caught.value).split("--input the file: ")[1])
    assert command[:2] == ["cocos", "prepare"] and options in " ".join(command)
    assert prepare_main([*command[2:], "--splits", "0", "0", "1"]) == 0
    # The folder exists now, and another one is named.
    with pytest.raises(ValueError, match="-prepared"):
        prepare_main([file])


def test_a_folder_as_a_file_names_the_files_in_it_and_as_a_source_its_format(tmp_path):
    assert refusal(tmp_path) == f"{tmp_path}: is a folder; give a file"
    row = json.dumps({"text": "Double.", "test_list": ["assert f(1) == 2"]})
    for name in ("train.jsonl", "test.jsonl", "findings.jsonl"):
        (tmp_path / name).write_text(row)
    files = f"{tmp_path}/test.jsonl, {tmp_path}/train.jsonl"
    assert refusal(tmp_path) == f"{tmp_path}: is a folder; give a file in it: {files}"
    with pytest.raises(ValueError, match=rf"is a folder; .*cocos prepare jsonl --input {tmp_path} --out"):
        prepare_main([str(tmp_path)])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"prompt": "p", "completion": "c"},
            "is a row for Boost, not a problem; give such rows to cocos boost",
        ),
        ({"task_id": "1", "turns": [], "tests": []}, "is a row of an evaluation, not a problem"),
    ],
)
def test_rows_of_another_step_are_named(tmp_path, row, words):
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    assert words in refusal(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("HumanEval.jsonl.gz", "humaneval"),
        ("humanevalpack_python.jsonl", "humanevalfix"),
        ("kodcode_demo_232.jsonl", "kodcode"),
    ],
)
def test_the_published_raw_files_are_recognized(file, name):
    assert f"convert it: cocos prepare {name} --input" in refusal(dataset(file))

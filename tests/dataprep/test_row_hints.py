"""Rows and files that are not in MBPP format: the command that converts them is named."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet
import pytest

from cocos.dataprep.public_sets import load_problem_set
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
        f"{path}:1: a raw row of the public set {name}; convert it: python scripts/prepare_data.py {name} "
        f"--input {path} --output_dir data/{name}"
    )
    assert name in PUBLIC_SOURCES
    table = pyarrow.Table.from_pylist([dict.fromkeys(RAW_COLUMNS[name], "x")])
    pyarrow.parquet.write_table(table, tmp_path / "raw.parquet")
    assert (
        f"is a Parquet file, not JSON; convert it: python scripts/prepare_data.py {name} --input"
        in refusal(tmp_path / "raw.parquet")
    )


def test_columns_of_other_names_csv_and_parquet_name_the_command_that_converts_them(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"id": 1, "question": "Double.", "tests": ["assert f(1) == 2"]}))
    assert refusal(path) == (
        f"{path}:1: has the columns id, question, tests, but not text and test_list; convert it, for example: "
        f"python scripts/prepare_data.py jsonl --input {path} --columns text=question test_list=tests "
        "--output_dir data/own"
    )
    path = tmp_path / "own.csv"
    path.write_text("question,tests\n")
    assert refusal(path).endswith(f"prepare_data.py csv --input {path} --output_dir data/own")
    path = tmp_path / "own.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"question": "x"}]), path)
    assert refusal(path).endswith(f"prepare_data.py parquet --input {path} --output_dir data/own")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("HumanEval.jsonl.gz", "humaneval"),
        ("humanevalpack_python.jsonl", "humanevalfix"),
        ("kodcode_demo_232.jsonl", "kodcode"),
    ],
)
def test_the_published_raw_files_are_recognized(file, name):
    assert f"convert it: python scripts/prepare_data.py {name} --input" in refusal(dataset(file))

"""Rows of the field's other trainers become problems, recognised by their columns."""

import json

import pyarrow.parquet
import pytest

from cocos.commands.prepare import main
from cocos.dataprep.formats.conversion import from_columns
from cocos.dataprep.formats.field_rows import format_of, read_field_row
from cocos.files.json_lines import DataError, Place
from cocos.problems import load_problems

PLACE = Place("rows.jsonl", 1)
DOUBLE = "n = int(input())\nprint(2 * n)\n"
SPOKEN = ["assert program_output('3\\n') == '6\\n'", "assert program_output('5\\n') == '10\\n'"]
CASES = [{"input": "3\n", "output": "6\n"}, {"input": "5\n", "output": "10\n"}]
PAIRS = {"inputs": ["3\n", "5\n"], "outputs": ["6\n", "10\n"]}
USER = [{"role": "system", "content": "Think."}, {"role": "user", "content": "Double."}]

# Columns of a row -> its tests.
ROWS = {
    "apps": ({"question": "Double.", "input_output": json.dumps(PAIRS), "solutions": json.dumps([DOUBLE])}, SPOKEN),
    "apps without JSON text": ({"question": "Double.", "input_output": PAIRS, "solutions": [DOUBLE]}, SPOKEN),
    "apps with lines": ({"question": "Double.", "input_output": {"inputs": [["3", ""], ["5", ""]], "outputs": [["6", ""], ["10", ""]]}}, SPOKEN),
    "taco with a function": (
        {
            "question": "Add.",
            "input_output": json.dumps({"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}),
        },
        ["assert add(1, 2) == 3"],
    ),
    "apps wraps what is expected": (
        {"question": "Add.", "input_output": {"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]]}},
        ["assert add(1, 2) in (3, [3])"],
    ),
    "open-r1": (
        {
            "problem": "Double.",
            "verification_info": {
                "language": "python",
                "test_cases": [{"fn_name": None, "type": "stdin_stdout", **case} for case in CASES],
            },
        },
        SPOKEN,
    ),
    "open-r1 with a function": (
        {
            "prompt": "Add.",
            "verification_info": json.dumps(
                {"test_cases": [{"fn_name": "add", "input": "1\n2", "output": "3", "type": "function_call"}]}
            ),
        },
        ["assert add(1, 2) == 3"],
    ),
    "verl": ({"prompt": USER, "reward_model": {"style": "rule", "ground_truth": json.dumps(PAIRS)}}, SPOKEN),
    "verl with asserts": ({"prompt": USER, "reward_model": {"ground_truth": json.dumps({"assert_case": ["assert f(1) == 2"]})}}, ["assert f(1) == 2"]),
    "verl with check": (
        {
            "prompt": USER,
            "reward_model": {
                "ground_truth": json.dumps(
                    {"functional": "def check(candidate):\n    assert candidate(1) == 2\n\ncheck(f)"}
                )
            },
        },
        ["assert f(1) == 2"],
    ),
    "CodeContests": (
        {
            "name": "1_A",
            "description": "Double.",
            "public_tests": {"input": ["3\n"], "output": ["6\n"]},
            "private_tests": {"input": ["5\n"], "output": ["10\n"]},
            "generated_tests": {"input": [], "output": []},
            "solutions": {"language": [2, 3], "solution": ["int main() {}", DOUBLE]},
        },
        SPOKEN,
    ),
    "DeepCoder": ({"problem": "Double.", "tests": json.dumps([{**case, "testtype": "stdin"} for case in CASES])}, SPOKEN),
    "LiveCodeBench in DeepCoder": (
        {
            "problem": "Add.",
            "tests": json.dumps([{"input": "1\n2", "output": "3", "metadata": {"func_name": "add"}}]),
        },
        ["assert add(1, 2) == 3"],
    ),
    "LiveCodeBench in DeepCoder, named by the row": (
        {
            "problem": "Add.",
            "metadata": json.dumps({"func_name": "add"}),
            "tests": json.dumps(
                [{"input": "1\n2", "output": "3", "testtype": "functional", "metadata": "{}"}]
            ),
        },
        ["assert add(1, 2) == 3"],
    ),
    "SYNTHETIC": (
        {
            "prompt": "Add.",
            "verification_info": repr(
                {"test_cases": [{"fn_name": "add", "input": [1, 2], "output": 0.5, "type": "function_call"}]}
            ),
        },
        ["assert abs(add(1, 2) - 0.5) <= 1.05e-06"],
    ),
    "Codeforces": ({"title": "A", "description": "Double.", "examples": CASES[:1], "official_tests": CASES[1:]}, SPOKEN),
    "prompt, solution and a check that nothing calls": (
        {
            "prompt": 'def g(x):\n    return x\n\ndef f(x):\n    """Add one."""\n',
            "canonical_solution": "    return g(x) + 1\n",
            "check": "def check(candidate):\n    assert candidate(1) == 2",
        },
        ["assert f(1) == 2"],
    ),
    "prompt, solution and check": (
        {
            "prompt": "def f(x):\n",
            "canonical_solution": "    return x + 1\n",
            "check": "def check(candidate):\n    assert candidate(1) == 2\n\ncheck(f)",
        },
        ["assert f(1) == 2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_tests_of_a_row_are_read_in_whatever_shape_they_have(name):
    row, tests = ROWS[name]
    assert read_field_row(row, format_of(row), PLACE).tests == tests


def test_the_shortest_reference_in_python_3_counts_and_the_public_tests_are_visible():
    row, _ = ROWS["CodeContests"]
    found = read_field_row(row, format_of(row), PLACE)
    assert found.fields == {"task_id": "1_A", "text": "Double.", "code": DOUBLE} and found.num_visible == 1


def test_a_class_is_called_by_name_and_its_first_lines_are_part_of_the_task():
    starter = "class Solution:\n    def add(self, a, b):\n"
    tests = json.dumps({"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]})
    row = {"question": "Add.", "input_output": tests, "starter_code": starter, "solutions": '["n ="]'}
    found = read_field_row(row, format_of(row), PLACE)
    assert found.tests == ["assert Solution().add(1, 2) == 3"]
    assert found.fields["text"].endswith(f"Complete this program:\n\n{starter.strip()}")


@pytest.mark.parametrize(
    ("cases", "fields", "tests"),
    [
        (CASES, {}, SPOKEN),
        (str([{"stdin": case["input"], "expected_output": case["output"]} for case in CASES]), {}, SPOKEN),
        ([{"args": [1, 2], "expected": 3}], {"entry_point": "add"}, ["assert add(1, 2) == 3"]),
        ([{"input": {"a": 1, "b": [2]}, "output": None}], {"entry_point": "add"}, ["assert add(a=1, b=[2]) is None"]),
        ([{"fn_name": "add", "input": "ab", "output": 3}], {}, ["assert add('ab') == 3"]),
    ],
)  # fmt: skip
def test_inputs_and_outputs_in_a_column_of_any_name_are_tests_of_an_own_row(cases, fields, tests):
    row = {"q": "Do it.", "cases": cases, "entry_point": float("nan"), **fields}
    assert (
        list(from_columns(row, PLACE, {"text": "q", "test_list": "cases"}, "list").problem.test_list) == tests
    )
    hidden = {"text": "Do it.", "test_list": tests, "hidden_test_list": cases, **fields}
    if not isinstance(cases, str):
        assert list(from_columns(hidden, PLACE, {}, "list").problem.hidden_test_list) == tests


@pytest.mark.parametrize(
    ("case", "message"),
    [({"args": [1], "output": 1}, "'entry_point'"), ({"in": 1}, "keys in, but no 'input'")],
)
def test_a_case_of_an_own_row_that_cannot_be_read_says_what_is_missing(case, message):
    with pytest.raises(ValueError, match=message):
        from_columns({"text": "Do it.", "test_list": [case]}, PLACE, {}, "list")


def test_a_reference_in_a_fence_is_a_reference():
    row, _ = ROWS["open-r1"]
    row = row | {"gold_standard_solution": f"```python\n{DOUBLE}```"}
    assert read_field_row(row, format_of(row), PLACE).fields["code"] == DOUBLE.strip()


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ({"inputs": [], "outputs": []}, "'input_output' has no test"),
        ({"input": "1"}, "keys input, but no 'output'"),
        (42, "42 is neither a test nor a list of tests"),
        ({"inputs": ["1"], "outputs": []}, "argument 2 is shorter"),
        ({"inputs": [[object]], "outputs": [1], "fn_name": "f"}, "is not a plain value"),
    ],
)
def test_a_row_that_cannot_be_read_is_one_line_with_its_format(column, reason):
    row = {"question": "Double.", "input_output": column}
    with pytest.raises(DataError, match=r"rows\.jsonl.*APPS and TACO") as refused:
        read_field_row(row, format_of(row), PLACE)
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def test_own_rows_whose_columns_have_the_same_names_are_no_format():
    assert format_of({"problem": "Double.", "tests": ["assert f(1) == 2"]}) is None
    assert format_of({"problem": "Double.", "tests": "assert f(1) == 2"}) is None
    assert format_of({"question": "Double.", "tests": [{"input": "1", "output": "2"}]}) is None


@pytest.mark.parametrize(
    ("trainer", "tests"),
    [("verl", SPOKEN), ("openr1", SPOKEN), ("verl", ["assert f(1) == 2", "assert f(math.pi) > 3"])],
)
def test_rows_that_are_written_for_another_trainer_are_read_again_with_the_same_tests(
    tmp_path, trainer, tests
):
    own = {
        "task_id": "7",
        "text": "Double.",
        "test_list": tests[:1],
        "hidden_test_list": tests[1:],
        "code": DOUBLE,
    }
    if tests != SPOKEN:
        own |= {"test_imports": ["import math"]}
    (tmp_path / "own.jsonl").write_text(json.dumps(own))
    options = ["--checks", "--splits", "1", "0", "0", "--output_dir"]
    main(["jsonl", "--input", str(tmp_path / "own.jsonl"), "--to", trainer, *options, str(tmp_path / "out")])
    written = tmp_path / "out" / trainer / "train.parquet"
    main(["parquet", "--input", str(written), *options, str(tmp_path / "again")])
    [problem] = load_problems(tmp_path / "again" / "train.jsonl")
    found = [test.removeprefix("import math\n") for test in problem.scored_tests]
    assert (found, problem.code, "Double." in problem.text) == (tests, DOUBLE, True)
    [row] = pyarrow.parquet.read_table(written).to_pylist()
    if trainer == "verl":  # what verl's judges of code are asked by
        assert row["data_source"] == "taco" and row["prompt"][0]["role"] == "user"
        assert json.loads(row["reward_model"]["ground_truth"]).keys() in (
            {"inputs", "outputs"},
            {"assert_case"},
        )
    else:
        assert {case["type"] for case in row["verification_info"]["test_cases"]} == {"stdin_stdout"}


def test_asserts_for_a_trainer_that_knows_standard_input_alone_are_one_line_with_the_remedy(tmp_path):
    own = {"task_id": "7", "text": "Add.", "test_list": ["assert f(1) == 2"]}
    (tmp_path / "own.jsonl").write_text(json.dumps(own))
    with pytest.raises(DataError, match=r"problem '7'.*--to verl"):
        main(
            [
                "jsonl",
                "--input",
                str(tmp_path / "own.jsonl"),
                "--to",
                "openr1",
                "--checks",
                "--splits",
                "1",
                "0",
                "0",
                "--output_dir",
                str(tmp_path / "out"),
            ]
        )
    assert not (tmp_path / "out").exists()


def test_a_set_of_such_rows_on_the_hub_needs_its_name_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner/name").mkdir(parents=True)
    for split, name in (("train", "apps"), ("test", "apps")):
        (tmp_path / "owner/name" / f"{split}.jsonl").write_text(json.dumps(ROWS[name][0]))
    main(["owner/name", "--checks", "--output_dir", "out"])
    for split in ("train", "test"):
        [problem] = load_problems(tmp_path / "out" / f"{split}.jsonl")
        assert (list(problem.scored_tests), problem.code) == (SPOKEN, DOUBLE)

"""Converters of OpenCoder, LeetCodeDataset, AceCode, LiveCodeBench, BigCodeBench, DebugBench and CodeI/O.

The rows have the columns of the published sets and contents of our own.
"""

import base64
import json
import pickle
import zlib

import pytest

from cocos.dataprep.formats.program_sets import class_to_functions
from cocos.dataprep.sources import PUBLIC_SOURCES, convert_row
from cocos.executor import Program, StdoutTest
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem
from cocos.trajectories import as_program
from tests.support.data import lines

LEETCODE = {
    "task_id": "double-all",
    "question_id": 1,
    "difficulty": "Easy",
    "tags": ["Array"],
    "problem_description": "Double every number.",
    "starter_code": "class Solution:\n    def doubleAll(self, nums: List[int], skip: Optional[int]) -> List[int]:\n        ",
    "estimated_date": "2024-01-01",
    "prompt": "from typing import *\nfrom collections import *\n",
    "completion": "class Solution:\n    def doubleAll(self, nums: List[int], skip: Optional[int]) -> List[int]:\n"
    "        return list(deque(self.twice(n) for n in nums if n != skip))\n"
    "    def twice(self, n):\n        return 2 * n\n",
    "entry_point": "Solution().doubleAll",
    "test": "def check(candidate):\n    assert candidate(nums = [1,2], skip = None) == [2, 4]\n" "    assert candidate(nums = [], skip = 1) == []\n",
    "input_output": [{"input": "nums = [1,2], skip = None", "output": "[2, 4]"}],
    "query": "...",
    "response": "...",
}  # fmt: skip
CASES = [{"input": "3 4\n", "output": "7\n", "testtype": "stdin"}]
PACKED = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(CASES)))).decode()
STDIN = {
    "question_title": "Sum",
    "question_content": "Print the sum of two numbers.",
    "platform": "atcoder",
    "question_id": "abc000_a",
    "contest_id": "abc000",
    "contest_date": "2024-09-01T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
    "private_test_cases": PACKED,
    "metadata": "{}",
}
FUNCTIONAL = STDIN | {
    "question_id": "9999",
    "starter_code": "class Solution:\n    def add(self, xs: List[int], y: int) -> int:\n        ",
    "public_test_cases": json.dumps([{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]),
    "private_test_cases": "[]",
    "metadata": json.dumps({"func_name": "add"}),
}
ROWS = {
    "opc-educational": {
        "seq_id": 7,
        "instruction": "Write a function that doubles a number.",
        "output": "```python\n...```",
        "code": "def double(x):\n    return 2 * x",
        "entry_point": "double",
        "testcase": ["assert double(1) == 2", "assert double(2) == 4", "assert double(0) == 0", "assert double(-1) == -2"],
    },
    "acecode": {
        "id": "oss_1",
        "source": "oss",
        "question": "Write a function double(x).",
        "test_cases": ["assert double(1) == 2", "assert double(2) == 4"],
        "inferences": [
            {"model_name": "m", "completion_id": 0, "completion": "def double(x): return x", "pass_rate": 0.0},
            {"model_name": "m", "completion_id": 1, "completion": "Sure:\n```python\ndef double(x):\n    return 2 * x\n```", "pass_rate": 1.0},
        ],
        "context_messages": [[]],
    },
    "leetcode": LEETCODE,
    "bigcodebench": {
        "task_id": "BigCodeBench/0",
        "complete_prompt": "...",
        "instruct_prompt": "Count the words of a text.",
        "canonical_solution": "    return dict(Counter(text.split()))",
        "code_prompt": "from collections import Counter\ndef task_func(text):\n",
        "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def setUp(self):\n        self.text = 'a b a'\n"
        "    def test_case_1(self):\n        self.assertEqual(task_func(self.text), {'a': 2, 'b': 1})\n"
        "    def test_case_2(self):\n        self.assertEqual(task_func(''), {})\n",
        "entry_point": "task_func",
        "doc_struct": "{}",
        "libs": "['collections']",
    },
    "debugbench": {
        "slug": "double-all",
        "description": "Double every number.",
        "examples": [],
        "constraints": "",
        "oracle_code": LEETCODE["completion"],
        "content": "",
        "level": "easy",
        "type": ["operation error"],
        "buggy_code": LEETCODE["completion"].replace("2 *", "3 *"),
        "leetcode": LEETCODE,
    },
}  # fmt: skip


def converted(name: str, row: dict) -> Problem:
    return convert_row(PUBLIC_SOURCES[name], dict(row), Place("rows.jsonl", 1)).problem


@pytest.mark.parametrize("name", ROWS)
def test_a_reference_passes_the_tests_of_its_row(name, executor):
    problem = converted(name, ROWS[name])
    [result] = executor.run([as_program(problem, problem.code)])
    assert result.all_passed and not any(verdict.in_child for verdict in result.verdicts)


def test_three_tests_are_visible_and_the_others_hidden():
    problem = converted("opc-educational", ROWS["opc-educational"])
    assert (len(problem.test_list), problem.hidden_test_list) == (3, ("assert double(-1) == -2",))


def test_leetcodes_class_becomes_functions_with_the_imports_they_need():
    problem = converted("leetcode", LEETCODE)
    assert (
        problem.text
        == "Write a function doubleAll(nums: list[int], skip: int | None) -> list[int].\n\nDouble every number."
    )
    assert problem.code.startswith(
        "from typing import List\nfrom typing import Optional\nfrom collections import deque\n"
    )
    assert "twice(n) for n in nums" in problem.code and "self" not in problem.code
    assert problem.test_list[0] == "assert doubleAll(nums = [1,2], skip = None) == [2, 4]"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"completion": "class Solution:\n    def f(self):\n        self.x = 1\n"}, "a class with state"),
        ({"completion": "def f(x): return x"}, "no class Solution"),
        ({"test": "def check(candidate):\n    assert candidate(root = tree_node([1])) == 1"}, "class of nodes"),
        ({"starter_code": "class Solution:\n    def other(self): "}, "no method doubleAll"),
    ],
)  # fmt: skip
def test_a_leetcode_row_that_is_no_function_is_refused_with_the_reason(change, reason):
    with pytest.raises(DataError, match=reason):
        converted("leetcode", LEETCODE | change)


def test_methods_that_call_each_other_become_functions():
    source = "class Solution:\n    def f(self, n):\n        return n if n < 1 else self.f(n - 1) + self.g()\n    def g(self):\n        return 1"
    names: dict = {}
    exec(class_to_functions(source), names)
    assert names["f"](3) == 3


def test_livecodebenchs_programs_read_standard_input(executor):
    problem = converted("livecodebench", STDIN)
    assert problem.test_list == (StdoutTest("1 2\n", "3\n").source, StdoutTest("3 4\n", "7\n").source)
    [result] = executor.run([Program("print(sum(map(int, input().split())))", problem.test_list)])
    assert result.all_passed
    assert converted("livecodebench", FUNCTIONAL).test_list == ("assert add([1, 2], 3) == 6",)
    assert converted("livecodebench", FUNCTIONAL).text.startswith(
        "Write a function add(xs: list[int], y: int) -> int."
    )


def test_private_cases_cannot_execute_code():
    evil = base64.b64encode(zlib.compress(pickle.dumps(print))).decode()
    with pytest.raises(DataError, match="refers to"):
        converted("livecodebench", STDIN | {"private_test_cases": evil})


def test_debugbench_is_joined_with_the_tests_of_leetcode(prepare, tmp_path):
    folder = tmp_path / "both"
    folder.mkdir()
    bug = {name: value for name, value in ROWS["debugbench"].items() if name != "leetcode"}
    (folder / "python3_operation_error.json").write_text(json.dumps([bug, bug | {"slug": "unknown"}]))
    words = ("debugbench", "--input", folder, "--output_dir", tmp_path / "out", "--drop", "malformed")
    assert prepare(*words) == 2  # without LeetCodeDataset
    (folder / "LeetCodeDataset-train.jsonl").write_text(json.dumps(LEETCODE) + "\n")
    assert prepare(*words) == 0
    [row] = lines(tmp_path / "out/test.jsonl")
    assert row["bug_type"] == "operation error" and "3 * n" in row["buggy_code"]
    assert row["test_list"][0] == "assert Solution().doubleAll(nums = [1,2], skip = None) == [2, 4]"
    [dropped] = lines(tmp_path / "out/dropped.jsonl")
    assert dropped["detail"] == "LeetCodeDataset has no tests of 'unknown'"


def test_codeios_values_come_from_its_generator_and_its_reference_in_the_sandbox(prepare, tmp_path):
    row = {
        "task_description": "Sort numbers.",
        "input_output_spec": "Input: `xs` (list). Output: `return` (list).",
        "code_sample": "def main_solution(xs):\n    xs.sort()\n    return xs",
        "input_generator": "def generate_inputs(rng: Random) -> dict:\n    return {'xs': [rng.randrange(90) for _ in range(3)]}",
    }
    (tmp_path / "codeio.jsonl").write_text(json.dumps(row) + "\n")
    words = ("--input", tmp_path / "codeio.jsonl", "--output_dir", tmp_path / "out", "--splits", 1, 0, 0)
    assert prepare("codeio", *words) == 0
    [problem] = lines(tmp_path / "out/train.jsonl")
    assert len(problem["test_list"]) == 3 and len(problem["hidden_test_list"]) == 7
    # random.Random(0) gives 49, 53 and 5 below 90: the arguments are those before the reference sorts them.
    assert problem["test_list"][0] == "assert main_solution(xs=[49, 53, 5]) == [5, 49, 53]"


def test_livecodebench_in_a_window_of_dates(prepare, tmp_path, capsys):
    dates = {"a": "2024-08-31T23:00:00", "b": "2024-09-01T00:00:00", "c": "2024-12-01T00:00:00"}
    cases = [STDIN | {"question_id": name, "contest_date": date} for name, date in dates.items()]
    (tmp_path / "test6.jsonl").write_text("".join(json.dumps(row) + "\n" for row in cases))
    words = (
        "livecodebench",
        "--input",
        tmp_path / "test6.jsonl",
        "--checks",
        "--output_dir",
        tmp_path / "out",
    )
    assert prepare(*words, "--dates", "2024-9-1", "2024-12-01") == 2
    assert "--dates 2024-9-1 2024-12-01: give two days as 2024-08-01 2025-01-31" in capsys.readouterr().err
    assert prepare(*words, "--dates", "2024-09-01", "2024-12-01") == 0
    assert [row["task_id"] for row in lines(tmp_path / "out/test.jsonl")] == ["b", "c"]
    [dropped] = lines(tmp_path / "out/dropped.jsonl")
    assert (dropped["kind"], dropped["task_id"]) == ("date", "a")
    assert dropped["detail"] == "published on 2024-08-31"


def test_of_bigcodebenchs_releases_on_the_hub_the_newest_is_read(prepare, tmp_path, monkeypatch):
    # `datasets` reads a local folder of the set's name as the set.
    folder = tmp_path / "bigcode/bigcodebench"
    (folder / "data").mkdir(parents=True)
    releases = ("v0.1.0_hf", "v0.1.3", "v0.1.4")
    files = [{"split": name, "path": f"data/{name}-*"} for name in releases]
    card = {"configs": [{"config_name": "default", "data_files": files}]}
    (folder / "README.md").write_text(f"---\n{json.dumps(card)}\n---\n")
    for name in releases:
        row = ROWS["bigcodebench"] | {"instruct_prompt": f"The task as {name} has it."}
        (folder / f"data/{name}-0.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(tmp_path)
    assert prepare("bigcodebench", "--checks", "--output_dir", tmp_path / "out") == 0
    [row] = lines(tmp_path / "out/test.jsonl")
    assert row["text"] == "The task as v0.1.4 has it."

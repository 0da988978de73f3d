"""EvalPlus' sets: the reference computes the expected values in the sandbox, and the tests follow EvalPlus' rules."""

import gzip
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cocos.dataprep.expected_values import compute_values, with_expected_values
from cocos.dataprep.formats.evalplus import from_humanevalplus, from_mbppplus
from cocos.dataprep.formats.input_tests import literal
from cocos.dataprep.named_sets import load_problem_set, problems_file
from cocos.dataprep.readers import read_file
from cocos.dataprep.sources import PUBLIC_SOURCES
from cocos.executor import Executor, Limits
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem, load_problems
from cocos.trajectories import as_program
from tests.support.commands import succeed
from tests.support.data import lines, public

PLACE = Place("rows", 1)


def mbpp_row(code: str, base: list, plus: list, number: int = 3, atol: float = 0, name: str = "f") -> dict:
    return {
        "task_id": f"Mbpp/{number}",
        "prompt": '"""\nWrite a function.\nassert f(1) == 2\n"""\n',
        "entry_point": name,
        "canonical_solution": f"\n{code}\n",
        "base_input": base,
        "plus_input": plus,
        "atol": atol,
        "contract": "",
        "assertion": "\nassert f(1) == 2\n",
    }


HUMANEVAL_ROW = {
    "task_id": "HumanEval/0",
    "prompt": 'def add(a, b):\n    """Add."""\n',
    "entry_point": "add",
    "canonical_solution": "    return a + b\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
    "contract": "",
    "base_input": [[1, 2], [2, 3]],
    "plus_input": [[-1, 2], [1, 2], [[1], [2]]],
    "atol": 0,
}


def complete(row: dict, executor: Executor) -> tuple[Problem, tuple[str, ...]]:
    convert = from_mbppplus if "assertion" in row else from_humanevalplus
    converted = with_expected_values(convert(row, PLACE), PLACE, executor)
    return converted.problem, converted.left_out


def judged(problem: Problem, code: str, executor: Executor) -> list[bool]:
    [result] = executor.run([as_program(problem, code)])
    assert not any(verdict.in_child for verdict in result.verdicts)
    return [verdict.passed for verdict in result.verdicts]


# -- values --


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ([1, True, None, "a'b\n", b"\0"], """[1, True, None, "a'b\\n", b'\\x00']"""),
        (((1,), (), (1, 2)), "((1,), (), (1, 2))"),
        ([{3, 1}, set(), {(2,): [0.5]}], "[{1, 3}, set(), {(2,): [0.5]}]"),
        ([math.inf, -math.inf, -0.0], "[1e999, -1e999, -0.0]"),
        (complex(-0.0, -1), "complex(-0.0, -1.0)"),
    ],
)
def test_a_value_as_source_evaluates_to_itself(value, source):
    assert literal(value) == source
    assert eval(source) == value and repr(eval(source)) == repr(value)


@pytest.mark.parametrize("value", [math.nan, [object()], range(3), {"a": lambda: 0}])
def test_what_equals_nothing_or_has_no_source_is_refused(value):
    with pytest.raises(ValueError, match=r"NaN equals no value|is not a plain value"):
        literal(value)


def test_the_sandbox_computes_values_of_any_number_and_size_and_says_which_have_none(executor):
    code = """
import re, collections
def sum(n): raise KeyError(n)   # the helper must not call it
def f(n): return [n] * n
def g(n): return {"nan": float("nan"), "match": re.match("a", "a"), "none": None}.get(n, collections.Counter(n))
def h(n): return complex(n, -n)
def stop(): raise SystemExit
"""
    problem = Problem("1", "t", ("f(1)",), code)
    expressions = [
        *(f"f({n})" for n in range(300)),  # more than one program runs
        *("g('aab')", "g('nan')", "g('match')", "g('none')", "h(1.5)", "sum(1)", "stop()", "f(4000)"),
    ]
    values = compute_values(problem, expressions, executor)
    assert [value for value, _ in values[:300]] == [[n] * n for n in range(300)]
    rest = dict(zip(expressions[300:], values[300:], strict=True))
    assert rest["g('aab')"] == ({"a": 2, "b": 1}, None) and rest["h(1.5)"] == (complex(1.5, -1.5), None)
    assert rest["g('none')"] == (None, None)
    assert rest["g('nan')"].error == "NaN equals no value"
    assert rest["g('match')"].error == "NotPlainValue: returned Match, which is not a plain value"
    assert rest["sum(1)"].error == "KeyError: 1"
    assert rest["stop()"].error == "SystemExit: "
    assert rest["f(4000)"].error == "the value has 24000 characters"


# -- tests --


def test_base_inputs_become_visible_and_plus_inputs_hidden_tests_each_once(executor):
    problem, left_out = complete(HUMANEVAL_ROW, executor)
    assert problem.text.startswith("Complete this function.\n\ndef add") and problem.entry_point == "add"
    assert problem.test_list == ("assert add(1, 2) == 3", "assert add(2, 3) == 5")
    assert problem.hidden_test_list == ("assert add(-1, 2) == 1", "assert add([1], [2]) == [1, 2]")
    assert left_out == ()
    assert judged(problem, "def add(a, b): return a + b if b > 0 else 0", executor) == [
        True,
        True,
        True,
        False,
    ]


def test_the_text_of_mbpp_is_the_docstring_without_its_assert(executor):
    problem, _ = complete(mbpp_row("def f(n): return n + 1", [[1]], {}), executor)
    assert (problem.task_id, problem.text) == ("Mbpp/3", "Write a function.")
    assert problem.test_list == ("assert f(1) == 2",) and problem.hidden_test_list == ()


@pytest.mark.parametrize(
    ("code", "atol", "test", "right", "wrong"),
    [
        # numpy.allclose: 1e-6 + 1e-7 * 2.5 for a float of a row without a tolerance
        ("def f(n): return n / 2", 0, "assert abs(f(5) - 2.5) <= 1.25e-06", "2.5000012", "2.5000013"),
        ("def f(n): return n / 2", 0.01, "assert abs(f(5) - 2.5) <= 0.01000025", "2.51", "2.52"),
        ("def f(n): return n", 0.01, "assert abs(f(5) - 5) <= 0.0100005", "5.01", "5.02"),
        ("def f(n): return n", 0, "assert f(5) == 5", "5.0", "5.0000001"),
        ("def f(n): return n > 1", 0.01, "assert f(5) == True", "1", "1.01"),
        ("def f(n): return None", 0.01, "assert f(5) is None", "None", "0"),
        ("def f(n): return 1e999", 0, "assert f(5) == 1e999", "float('inf')", "1e308"),
        ("def f(n): return [n, 0.5]", 0, "assert f(5) == [5, 0.5]", "[5, .5]", "[5, .5000001]"),
    ],
)
def test_numbers_have_the_tolerance_of_evalplus(executor, code, atol, test, right, wrong):
    problem, _ = complete(mbpp_row(code, [[5]], [], atol=atol), executor)
    assert problem.test_list == (test,)
    assert judged(problem, f"def f(n): return {right}", executor) == [True]
    assert judged(problem, f"def f(n): return {wrong}", executor) == [False]


def test_the_floats_of_a_list_have_a_tolerance_each_but_its_type_and_length_have_none(executor):
    problem, _ = complete(mbpp_row("def f(n): return [n / 2, 10.0]", [[5]], []), executor)
    for value, passes in (
        ("[2.5000012, 10.0]", True),
        ("[2.5, 10.0000021]", False),  # 1e-6 + 1e-7 * 10 = 2e-6
        ("(2.5, 10.0)", False),
        ("[2.5]", False),
        ("[2.5, 10.0, 0.0]", False),
        ("None", False),
    ):
        assert judged(problem, f"def f(n): return {value}", executor) == [passes], value


def test_functions_with_rules_of_their_own(executor):
    # order and repetitions of a set do not matter
    row = mbpp_row("def Diff(a, b): return [x for x in a if x not in b]", [[[3, 1, 2], [2]]], [], name="Diff")
    problem, _ = complete(row, executor)
    assert problem.test_list == ("assert set(Diff([3, 1, 2], [2])) == {1, 3}",)
    assert judged(problem, "def Diff(a, b): return (1, 3, 3)", executor) == [True]
    # a match object is as good as True
    code = "import re\ndef check_str(s): return re.search('^[aeiou]', s)"
    problem, _ = complete(mbpp_row(code, [["apple"], ["pear"]], [], name="check_str"), executor)
    assert problem.test_list == ("assert check_str('apple')", "assert not check_str('pear')")
    assert judged(problem, code, executor) == [True, True]
    assert judged(problem, "def check_str(s): return s[0] in 'aeiou'", executor) == [True, True]
    # two readings. 3, 4: 9 + 2 * 3 * 4 = 33, or with the height of the apex round(9 + 6 * hypot(1.5, 4)) = 35
    row = mbpp_row("def surface_Area(b, s): return b * b + 2 * b * s", [[3, 4]], [], name="surface_Area")
    problem, _ = complete(row, executor)
    assert problem.test_list == ("assert surface_Area(3, 4) in (33, 35)",)
    # 12 and 345: |345 - 12| = 333 -> 9; padded, |0-3| + |1-4| + |2-5| = 9 as well; 1 and 23: 22 -> 4; |0-2| + |1-3| = 4
    # 9 and 10: 1; padded, |0-1| + |9-0| = 10
    row = mbpp_row(
        "def digit_distance_nums(a, b): return sum(map(int, str(abs(a - b))))",
        [[1, 23], [9, 10]], [], name="digit_distance_nums",
    )  # fmt: skip
    problem, _ = complete(row, executor)
    assert problem.test_list == (
        "assert digit_distance_nums(1, 23) == 4",
        "assert digit_distance_nums(9, 10) in (1, 10)",
    )
    # any root of the polynomial -2 + x^2
    row = HUMANEVAL_ROW | {
        "prompt": "def find_zero(xs):\n", "entry_point": "find_zero", "canonical_solution": "    return 2 ** 0.5\n",
        "base_input": [[[-2, 0, 1]]], "plus_input": [], "atol": 1e-4,
    }  # fmt: skip
    problem, _ = complete(row, executor)
    assert judged(problem, "def find_zero(xs): return -2 ** 0.5", executor) == [True]
    assert judged(problem, "def find_zero(xs): return 1.4", executor) == [False]
    # no root of 1 - x: |1 - 2 ** 0.5| = 0.414
    _, left_out = complete(row | {"plus_input": [[[1, -1]]]}, executor)
    assert left_out == ("plus input 1: the reference fails it on this Python: 0.414 is not <= 0.0001",)


def test_the_arguments_of_mbpp_have_the_types_that_json_lacks(executor):
    for number, given, source in (
        (2, [[1], [2]], "f((1,), (2,))"),
        (63, [[[1, 2], [3]]], "f([(1, 2), (3,)])"),
        (75, [[[1], [2]], 3], "f([(1,), (2,)], 3)"),
        (106, [[1], [2]], "f([1], (2,))"),
        (250, [[1, [2]], 3], "f((1, [2]), 3)"),
        (259, [[[1], [2]], [[3]]], "f(((1,), (2,)), ((3,),))"),
        (278, [[1, [2, 3], 4]], "f((1, (2, 3), 4))"),
        (722, [{"a": [1.5, 2]}, 1], "f({'a': (1.5, 2)}, 1)"),
        (252, ["(1-2j)"], "f(complex(1.0, -2.0))"),
        (124, ["1", "2j"], "f(1.0, complex(0.0, 2.0))"),
        (3, [[1], [2]], "f([1], [2])"),
    ):
        row = mbpp_row("def f(*args): return 0", [given], [], number)
        assert complete(row, executor)[0].test_list == (f"assert {source} == 0",), number


def test_inputs_that_give_no_test_are_left_out_by_name(executor):
    code = "def f(n): return n * 2 if n else 1 / n"
    problem, left_out = complete(mbpp_row(code, [[1]], [[0], ["x" * 9999], [2]]), executor)
    assert problem.hidden_test_list == ("assert f(2) == 4",)
    assert left_out == (
        "plus input 1: ZeroDivisionError: division by zero",
        "plus input 2: the value has 20000 characters",
    )
    problem, left_out = complete(mbpp_row("def f(n): return 0", [[1]], [["x" * 9999]]), executor)
    assert left_out == ("plus input 1: the test has 10016 characters, more than 10000",)
    with pytest.raises(
        DataError, match="rows:1: no base input gives a test; base input 1: ZeroDivisionError"
    ):
        complete(mbpp_row(code, [[0]], [[1]]), executor)
    with pytest.raises(DataError, match="rows:1: field 'plus_input' must be a list of argument lists"):
        complete(mbpp_row(code, [[1]], [2]), executor)


# -- the command, and refusals --

ORIGINAL_TEST = "import numpy as np\ndef assertion(out, exp, atol):\n    pass\ndef check(candidate):\n    assertion(candidate(1), 2, 0)\n"


def write(path: Path, *rows: dict) -> Path:
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


@pytest.mark.processes
def test_the_command_writes_a_set_with_visible_and_hidden_tests_and_findings(prepare, tmp_path, capsys):
    row = mbpp_row("def f(n): return n + 1", [[1]], [[2], ["x"]])
    words = ("mbppplus", "--input", write(tmp_path / "MbppPlus.jsonl.gz", row), "--executor_workers", 1)
    assert prepare(*words, "--output_dir", tmp_path / "plus") == 0
    printed = capsys.readouterr().out
    assert "1 rows read, 0 dropped, test 1" in printed and "1 test_left_out" in printed
    [problem] = load_problems(tmp_path / "plus/test.jsonl")
    assert (problem.test_list, problem.hidden_test_list) == (("assert f(1) == 2",), ("assert f(2) == 3",))
    [finding] = lines(tmp_path / "plus/findings.jsonl")
    assert finding["detail"].startswith("plus input 2: TypeError")
    manifest = json.loads((tmp_path / "plus/manifest.json").read_text())
    assert manifest["licence"] == "Apache-2.0" and manifest["isolation"]
    assert prepare(*words, "--output_dir", tmp_path / "again", "--checks") == 0
    assert (tmp_path / "again/test.jsonl").read_bytes() == (tmp_path / "plus/test.jsonl").read_bytes()
    # base and base + plus are two accuracies: a program that is right for 1 only
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"task_id": "Mbpp/3", "answers": ["def f(n): return 2"]}) + "\n")
    done = succeed(
        *(sys.executable, "test.py", "--test_data", tmp_path / "plus/test.jsonl", "--answers", answers),
        *("--num_turns", 1, "--output_dir", tmp_path / "eval"),
    )
    metrics = json.loads((tmp_path / "eval/metrics.json").read_text())["metrics"]
    assert (metrics["acc_visible_t1"]["value"], metrics["acc_t1"]["value"]) == (1.0, 0.0)
    table = done.stdout.split("Accuracy on the visible tests and on all tests, % [95 % interval]\n")[1]
    assert table.splitlines()[2].split()[-7:] == ["1", "100.0", "[20.7,", "100.0]", "0.0", "[0.0,", "79.3]"]


def test_a_reference_to_a_set_that_has_to_be_executed_names_the_command(tmp_path):
    raw = write(tmp_path / "HumanEvalPlus.jsonl.gz", HUMANEVAL_ROW)
    words = (
        "the references of humanevalplus compute its expected values, so prepare it first: "
        "cocos prepare humanevalplus"
    )
    for reference in ("hub:humanevalplus/test", f"humanevalplus={raw}"):
        with pytest.raises(DataError, match=words):
            problems_file(reference)
    with pytest.raises(DataError, match="a raw row of the public set humanevalplus; convert it: cocos"):
        load_problem_set(str(raw))


@pytest.mark.parametrize("name", ["humaneval", "jsonl"])
def test_the_original_format_is_refused_in_words_that_name_the_right_source(prepare, tmp_path, capsys, name):
    row = {key: HUMANEVAL_ROW[key] for key in ("task_id", "prompt", "entry_point", "canonical_solution")}
    mbpp = {"task_id": 3, "prompt": "Add.", "code": "def f(n): return n", "test_list": ["assert f(1) == 1"]}
    given = (row if name == "humaneval" else mbpp) | {"test": ORIGINAL_TEST}
    raw = write(tmp_path / "OriginFmt.jsonl.gz", given)
    assert prepare(name, "--input", raw, "--output_dir", tmp_path / "out") == 2
    message = capsys.readouterr().err
    assert "a row of EvalPlus' original format (HumanEvalPlus-OriginFmt or MbppPlus-OriginFmt)" in message
    assert "cocos prepare humanevalplus or mbppplus" in message
    with pytest.raises(DataError, match="EvalPlus' original format"):
        load_problem_set(str(write(tmp_path / "as-problems.jsonl.gz", mbpp | {"test": ORIGINAL_TEST})))


# -- the published sets --

# Every rule of `input_tests`, every kind of argument, an empty plus_input, inputs and values that are too large.
PUBLISHED = {
    "humanevalplus": ("HumanEval/0", "HumanEval/4", "HumanEval/21", "HumanEval/32", "HumanEval/38", "HumanEval/100"),
    "mbppplus": (
        *("Mbpp/2", "Mbpp/63", "Mbpp/75", "Mbpp/82", "Mbpp/106", "Mbpp/124", "Mbpp/250", "Mbpp/252", "Mbpp/259"),
        *("Mbpp/278", "Mbpp/301", "Mbpp/558", "Mbpp/580", "Mbpp/581", "Mbpp/590", "Mbpp/722", "Mbpp/737", "Mbpp/793"),
    ),
}  # fmt: skip


# What their own references fail. Since 3.12 `sum` compensates, which the formula of HumanEval/32's test does not.
FAILED_BY_REFERENCES = {
    "HumanEval/100",
    "Mbpp/301",
    *(("HumanEval/32",) if sys.version_info >= (3, 12) else ()),
}


@pytest.mark.processes
@pytest.mark.parametrize("name", PUBLISHED)
def test_references_of_the_published_sets_pass_their_tests_three_times_alike(executor, name):
    rows = {row["task_id"]: (place, row) for place, _, row in read_file(public(name))}
    assert len(rows) == {"humanevalplus": 164, "mbppplus": 378}[name]
    problems = []
    for task_id in PUBLISHED[name]:
        place, row = rows[task_id]
        raw = PUBLIC_SOURCES[name].convert(row, place)
        converted = with_expected_values(raw, place, executor)
        assert len(converted.problem.scored_tests) + len(converted.left_out) == len(raw.input_tests.calls)
        assert (task_id in FAILED_BY_REFERENCES) == bool(converted.left_out), converted.left_out
        problems.append(converted.problem)
    limits = Limits(wall_s=60, cpu_s=50)
    programs = [replace(as_program(problem, problem.code), limits=limits) for problem in problems]
    runs = [executor.run(programs) for _ in range(3)]
    verdicts = [[[(v.status, v.in_child) for v in result.verdicts] for result in run] for run in runs]
    assert [p.task_id for p, r in zip(problems, runs[0], strict=True) if not r.all_passed] == []
    assert verdicts[0] == verdicts[1] == verdicts[2]

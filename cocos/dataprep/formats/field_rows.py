"""Rows of the field's other trainers, which are recognised by their columns.

A format is an entry of `FORMATS`. Its tests are inputs and outputs of a program, those of a function by name,
or Python source; `_tests` reads all of these, as JSON or as text of JSON, in whichever column they stand.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cocos.dataprep.formats.humaneval import split_check_function
from cocos.dataprep.formats.input_tests import equality, literal
from cocos.dataprep.formats.own_rows import split_asserts, without_fence
from cocos.dataprep.formats.shown_tests import VISIBLE_TESTS
from cocos.dataprep.formats.source_edits import parse_source
from cocos.executor.stdout_tests import StdoutTest
from cocos.files.json_lines import DataError, Place
from cocos.files.python_parser import tree_of


class FieldFormat(NamedTuple):
    """A format: the columns that tell it, and where a problem's fields are in its rows."""

    name: str
    columns: tuple[str, ...]  # a row has all of them
    text: Callable[[dict], object]
    tests: tuple[str, ...]  # columns of the tests, the visible ones first
    code: Callable[[dict], Any]  # solutions, as a text or a list of texts
    task_id: tuple[str, ...] = ("problem_id", "id")


def _messages(row: dict) -> str:
    """Return what a row's prompt asks: the messages of the user, of a list of messages."""
    prompt = _value(row["prompt"])
    if not isinstance(prompt, list):
        return str(prompt)
    return "\n\n".join(message["content"] for message in prompt if message.get("role") == "user")


def _python3(row: dict) -> list[str]:
    """Return the solutions of a row of CodeContests that are in Python 3 (language 3)."""
    solutions = row.get("solutions") or {}
    if isinstance(solutions, list):
        solutions = {key: [one[key] for one in solutions] for key in ("language", "solution")}
    pairs = zip(solutions.get("language", ()), solutions.get("solution", ()), strict=False)
    return [solution for language, solution in pairs if language in (3, "PYTHON3")]


# Keys of an object that holds the tests, or their text.
NESTED_TESTS = ("ground_truth", "test_cases", "functional", "assert_case")
# Keys of the input and of the output of one test.
INPUT, OUTPUT = ("input", "stdin", "args"), ("output", "expected_output", "expected", "stdout")
_CODEFORCES = ("title", "description", "input_format", "output_format", "note")
FORMATS = (
    FieldFormat("APPS and TACO", ("question", "input_output"), lambda row: row["question"],
                ("input_output",), lambda row: _value(row.get("solutions"))),
    FieldFormat("open-r1's verifiable problems", ("verification_info",),
                lambda row: row.get("problem") or _messages(row),
                ("verification_info",), lambda row: row.get("gold_standard_solution")),
    FieldFormat("verl and PRIME", ("prompt", "reward_model"), _messages,
                ("reward_model",), lambda row: (row.get("extra_info") or {}).get("solution")),
    FieldFormat("CodeContests", ("description", "public_tests"), lambda row: row["description"],
                ("public_tests", "private_tests", "generated_tests"), _python3, ("name",)),
    FieldFormat("open-r1's Codeforces", ("description", "official_tests"),
                lambda row: "\n\n".join(filter(None, map(row.get, _CODEFORCES))),
                ("examples", "official_tests"), lambda row: row.get("solutions")),
    FieldFormat("DeepCoder", ("problem", "tests"), lambda row: row["problem"],
                ("tests",), lambda row: _value(row.get("solutions"))),
    FieldFormat("prompt, solution and check", ("prompt", "canonical_solution", "check"),
                lambda row: row["prompt"], ("check",),
                lambda row: row["prompt"] + row["canonical_solution"], ("task_id",)),
)  # fmt: skip


class FieldRow(NamedTuple):
    """The problem in a row."""

    fields: dict[str, str]
    tests: list[str]
    num_visible: int  # the first ones: those that the row calls public, or as many as of other sets


def format_of(row: Mapping[str, object]) -> FieldFormat | None:
    """Return the format of a row, by its columns; None if it has none of these, or tests as own rows have."""
    for known in FORMATS:
        if all(column in row for column in known.columns):
            tests = _value(row[known.columns[-1]])
            first = tests[0] if isinstance(tests, list) and tests else tests
            return None if isinstance(first, str) and known.tests != ("check",) else known
    return None


def read_field_row(row: dict, known: FieldFormat, place: Place) -> FieldRow:
    """Return the problem in a row of a format.

    Raises:
        DataError: A test, or the text, cannot be read; the line names format and column.

    """
    try:
        solutions = known.code(row)
        programs = solutions if isinstance(solutions, list) else [solutions or ""]
        programs = [without_fence(text) if "```" in text else text for text in programs]
        code = min(filter(tree_of, programs), key=len, default="")
        starter = str(row.get("starter_code") or "").strip()
        if file := row.get("input_file") or row.get("output_file"):
            raise ValueError(f"its programs read or write the file {file!r}, not the standard streams")
        function = _Function(_function_name(row), code or f"{starter}\n        pass")
        parts = [list(_tests(_value(row[column]), function)) for column in known.tests if row.get(column)]
        tests = [test for part in parts for test in part]
        if not tests:
            raise ValueError(f"the column {known.tests[0]!r} has no test")
        task_id = next((str(row[name]) for name in known.task_id if row.get(name) not in (None, "")), "")
        text = str(known.text(row)).strip()
        if starter and starter not in text:
            text += f"\n\nComplete this program:\n\n{starter}"
        fields = {"task_id": task_id or f"{Path(place.path).stem}/{place.number}", "text": text, "code": code}
        num_public = len(parts[0]) if len(known.tests) > 1 else 0
        return FieldRow(fields, tests, num_public or VISIBLE_TESTS)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
        raise DataError(
            f"{place}: has the columns of {known.name}, but its tests cannot be read: {reason}; repair the "
            "row, or --drop malformed leaves it out"
        ) from None


class _Function(NamedTuple):
    """The function that a row's tests may call."""

    name: str  # if the tests do not say it; "" if it is not known
    code: str  # a program that defines it

    def num_parameters(self, name: str) -> int | None:
        """Return the number of its parameters, without `self`; None if it is not known."""
        tree = tree_of(self.code)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.FunctionDef) and node.name == name:
                names = [argument.arg for argument in node.args.args]
                return len(names) - (names[:1] == ["self"])
        return None


def _function_name(row: dict) -> str:
    """Return the name of the function under test, by the row or as the last one that its prompt defines."""
    metadata = _value(row.get("metadata"))
    if name := row.get("entry_point") or (isinstance(metadata, dict) and metadata.get("func_name")):
        return str(name)
    tree = tree_of(f"{row.get('prompt')}\n    pass")
    body = tree.body if tree else []
    return next((node.name for node in reversed(body) if isinstance(node, ast.FunctionDef)), "")


def _value(value: Any) -> Any:
    """Return what a text of JSON, or of a list or dict of Python, means; every other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        try:
            return ast.literal_eval(value) if value.lstrip()[:1] in ("[", "{") else value
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return value


def _tests(value: Any, function: _Function) -> Iterator[str]:
    """Yield the tests in a column's value, whatever its shape."""
    if isinstance(value, str):
        yield from _source_tests(value, function)
    elif isinstance(value, list):
        for case in value:
            yield from [case] if isinstance(case, str) else _tests(case, function)
    elif not isinstance(value, dict):
        raise ValueError(f"{value!r:.60} is neither a test nor a list of tests")
    elif key := next((key for key in NESTED_TESTS if key in value), ""):
        yield from _tests(_value(value[key]), function)
    elif "inputs" in value or (isinstance(value.get("input"), list) and not value.get("fn_name")):
        plural = "s" if "inputs" in value else ""
        for given, output in zip(value[f"input{plural}"], value[f"output{plural}"], strict=True):
            yield _test(value.get("fn_name"), given, output, function)
    else:
        metadata = _value(value.get("metadata") or {})
        name = value.get("fn_name") or metadata.get("func_name")
        if value.get("testtype", value.get("type")) in ("functional", "function_call"):
            name = name or function.name
        if "args" in value and not name:
            raise ValueError("a test has the key 'args', but no field 'entry_point' names its function")
        yield _test(name, _part(value, INPUT), _part(value, OUTPUT), function)


def _part(case: dict, names: Sequence[str]) -> Any:
    """Return the input or the output of a test, by the first of these keys that it has."""
    if not (found := [name for name in names if name in case]):
        raise ValueError(f"a test has the keys {', '.join(case)}, but no {names[0]!r}")
    return case[found[0]]


def read_cases(cases: Any, entry_point: str, code: str) -> Any:
    """Return the tests of an own row's list of objects with input and output; any other value as it is.

    Args:
        entry_point: Function that is called with the inputs; "" if a program reads them.
        code: The reference.

    """
    if not isinstance(cases, list) or not any(isinstance(case, dict) for case in cases):
        return cases
    kind = {"testtype": "functional"} if entry_point else {}
    function = _Function(entry_point, code)
    return [test for case in cases for test in _tests(kind | case, function)]


def _source_tests(source: str, function: _Function) -> tuple[str, ...]:
    """Return the tests in Python source: a function check, or lines of asserts."""
    tree = parse_source(source)
    if not any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body):
        return split_asserts(source).tests
    calls = [
        node.value.args[0].id
        for node in tree.body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "check"
        and isinstance(node.value.args[0], ast.Name)
    ]
    return split_check_function(source, calls[0] if calls else function.name).tests


def _test(name: str | None, given: Any, output: Any, function: _Function) -> str:
    """Return the test of an input and an output, of a program or of the function of that name."""
    if not name:
        return StdoutTest(_text(given), _text(output)).source
    if isinstance(given, str):  # an argument per line
        lines = [_value(line) for line in given.splitlines() if line.strip()]
        given, output = lines, _value(output)
        if len(lines) == 1 and isinstance(lines[0], list) and len(lines[0]) == function.num_parameters(name):
            given = lines[0]
    if isinstance(given, dict):
        arguments = [f"{key}={literal(value)}" for key, value in given.items()]
    else:
        arguments = list(map(literal, given if isinstance(given, list) else [given]))
    call = f"{name}({', '.join(arguments)})"
    if "class Solution" in function.code:
        call = f"Solution().{call}"
    # Some sets wrap what is expected in a list, and their own judges accept both.
    if isinstance(output, list) and len(output) == 1:
        return f"assert {call} in ({literal(output[0])}, {literal(output)})"
    return equality(call, output, atol=0)


def _text(value: Any) -> str:
    """Return the text of an input or an output; some sets have a list of its lines."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)

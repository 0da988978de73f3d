"""Conversion of a source's row to a Problem in MBPP format, one function per format.

A converter keeps everything that the problem needs to run, and does not change what its programs do. It
reports the tests that it leaves out. It does not know files or splits.
"""

import ast
import io
import json
import shlex
import textwrap
import tokenize
from dataclasses import fields, replace
from itertools import takewhile
from typing import Any, NamedTuple

from cocos.dataprep.formats.field_rows import format_of, read_cases, read_field_row
from cocos.dataprep.formats.humaneval import ExtractedTests, prompt_helpers, split_check_function
from cocos.dataprep.formats.input_tests import GeneratedTests, InputTests
from cocos.dataprep.formats.own_rows import is_import, python_value, repaired, split_asserts
from cocos.dataprep.formats.pytest_files import split_pytest_file
from cocos.dataprep.formats.shown_tests import VISIBLE_TESTS, divide_tests
from cocos.dataprep.row_hints import (
    EVALPLUS_COLUMN,
    columns_example,
    describe_columns,
    describe_original_format,
    describe_raw_row,
    missing_fields,
    read_problem,
)
from cocos.files.json_lines import Place
from cocos.files.python_parser import parse, tree_of
from cocos.problems import DataError, Problem

MBPP_FIELDS = tuple(field.name for field in fields(Problem))
TEST_FORMS = ("list", "lines", "check", "pytest")


class Converted(NamedTuple):
    """Converted row."""

    problem: Problem
    left_out: tuple[str, ...] = ()  # a reason for each test that was left out
    edits: tuple[str, ...] = ()  # what was left out of its programs, as the import of the solution under test
    unused: tuple[str, ...] = ()  # columns of an own row that give no field
    date: str = ""  # day on which the problem was published, as 2024-08-31; "" if the row does not say
    group: str = ""  # problems with the same group belong in the same split; "" for no group
    # The calls that the problem has in place of tests, until `expected_values` has made tests of them; None
    # if it has tests.
    input_tests: InputTests | GeneratedTests | None = None


def from_mbpp(row: dict, place: Place) -> Converted:
    """Convert a row of MBPP, of sanitized MBPP, or of a prepared file."""
    problem = read_problem(row, place)
    lists = ("test_list", "hidden_test_list", "challenge_test_list")
    spaced: dict[str, Any] = {name: tuple(map(tabs_to_spaces, getattr(problem, name))) for name in lists}
    spaced |= {name: tabs_to_spaces(getattr(problem, name)) for name in ("code", "test_setup_code")}
    return Converted(replace(problem, **spaced))


def from_humaneval(row: dict, place: Place) -> Converted:
    """Convert a row of HumanEval: the reference is the prompt followed by its canonical solution."""
    return _from_check(row, place, complete_this_function(row, place))


def complete_this_function(row: dict, place: Place) -> str:
    """Return the text of a problem that asks to complete HumanEval's prompt."""
    prompt_lines = string_field(row, "prompt", place).strip("\n")
    return f"Complete this function.\n\n{prompt_lines}"


def from_humanevalfix(row: dict, place: Place, field: str = "declaration") -> Converted:
    """Convert a row of HumanEvalFix: the text asks to repair the buggy program.

    Args:
        field: The field that precedes the buggy body: `declaration` as in the benchmark, or `prompt`, which
            includes the docstring.

    """
    buggy = string_field(row, field, place) + string_field(row, "buggy_solution", place)
    converted = _from_check(row, place, f"Fix the bugs in this function.\n\n{buggy}")
    problem = replace(
        converted.problem,
        buggy_code=buggy.strip("\n").rstrip(),
        bug_type=row.get("bug_type") or "",
        failure_symptoms=row.get("failure_symptoms") or "",
    )
    return converted._replace(problem=problem)


def from_kodcode(row: dict, place: Place) -> Converted:
    """Convert a row of KodCode: a pytest file tests the module `solution`."""
    tests = _extract_tests(row, "test" if "test" in row else "test_code", place, "pytest")
    task_id = string_field(row, "question_id", place)
    info = row.get("test_info") or [{}]
    names = {function.get("function_name") for function in info} if isinstance(info, list) else set()
    problem = build_problem(
        place,
        task_id=task_id,
        text=string_field(row, "question", place),
        code=string_field(row, "solution", place),
        test_list=tests.tests,
        entry_point=names.pop() if len(names) == 1 else None,
    )
    # Ids end with the style of the question: 00000001_I and 00000001_C are variants of one question.
    return Converted(problem, tests.left_out, group=task_id.rpartition("_")[0])


def from_columns(row: dict, place: Place, columns: dict[str, str], form: str) -> Converted:
    """Convert a row with columns of any name.

    Args:
        row: Values as JSON, CSV or Parquet contains them; in CSV a list is a cell of JSON text.
        columns: MBPP field -> column. A field that is missing here is read from the column of the same name,
            and `task_id` also from `id`.
        form: Format of `test_list`: `list` of tests, `lines` (a program of asserts), `check` (HumanEval) or
            `pytest` (a test file). Imports at the head of a list or of lines become `test_imports`.

    """
    if other := describe_original_format(row):
        raise DataError(f"{place}: {other}")
    row = {column: value if value == value else None for column, value in row.items()}  # pandas' NaN
    if form == "list" and "test_list" not in row and (known := format_of(row)):
        found = read_field_row(row, known, place)
        return with_divided_tests(place, found.tests, found.num_visible, **found.fields)
    if absent := [field for field, column in columns.items() if column not in row]:
        raise DataError(
            f"{place}: --columns {absent[0]}={columns[absent[0]]}: there is no such column; "
            f"the columns are {', '.join(row)}"
        )
    origins = {field: columns.get(field, field) for field in MBPP_FIELDS}
    if origins["text"] not in row and "prompt" in row:
        origins["text"] = "prompt"
    if origins["task_id"] not in row:  # as ID or Id, too
        origins["task_id"] = next((column for column in row if column.lower() == "id"), "task_id")
    values = {field: row[column] for field, column in origins.items() if column in row}
    if missing := missing_fields(values):
        example = columns_example(list(row), missing, [f"{field}={name}" for field, name in columns.items()])
        own_columns = f"{describe_columns(row, missing)}; name them, for example: {shlex.join(example)}"
        raise DataError(f"{place}: {describe_raw_row(row, place.path) or own_columns}")
    unused = tuple(column for column in row if column and column not in origins.values())
    left_out: tuple[str, ...] = ()
    if form != "list":
        entry_point = values.get("entry_point") or ""
        values["test_list"], left_out = _extract_tests(values, "test_list", place, form, entry_point)
    for field in ("test_list", "test_imports", "challenge_test_list", "hidden_test_list", "files"):
        values[field] = _parsed(values.get(field), field, place)
    for field in ("test_list", "hidden_test_list"):
        values[field] = read_cases(values[field], values.get("entry_point") or "", values.get("code") or "")
    if isinstance(tests := values["test_list"], list):
        imports = list(takewhile(is_import, tests))
        values["test_list"] = tests[len(imports) :]
        if imports:
            values["test_imports"] = [*(values["test_imports"] or []), *imports]
    if isinstance(rate := values.get("solve_rate"), str):  # CSV has texts only
        values["solve_rate"] = _number(rate)
    present = {field: value for field, value in values.items() if value is not None}
    problem, edits = repaired(from_mbpp(present, place).problem)
    return Converted(problem, left_out, edits, unused)


def with_divided_tests(
    place: Place, tests: object, num_visible: int = VISIBLE_TESTS, **fields: str
) -> Converted:
    """Return a problem whose first tests are visible and whose others are hidden."""
    if not isinstance(tests, list | tuple) or not all(isinstance(test, str) for test in tests):
        raise DataError(f"{place}: the tests are no list of strings; check that SOURCE names this data set")
    visible, hidden, left_out = divide_tests(tests, num_visible)
    if left_out and not visible:
        raise DataError(f"{place}: no test is left: {left_out[0]}")
    given = {name: value for name, value in fields.items() if value}
    problem = build_problem(place, **given, test_list=visible, hidden_test_list=hidden)
    return Converted(problem, tuple(left_out))


def _from_check(row: dict, place: Place, text: str) -> Converted:
    """Convert a row whose tests are HumanEval's check() function."""
    # Of a row of EvalPlus the field `test` contains HumanEval's tests only.
    if other := describe_original_format(row) or (
        EVALPLUS_COLUMN in row and describe_raw_row(row, place.path)
    ):
        raise DataError(f"{place}: {other}")
    fields = function_fields(row, place, text)
    tests = _extract_tests(row, "test", place, "check", fields["entry_point"], fields["test_setup_code"])
    return Converted(build_problem(place, **fields, test_list=tests.tests), tests.left_out)


def function_fields(row: dict, place: Place, text: str) -> dict[str, str]:
    """Return the fields of a problem, except its tests, whose prompt and solution are one program."""
    prompt, name = string_field(row, "prompt", place), string_field(row, "entry_point", place)
    try:
        helpers = prompt_helpers(prompt, name)
    except ValueError as error:
        raise DataError(f"{place}: field 'prompt' {error}; repair the row") from None
    return {
        "task_id": string_field(row, "task_id", place),
        "text": text.rstrip(),
        "code": (prompt + string_field(row, "canonical_solution", place)).strip("\n").rstrip(),
        "test_setup_code": helpers,
        "entry_point": name,
    }


def build_problem(place: Place, **fields: object) -> Problem:
    """Build a problem through MBPP's validation; fields that are None are omitted."""
    row = {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items() if v is not None}
    return from_mbpp(row, place).problem


def _extract_tests(
    row: dict, field: str, place: Place, form: str, entry_point: str = "", helpers: str = ""
) -> ExtractedTests:
    """Read a field in one of `TEST_FORMS` except `list`."""
    source = string_field(row, field, place).replace("\r\n", "\n").replace("\r", "\n")
    if tree_of(source) is None:
        source = textwrap.dedent(source)
    try:
        if form == "check":
            if not entry_point:
                raise ValueError("needs the field 'entry_point' as well")
            return split_check_function(source, entry_point, helpers)
        return split_pytest_file(source) if form == "pytest" else split_asserts(source)
    except ValueError as error:
        raise DataError(f"{place}: field {field!r} {error}; repair the row, or --drop malformed") from None


def _parsed(value: object, field: str, place: Place) -> object:
    """Return a list or an object from JSON text, as CSV contains it, or as it is; None for an empty cell."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            if (listed := python_value(value)) is not None:
                return listed
            if field == "test_imports" and is_import(value):
                return [value.strip()]
            kind, example = {
                "files": ("object", '{"PATH": "TEXT"}'),
                "test_imports": ("list", '["import math"], or one import per line'),
            }.get(field, ("list", '["assert ..."], or use --tests lines'))
            raise DataError(f"{place}: field {field!r} is text, not a JSON {kind}; write {example}") from None
    return list(value) if isinstance(value, tuple) else value


def _number(text: str) -> float | str | None:
    """Return the number that a text is; the text itself if it is none, and None for an empty cell."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        return text


def string_field(row: dict, field: str, place: Place) -> str:
    """Return the text of a field; raise DataError if it is missing or no string."""
    value = row.get(field)
    if not isinstance(value, str):
        found = "missing" if field not in row else type(value).__name__
        raise DataError(
            f"{place}: field {field!r} is {found}; expected a string: check that SOURCE names this data set"
        )
    return value


# Python 3.12 splits an f-string into several tokens.
STRING_TOKENS = ("STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")


def tabs_to_spaces(code: str) -> str:
    """Return the program with spaces for tabs, or unchanged if that would change its syntax tree.

    A tab in the indentation becomes four spaces if the program indents with tabs only. Otherwise it reaches
    the next multiple of eight, as in Python's tokenizer. Other tabs become one space. Lines that begin inside
    a string stay as they are. Text that is not valid Python is returned unchanged.
    """
    if "\t" not in code:
        return code
    tree = _dump_tree(code)
    if tree is None:
        return code
    begins_in_string, touches_string = _string_lines(code)
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines]
    width = 8 if any(" " in indent for indent in indents) else 4
    spaced = "\n".join(
        line
        if number in begins_in_string
        else indent.expandtabs(width)
        + line[len(indent) :].replace("\t", "\t" if number in touches_string else " ")
        for number, (line, indent) in enumerate(zip(lines, indents, strict=True), start=1)
    )
    # The replacement is wrong for rare layouts, such as a form feed before the indentation.
    return spaced if _dump_tree(spaced) == tree else code


def _dump_tree(code: str) -> str | None:
    """Return the syntax tree as text, or None if the program does not parse."""
    try:
        return ast.dump(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _string_lines(code: str) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that begin inside a string, and of those that contain part of one."""
    begins_in_string: set[int] = set()
    touches_string: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if tokenize.tok_name[token.type] in STRING_TOKENS:
                touches_string |= set(range(token.start[0], token.end[0] + 1))
                begins_in_string |= set(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # the comparison of syntax trees rejects a wrong replacement
    return begins_in_string, touches_string

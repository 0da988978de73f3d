"""A row of a source as a Problem in MBPP format: nothing it needs to run is lost, nothing it does is changed.

Each converter takes the row as its source has it and says what it left out. Does not know files or splits.
"""

import ast
import json
from dataclasses import replace
from typing import NamedTuple

from cocos.dataprep.formats.humaneval import Tests, check_as_tests, helpers_of_prompt
from cocos.dataprep.formats.indentation import without_tabs
from cocos.dataprep.formats.pytest_files import file_as_tests
from cocos.dataprep.formats.source_edits import text_of
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem, problem_from_row
from cocos.syntax import parse

FIELDS = (
    "task_id", "text", "code", "test_list", "test_setup_code", "test_imports", "challenge_test_list",
    "hidden_test_list", "entry_point", "buggy_code",
)  # fmt: skip
TEST_FORMS = ("list", "lines", "check", "pytest")


class Converted(NamedTuple):
    """A problem, the tests that were left out and why, and what it must share a split with ("" for
    nothing).
    """

    problem: Problem
    left_out: tuple[str, ...] = ()
    group: str = ""


def from_mbpp(row: dict, place: Place) -> Converted:
    """MBPP, sanitized MBPP, and what this package writes."""
    problem = problem_from_row(row, place)
    tidied = replace(
        problem,
        code=without_tabs(problem.code),
        test_setup_code=without_tabs(problem.test_setup_code),
        test_list=tuple(map(without_tabs, problem.test_list)),
        hidden_test_list=tuple(map(without_tabs, problem.hidden_test_list)),
        challenge_test_list=tuple(map(without_tabs, problem.challenge_test_list)),
    )
    return Converted(tidied)


def from_humaneval(row: dict, place: Place) -> Converted:
    """HumanEval: the text is the prompt, the reference is the prompt with its canonical solution."""
    prompt = _string(row, "prompt", place)
    return _with_check(row, place, f"Complete this function.\n\n{prompt.strip(chr(10))}")


def from_humanevalfix(row: dict, place: Place, field: str = "declaration") -> Converted:
    """HumanEvalFix: the text is the buggy program, as the benchmark puts it, without the docstring.

    Args:
        field: What stands above the program's body: `declaration`, or `prompt`, which has the docstring too.

    """
    buggy = _string(row, field, place) + _string(row, "buggy_solution", place)
    converted = _with_check(row, place, f"Fix the bugs in this function.\n\n{buggy}")
    return converted._replace(problem=replace(converted.problem, buggy_code=buggy.strip("\n").rstrip()))


def from_kodcode(row: dict, place: Place) -> Converted:
    """KodCode: pytest files over a module `solution`; a question and its variants stay in one split."""
    tests = _tests(row, "test" if "test" in row else "test_code", place, "pytest")
    task_id = _string(row, "question_id", place)
    known = row.get("test_info") or [{}]
    names = {info.get("function_name") for info in known} if isinstance(known, list) else set()
    problem = _problem(
        place,
        task_id=task_id,
        text=_string(row, "question", place),
        code=_string(row, "solution", place),
        test_list=tests.tests,
        entry_point=names.pop() if len(names) == 1 else None,
    )
    return Converted(problem, tests.left_out, task_id.rpartition("_")[0])


def from_columns(row: dict, place: Place, columns: dict[str, str], form: str) -> Converted:
    """Any row whose columns are named by their MBPP field.

    Args:
        row: Values as JSON, CSV or Parquet has them; in CSV a list is written as JSON.
        place: For messages.
        columns: Field -> column; a field that is not named is looked for under its own name.
        form: How `test_list` is written: `list` of tests, `lines` (a program of asserts), `check`
            (HumanEval), `pytest`.

    """
    named = {field: row[columns.get(field, field)] for field in FIELDS if columns.get(field, field) in row}
    if missing := [column for column in columns.values() if column not in row]:
        raise DataError(
            f"{place}: has no column {missing[0]!r}; it has {', '.join(map(str, row))}: see --columns"
        )
    if "text" not in named and "prompt" in row:
        named["text"] = row["prompt"]
    left_out: tuple[str, ...] = ()
    if form != "list":
        named["test_list"], left_out = _tests(named, "test_list", place, form, named.get("entry_point") or "")
    for field in ("test_list", "test_imports", "challenge_test_list", "hidden_test_list"):
        named[field] = _listed(named.get(field), field, place)
    given = {field: value for field, value in named.items() if value is not None}
    return from_mbpp(given, place)._replace(left_out=left_out)


def _with_check(row: dict, place: Place, text: str) -> Converted:
    prompt, name = _string(row, "prompt", place), _string(row, "entry_point", place)
    try:
        helpers = helpers_of_prompt(prompt, name)
    except ValueError as error:
        raise DataError(f"{place}: field 'prompt' {error}; repair the row") from None
    tests = _tests(row, "test", place, "check", name, helpers)
    problem = _problem(
        place,
        task_id=_string(row, "task_id", place),
        text=text.rstrip(),
        code=(prompt + _string(row, "canonical_solution", place)).strip("\n").rstrip(),
        test_list=tests.tests,
        test_setup_code=helpers or None,
        entry_point=name,
    )
    return Converted(problem, tests.left_out)


def _problem(place: Place, **fields: object) -> Problem:
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items() if v is not None}
    return from_mbpp(given, place).problem


def _tests(row: dict, field: str, place: Place, form: str, entry_point: str = "", helpers: str = "") -> Tests:
    source = _string(row, field, place).replace("\r\n", "\n").replace("\r", "\n")
    try:
        if form == "check":
            if not entry_point:
                raise ValueError("needs the field 'entry_point' beside it")
            return check_as_tests(source, entry_point, helpers)
        return file_as_tests(source) if form == "pytest" else _lines(source)
    except ValueError as error:
        raise DataError(f"{place}: field {field!r} {error}; repair the row, or --drop malformed") from None


def _lines(source: str) -> Tests:
    """Each top-level statement of a program of asserts as a test."""
    try:
        tree = parse(source)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"does not parse ({error})") from None
    if other := [node for node in tree.body if not isinstance(node, ast.Assert)]:
        raise ValueError(f"has more than asserts in it: {text_of(source, other[0])[:80]!r}")
    return Tests(tuple(text_of(source, node) for node in tree.body))


def _listed(value: object, field: str, place: Place) -> object:
    """A list, also where CSV has it as JSON text; None where the cell is empty."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise DataError(
                f'{place}: field {field!r} is text and no JSON list; write ["assert ..."], '
                "or say --tests lines"
            ) from None
    return list(value) if isinstance(value, tuple) else value


def _string(row: dict, field: str, place: Place) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        found = "missing" if field not in row else type(value).__name__
        raise DataError(f"{place}: field {field!r} is {found}; expected a string: is this another source?")
    return value

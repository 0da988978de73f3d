"""Programming problems in MBPP format: reading, checking and writing rows.

Does not know file encodings (`cocos.files.json_lines`), the executor or prompts.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cocos.files.json_lines import DataError, Place, read_rows
from cocos.files.raw_rows import (
    describe_original_format,
    describe_other_file,
    describe_own_row,
    describe_raw_row,
)
from cocos.python_parser import parse

__all__ = ["DataError", "Problem", "load_problems", "problem_from_row", "problem_to_row", "save_problems"]


@dataclass(frozen=True)
class Problem:
    """One programming task with unit tests (MBPP, arXiv 2108.07732).

    Attributes:
        task_id: Unique within its file. A row without one gets its row number, from 1.
        text: Description of what the program should do.
        test_list: Visible tests, at least one: the prompt may show them, feedback may tell of them. A test is
            one or more statements and gets its own verdict.
        code: Reference solution, or "".
        test_setup_code: Code that runs after the candidate's code and before the tests; it may use what the
            candidate defines.
        test_imports: Import statements that the tests need.
        challenge_test_list: MBPP's additional tests. They are neither shown nor scored, because published
            results exclude them.
        hidden_test_list: Tests that are scored but never shown to the model, so that it cannot fit its
            program to them.
        entry_point: Name of the function under test, or "" if it is unknown.
        buggy_code: Program to repair (HumanEvalFix), or "".
        bug_type: Kind of its bug, such as "operator misuse", or "".
        failure_symptoms: What the bug causes, such as "infinite loop", or "".
        stdin: Text on the standard input of the program.
        files: Relative path and text of each file in the program's working folder.

    """

    task_id: str
    text: str
    test_list: tuple[str, ...]
    code: str = ""
    test_setup_code: str = ""
    test_imports: tuple[str, ...] = ()
    challenge_test_list: tuple[str, ...] = ()
    hidden_test_list: tuple[str, ...] = ()
    entry_point: str = ""
    buggy_code: str = ""
    bug_type: str = ""
    failure_symptoms: str = ""
    stdin: str = ""
    files: tuple[tuple[str, str], ...] = ()

    @property
    def scored_tests(self) -> tuple[str, ...]:
        """Tests that decide whether a candidate is right: the visible ones, then the hidden ones."""
        return self.test_list + self.hidden_test_list

    @property
    def setup(self) -> str:
        """Test imports and setup code as one program text, which runs before the tests."""
        return "\n".join(part for part in (*self.test_imports, self.test_setup_code) if part.strip())


def load_problems(path: str | Path) -> list[Problem]:
    """Read a file of MBPP-format rows (`.json` list or JSON lines, optionally `.gz`), in file order.

    Sanitized MBPP calls the text `prompt`; both names are read. CRLF and CR become LF.

    Raises:
        DataError: The file is missing, empty, unreadable or has another format, a row is malformed, or two
            rows share a task_id.

    """
    path = Path(path)
    if other := describe_other_file(path):
        raise DataError(f"{path}: {other}")
    problems: dict[str, Problem] = {}
    for place, row in read_rows(path):
        problem = problem_from_row(row, place)
        if problem.task_id in problems:
            raise DataError(f"{place}: task_id {problem.task_id!r} occurs twice; make every id unique")
        problems[problem.task_id] = problem
    if not problems:
        raise DataError(f"{path}: contains no problems; expected one MBPP-format row or more")
    return list(problems.values())


def save_problems(problems: Iterable[Problem], path: str | Path) -> None:
    """Write problems as JSON lines that `load_problems` reads back unchanged."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(
            json.dumps(problem_to_row(problem), ensure_ascii=False) + "\n" for problem in problems
        )


def problem_to_row(problem: Problem) -> dict[str, object]:
    """Return the MBPP-format row of a problem, without empty optional fields."""
    row: dict[str, object] = {
        "task_id": problem.task_id,
        "text": problem.text,
        "code": problem.code,
        "test_list": list(problem.test_list),
    }
    optional = {
        "test_setup_code": problem.test_setup_code,
        "test_imports": list(problem.test_imports),
        "challenge_test_list": list(problem.challenge_test_list),
        "hidden_test_list": list(problem.hidden_test_list),
        "entry_point": problem.entry_point,
        "buggy_code": problem.buggy_code,
        "bug_type": problem.bug_type,
        "failure_symptoms": problem.failure_symptoms,
        "stdin": problem.stdin,
        "files": dict(problem.files),
    }
    return row | {name: value for name, value in optional.items() if value}


def problem_from_row(row: object, place: Place) -> Problem:
    """Return the problem in a row after validating every field.

    Args:
        row: The parsed JSON value.
        place: File and number of the row, for error messages. The number is the task_id of a row without one.

    Raises:
        DataError: A field is missing, has the wrong type, or has an unusable value.

    """
    if not isinstance(row, dict):
        raise DataError(f"{place}: expected a JSON object, found {type(row).__name__}")
    has_other_columns = not row.keys() <= Problem.__dataclass_fields__.keys()
    if has_other_columns and (
        other := describe_original_format(row)
        or describe_raw_row(row, place.path)
        or describe_own_row(row, place.path)
    ):
        raise DataError(f"{place}: {other}")
    task_id = row.get("task_id", place.number)
    if isinstance(task_id, bool) or not isinstance(task_id, (str, int)):
        raise DataError(
            f"{place}: field 'task_id' is {type(task_id).__name__}; expected a string or a whole number"
        )
    problem = Problem(
        task_id=_clean(str(task_id), "task_id", place),
        text=_string(row, "text" if "text" in row else "prompt", place, required=True),
        test_list=_strings(row, "test_list", place),
        code=_string(row, "code", place),
        test_setup_code=_string(row, "test_setup_code", place),
        test_imports=_strings(row, "test_imports", place),
        challenge_test_list=_strings(row, "challenge_test_list", place),
        hidden_test_list=_strings(row, "hidden_test_list", place),
        entry_point=_string(row, "entry_point", place),
        buggy_code=_string(row, "buggy_code", place),
        bug_type=_string(row, "bug_type", place),
        failure_symptoms=_string(row, "failure_symptoms", place),
        stdin=_data(row.get("stdin", ""), "field 'stdin'", place),
        files=_files(row, place),
    )
    if not problem.test_list:
        raise DataError(f"{place}: field 'test_list' is missing or empty; a problem needs one test or more")
    for field in ("test_list", "hidden_test_list", "challenge_test_list"):
        for test in getattr(problem, field):
            _check_test(test, field, place)
    if problem.entry_point and not problem.entry_point.isidentifier():
        raise DataError(
            f"{place}: field 'entry_point' is {problem.entry_point!r}; expected a function's name"
        )
    return problem


def _check_test(test: str, field: str, place: Place) -> None:
    try:
        does_something = bool(parse(test).body)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise DataError(
            f"{place}: field {field!r}: a test does not parse ({error}): {test[:200]!r}; repair or remove it"
        ) from None
    if not does_something:
        raise DataError(f"{place}: field {field!r}: the test {test[:200]!r} checks nothing; remove it")


def _string(row: dict, field: str, place: Place, required: bool = False) -> str:
    value = row.get(field, "")
    if not isinstance(value, str):
        raise DataError(f"{place}: field {field!r} is {type(value).__name__}; expected a string")
    if required and not value.strip():
        raise DataError(f"{place}: field 'text' is missing or empty; describe what the program should do")
    return _clean(value, field, place)


def _strings(row: dict, field: str, place: Place) -> tuple[str, ...]:
    values = row.get(field, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"{place}: field {field!r} must be a list of strings")
    return tuple(_clean(value, field, place) for value in values)


def _files(row: dict, place: Place) -> tuple[tuple[str, str], ...]:
    files = row.get("files") or {}
    if not isinstance(files, dict):
        raise DataError(f"{place}: field 'files' is {type(files).__name__}; expected an object: path -> text")
    for path in files:
        names = _clean(path, "files", place).split("/")
        if any(name in ("", ".", "..") or len(name.encode()) > 255 for name in names):
            raise DataError(
                f"{place}: field 'files' has the path {path!r}; expected one that is relative to the working "
                "folder, as 'data/points.csv' is"
            )
        if folder := next((other for other in files if path.startswith(f"{other}/")), None):
            raise DataError(f"{place}: field 'files': {folder!r} is a file and a folder; rename one of them")
    return tuple((path, _data(text, f"field 'files', {path!r}", place)) for path, text in files.items())


def _data(value: object, field: str, place: Place) -> str:
    """Return a text that programs read. Unlike source, it keeps its line ends."""
    if not isinstance(value, str):
        raise DataError(f"{place}: {field} is {type(value).__name__}; expected a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{place}: {field} holds a lone surrogate at character {error.start + 1}") from None
    return value


_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # Python source and UTF-8 files cannot contain these


def _clean(text: str, field: str, place: Place) -> str:
    """Return the text with LF line ends; refuse characters that no program can contain."""
    if found := _UNUSABLE.search(text):
        name = "a NUL character" if found[0] == "\0" else f"the lone surrogate U+{ord(found[0]):04X}"
        raise DataError(f"{place}: field {field!r} holds {name} at character {found.start() + 1}; remove it")
    return text.replace("\r\n", "\n").replace("\r", "\n")

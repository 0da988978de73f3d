"""Programming problems in MBPP format: reading, checking and writing rows.

Does not know file encodings (`cocos.files.json_lines`), other formats of rows (`cocos.dataprep.row_hints`),
the executor or prompts.
"""

import ast
import builtins
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cocos.executor import STDOUT_FUNCTION, read_stdout_test
from cocos.files.json_lines import DataError, Place, RowErrors, read_rows_leniently
from cocos.files.python_parser import parse, tree_of

__all__ = [
    "DataError",
    "Problem",
    "load_problems",
    "problem_from_row",
    "problem_line",
    "problem_to_row",
    "problems_of_rows",
    "save_problems",
    "with_visible_tests",
]


@dataclass(frozen=True)
class Problem:
    """One programming task with unit tests (MBPP, arXiv 2108.07732)."""

    task_id: str  # unique within its file; a row without one gets its row number, from 1
    text: str  # what the program should do
    # Visible tests, at least one: the prompt and feedback may show them. A test is one or more statements and
    # gets its own verdict.
    test_list: tuple[str, ...]
    code: str = ""  # reference solution
    # Runs after the candidate's code and before the tests; it may use what the candidate defines.
    test_setup_code: str = ""
    test_imports: tuple[str, ...] = ()  # import statements that the tests need
    # MBPP's additional tests. They are neither shown nor scored, because published results exclude them.
    challenge_test_list: tuple[str, ...] = ()
    # Scored but never shown to the model, so that it cannot fit its program to them.
    hidden_test_list: tuple[str, ...] = ()
    entry_point: str = ""  # name of the function under test; "" if it is unknown
    buggy_code: str = ""  # program to repair (HumanEvalFix)
    bug_type: str = ""  # kind of its bug, such as "operator misuse"
    failure_symptoms: str = ""  # what the bug causes, such as "infinite loop"
    licence: str = ""  # licence of the row; "" if it is not stated
    solve_rate: float | None = None  # share of a model's samples that were right, in [0, 1]; None: not known
    stdin: str = ""  # text on the program's standard input
    files: tuple[tuple[str, str], ...] = ()  # relative path and text of files in the working folder

    @property
    def scored_tests(self) -> tuple[str, ...]:
        """Tests that decide whether a candidate is right: the visible ones, then the hidden ones."""
        return self.test_list + self.hidden_test_list

    @cached_property
    def signature(self) -> str:
        """First line of the function or class under test, as the reference defines it; "" without one.

        Its name is `entry_point`, or else the first one that the reference defines and a test uses. A header
        of several lines becomes one. Example: "def double(x: int) -> int:".
        """
        return _signature(self.code, self.entry_point, self.scored_tests)

    @cached_property
    def called_names(self) -> frozenset[str]:
        """Names that a program has to define: `entry_point`, or else those that tests and setup only use."""
        return frozenset({self.entry_point}) if self.entry_point else self.used_names

    @cached_property
    def used_names(self) -> frozenset[str]:
        """Names that tests and setup use and do not define; none if a program is judged by what it prints."""
        return frozenset() if self.is_script else frozenset(_called(self.setup, *self.scored_tests))

    @cached_property
    def is_script(self) -> bool:
        """A program reads standard input, and is judged by what it prints (`cocos.executor.StdoutTest`)."""
        return all(map(read_stdout_test, self.scored_tests))

    @property
    def setup(self) -> str:
        """Test imports and setup code as one program text, which runs before the tests."""
        return "\n".join(part for part in (*self.test_imports, self.test_setup_code) if part.strip())


def load_problems(path: str | Path) -> list[Problem]:
    """Read a file of MBPP-format rows (`.json` list or JSON lines, optionally `.gz`), in file order.

    Sanitized MBPP calls the text `prompt`; both names are read. CRLF and CR become LF.

    Raises:
        DataError: The file is missing, empty or unreadable, a row is malformed, or two rows share a task_id.

    """
    return problems_of_rows(path, problem_from_row)


def problems_of_rows(path: str | Path, read: Callable[[object, Place], Problem]) -> list[Problem]:
    """Return the problems of a file; raise DataError if there is none, or with all errors of its rows."""
    found: dict[str, Problem] = {}
    errors = RowErrors()
    for place, row in read_rows_leniently(Path(path)):
        try:
            if isinstance(row, DataError):
                raise row
            problem = read(row, place)
            if problem.task_id in found:
                raise DataError(f"{place}: task_id {problem.task_id!r} occurs twice; make every id unique")
            found[problem.task_id] = problem
        except DataError as error:
            errors.add(place, error)
    errors.raise_any()
    if not found:
        raise DataError(f"{path}: contains no problems; expected one MBPP-format row or more")
    return list(found.values())


def save_problems(problems: Iterable[Problem], path: str | Path) -> None:
    """Write problems as JSON lines that `load_problems` reads back unchanged."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(map(problem_line, problems))


def problem_line(problem: Problem) -> str:
    """Return a problem as a line of JSON."""
    return json.dumps(problem_to_row(problem), ensure_ascii=False) + "\n"


def with_visible_tests(problems: Iterable[Problem], num_visible: int | None) -> list[Problem]:
    """Return the problems with their first `num_visible` visible tests; the others become hidden.

    None hides no test.
    """
    n = num_visible
    if n is None:
        return list(problems)
    tests = ((p, p.test_list[:n], p.test_list[n:] + p.hidden_test_list) for p in problems)
    return [replace(p, test_list=visible, hidden_test_list=hidden) for p, visible, hidden in tests]


def problem_to_row(problem: Problem) -> dict[str, object]:
    """Return the MBPP-format row of a problem, without empty optional fields."""
    required = ("task_id", "text", "code", "test_list")
    row: dict[str, object] = {name: getattr(problem, name) for name in required}
    row |= {field.name: value for field in fields(Problem) if (value := getattr(problem, field.name))}
    if problem.solve_rate is not None:  # 0 is a rate
        row["solve_rate"] = problem.solve_rate
    if problem.files:
        row["files"] = dict(problem.files)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}


def problem_from_row(row: object, place: Place) -> Problem:
    """Return the problem in a row after validating every field.

    Args:
        place: File and number of the row, for error messages. The number is the task_id of a row without one.

    Raises:
        DataError: A field is missing, has the wrong type, or has an unusable value.

    """
    if not isinstance(row, dict):
        raise DataError(f"{place}: expected a JSON object, found {type(row).__name__}")
    # For a column that only other rows have, `datasets` writes null, and pandas NaN, which equals nothing.
    row = {name: value for name, value in row.items() if value is not None and value == value}
    task_id = row.get("task_id", place.number)
    if task_id == "":  # an empty cell of a CSV file
        task_id = place.number
    if isinstance(task_id, bool) or not isinstance(task_id, (str, int)):
        raise DataError(
            f"{place}: field 'task_id' is {type(task_id).__name__}; expected a string or a whole number"
        )
    values: dict[str, Any] = {
        "task_id": _clean(str(task_id), "task_id", place),
        "text": _string(row, "text" if "text" in row else "prompt", place, required=True),
    }
    special = {"stdin": _stdin, "files": _files, "solve_rate": _share}
    for field in fields(Problem):
        if field.name not in values:
            read = special.get(field.name) or (_string if field.type is str else _strings)
            values[field.name] = read(row, field.name, place)
    problem = Problem(**values)
    if not problem.test_list:
        raise DataError(f"{place}: field 'test_list' is missing or empty; a problem needs one test or more")
    for name in ("test_list", "hidden_test_list", "challenge_test_list"):
        for test in getattr(problem, name):
            _check_test(test, name, place)
    uses_output = [test for test in problem.scored_tests if f"{STDOUT_FUNCTION}(" in test]
    if uses_output and not problem.is_script and f"def {STDOUT_FUNCTION}(" not in problem.code:
        raise DataError(
            f"{place}: {uses_output[0][:200]!r}: write a test of a whole program as assert "
            f"{STDOUT_FUNCTION}('INPUT') == 'OUTPUT', with two texts, and give its problem no other tests"
        )
    if problem.entry_point and not problem.entry_point.isidentifier():
        raise DataError(
            f"{place}: field 'entry_point' is {problem.entry_point!r}; expected a function's name"
        )
    return problem


def _called(*sources: str) -> set[str]:
    """Return the names that the sources use, without builtins and those that one of them binds."""
    used: set[str] = set()
    bound = set(dir(builtins))
    for node in _nodes(sources):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
    return used - bound


def _nodes(sources: Iterable[str]) -> Iterator[ast.AST]:
    """Yield the nodes of those sources that parse."""
    for tree in filter(None, map(tree_of, sources)):
        yield from ast.walk(tree)


def _signature(code: str, entry_point: str, tests: tuple[str, ...]) -> str:
    tree = tree_of(code)
    if tree is None or (not entry_point and None in map(tree_of, tests)):
        return ""
    used = {entry_point} if entry_point else {n.id for n in _nodes(tests) if isinstance(n, ast.Name)}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in tree.body if isinstance(node, kinds) and node.name in used]
    if not found:
        return ""
    # The last definition of a name is the one that counts.
    header = next(node for node in reversed(found) if node.name == found[0].name)
    header.body, header.decorator_list = [ast.Pass()], []
    return ast.unparse(header).partition("\n")[0]


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


def _stdin(row: dict, field: str, place: Place) -> str:
    return _data(row.get(field, ""), f"field {field!r}", place)


def _files(row: dict, field: str, place: Place) -> tuple[tuple[str, str], ...]:
    files = row.get(field) or {}
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


def _share(row: dict, field: str, place: Place) -> float | None:
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise DataError(f"{place}: field {field!r} is {value!r:.80}; expected a number from 0 to 1")


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

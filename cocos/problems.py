"""The problems a model is asked to solve, in MBPP format.

Knows the file formats (JSON list, JSONL, either of them gzipped) and what a well-formed row is. Does not know
how code is run or how a problem becomes a prompt.
"""

import ast
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


class DataError(ValueError):
    """A data file cannot be used; the message names the file, the line or row, and the remedy."""


@dataclass(frozen=True)
class Problem:
    """One programming task with unit tests (MBPP, arXiv 2108.07732).

    Attributes:
        task_id: Unique within its file; the row number (from 1) where the row has none.
        text: What the program should do, in words.
        test_list: One statement or more per test, each an independent verdict; never empty.
        code: A reference solution, or "" where there is none.
        test_setup_code: Runs after the candidate's code and before the tests: it may use what the code
            defines.
        test_imports: Import statements that the tests need.
        challenge_test_list: Further tests, never shown to the model.

    """

    task_id: str
    text: str
    test_list: tuple[str, ...]
    code: str = ""
    test_setup_code: str = ""
    test_imports: tuple[str, ...] = ()
    challenge_test_list: tuple[str, ...] = ()

    @property
    def setup(self) -> str:
        """Imports and setup code as one program text, run between the candidate's code and the tests."""
        return "\n".join(part for part in (*self.test_imports, self.test_setup_code) if part.strip())


def load_problems(path: str | Path) -> list[Problem]:
    """Read a file of MBPP-format rows (`.json` list or JSON lines, optionally `.gz`), in file order.

    Sanitized MBPP calls the text `prompt`; both names are read. CRLF and CR become LF.

    Raises:
        DataError: The file is missing, empty or unreadable, a row is malformed, or two rows share a task_id.

    """
    path = Path(path)
    problems: dict[str, Problem] = {}
    for place, row in read_rows(path):
        problem = _problem(row, place)
        if problem.task_id in problems:
            raise DataError(f"{place}: task_id {problem.task_id!r} occurs twice; make every id unique")
        problems[problem.task_id] = problem
    if not problems:
        raise DataError(f"{path}: no problems in it; expected one MBPP-format row or more")
    return list(problems.values())


def save_problems(problems: Iterable[Problem], path: str | Path) -> None:
    """Write problems as JSON lines that `load_problems` reads back unchanged."""
    lines = []
    for p in problems:
        row = {"task_id": p.task_id, "text": p.text, "code": p.code, "test_list": list(p.test_list)}
        optional = {
            "test_setup_code": p.test_setup_code,
            "test_imports": list(p.test_imports),
            "challenge_test_list": list(p.challenge_test_list),
        }
        lines.append(
            json.dumps(row | {name: value for name, value in optional.items() if value}, ensure_ascii=False)
        )
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal: recorded beside every result."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_rows(path: Path) -> Iterator[tuple[str, object]]:
    """Yield (place for error messages, parsed row) of a JSON list or JSON-lines file."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the path of a JSON or JSONL file of problems") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read ({error}); expected UTF-8 JSON or JSONL, optionally gzipped"
        ) from None
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); repair the list") from None
        yield from ((f"{path}: row {number}", row) for number, row in enumerate(rows, start=1))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{path}:{number}: not valid JSON ({error.msg}); one object per line"
                ) from None


def _problem(row: object, place: str) -> Problem:
    if not isinstance(row, dict):
        raise DataError(f"{place}: expected a JSON object, found {type(row).__name__}")
    number = place.rsplit(" ", 1)[-1].rsplit(":", 1)[-1]
    problem = Problem(
        task_id=str(row.get("task_id", number)),
        text=_string(row, "text" if "text" in row else "prompt", place, required=True),
        test_list=_strings(row, "test_list", place),
        code=_string(row, "code", place),
        test_setup_code=_string(row, "test_setup_code", place),
        test_imports=_strings(row, "test_imports", place),
        challenge_test_list=_strings(row, "challenge_test_list", place),
    )
    if not problem.test_list:
        raise DataError(f"{place}: field 'test_list' is missing or empty; a problem needs one test or more")
    for test in problem.test_list + problem.challenge_test_list:
        try:
            does_something = bool(ast.parse(test).body)
        except (SyntaxError, ValueError) as error:
            raise DataError(
                f"{place}: field 'test_list': a test does not parse ({error}): {test!r}; repair or remove it"
            ) from None
        if not does_something:
            raise DataError(f"{place}: field 'test_list': the test {test!r} checks nothing; remove it")
    return problem


def _string(row: dict, field: str, place: str, required: bool = False) -> str:
    value = row.get(field, "")
    if not isinstance(value, str):
        raise DataError(f"{place}: field {field!r} is {type(value).__name__}; expected a string")
    if required and not value.strip():
        raise DataError(f"{place}: field 'text' is missing or empty; say in words what the program should do")
    return _unix(value)


def _strings(row: dict, field: str, place: str) -> tuple[str, ...]:
    values = row.get(field, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"{place}: field {field!r} must be a list of strings")
    return tuple(map(_unix, values))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

"""A problem that a person types; its tests are assert lines with the imports they need, or a pytest file."""

import ast
import hashlib

from cocos.dataprep.formats.pytest_files import split_pytest_file
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem, problem_from_row
from cocos.python_parser import parse

TYPED = ("text", "tests", "buggy_code")  # what a person types


def typed_problem(text: str, tests: str, buggy_code: str = "", example: Problem | None = None) -> Problem:
    """Return the problem that a person has typed; its task_id is a digest of the three texts.

    Args:
        tests: Assert lines and imports, or pytest functions, each of which becomes one test.
        example: Problem that is returned if these are its texts: it has what they lack, such as a setup.

    Raises:
        DataError: The description or the tests are missing, or a line is none of these; the message names it.

    """
    if example is not None and [*as_typed(example).values()] == [text, tests, buggy_code]:
        return example
    imports, test_list = _split(tests.replace("\r\n", "\n"))
    digest = hashlib.sha256(repr((text, tests, buggy_code)).encode()).hexdigest()
    row = {
        "task_id": f"typed-{digest[:8]}",
        "text": text,
        "test_list": test_list,
        "test_imports": imports,
        "buggy_code": buggy_code,
    }
    return problem_from_row(row, Place("this problem", 1, is_line=False))


def as_typed(problem: Problem) -> dict[str, str]:
    """Return the texts from which a person would make a problem: the arguments of `typed_problem`."""
    tests = "\n".join([*problem.test_imports, *problem.test_list])
    return dict(zip(TYPED, (problem.text, tests, problem.buggy_code), strict=True))


def _split(source: str) -> tuple[list[str], list[str]]:
    """Return the imports and the tests of a text."""
    try:
        nodes = parse(source).body
    except SyntaxError as error:
        raise DataError(
            f"tests, line {error.lineno or 1}: {error.msg}; give assert lines or pytest functions"
        ) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise DataError(f"tests: cannot be parsed ({error}); repair the line") from None
    if any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in nodes):
        try:
            extracted = split_pytest_file(source)
        except ValueError as error:
            raise DataError(f"tests: {error}") from None
        if extracted.left_out:
            reason = extracted.left_out[0]
            name = reason.partition(":")[0].rpartition(".")[2]
            line = source.partition(f"def {name}(")[0].count("\n") + 1
            raise DataError(f"tests, line {line}: {reason}; leave it out or rewrite it")
        return [], list(extracted.tests)
    for node in nodes:
        if not isinstance(node, ast.Assert | ast.Import | ast.ImportFrom):
            raise DataError(
                f"tests, line {node.lineno}: {ast.unparse(node)[:80]!r} is no test; give assert lines, or "
                "functions whose names start with test"
            )
    parts = [(isinstance(node, ast.Assert), ast.get_source_segment(source, node) or "") for node in nodes]
    return [text for is_test, text in parts if not is_test], [text for is_test, text in parts if is_test]

"""A problem that a person types; its tests are assert lines with the imports they need, or a pytest file.

An example whose tests have several statements is shown as a pytest file.
"""

import ast
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from textwrap import indent

from cocos.dataprep.formats.pytest_files import split_pytest_file
from cocos.files.json_lines import Place
from cocos.files.python_parser import parse
from cocos.page.page_options import MAX_CHARACTERS
from cocos.problems import DataError, Problem, problem_from_row

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def typed_problem(text: str, tests: str, buggy_code: str = "", example: Problem | None = None) -> Problem:
    """Return the problem that a person has typed; its task_id is a digest of the three texts.

    Args:
        tests: Assert lines and imports, or pytest functions, each of which becomes one test.
        example: Problem from which the person started. It is returned if these are its texts, and its tests,
            with their setup and the hidden ones, are kept if they are unchanged.

    Raises:
        DataError: The description or the tests are missing, a text is too long, or a line is none of these;
            the message names it.

    """
    for name, typed in (("description", text), ("tests", tests), ("program to repair", buggy_code)):
        if len(typed) > MAX_CHARACTERS:
            raise DataError(f"{name}: {len(typed):,} characters; at most {MAX_CHARACTERS:,} are accepted")
    if not text.strip():
        raise DataError("the description is empty; say what the program should do")
    if not tests.strip():
        raise DataError("there is no test; give one or more, such as: assert f(2) == 4")
    digest = hashlib.sha256(repr((text, tests, buggy_code)).encode()).hexdigest()
    task_id = f"typed-{digest[:8]}"
    if example is not None and as_typed(example)["tests"] == tests:
        is_same = (example.text, example.buggy_code) == (text, buggy_code)
        return example if is_same else replace(example, task_id=task_id, text=text, buggy_code=buggy_code)
    imports, test_list = _split(tests.replace("\r\n", "\n"))
    row = dict(task_id=task_id, text=text, test_list=test_list, test_imports=imports, buggy_code=buggy_code)
    return problem_from_row(row, Place("this problem", 1, is_line=False))


def as_typed(problem: Problem) -> dict[str, str]:
    """Return the texts from which a person would make a problem: the arguments of `typed_problem`."""
    tests = list(problem.test_list)
    if not all(_is_assertion(test) for test in tests):
        tests = [f"def test_{n}():\n{indent(test, '    ')}\n" for n, test in enumerate(tests, start=1)]
    text = "\n".join([*problem.test_imports, *tests])
    return {"text": problem.text, "tests": text, "buggy_code": problem.buggy_code}


def _is_assertion(test: str) -> bool:
    return [type(node) for node in parse(test).body] == [ast.Assert]


def _split(source: str) -> tuple[list[str], list[str]]:
    """Return the imports and the tests of a text."""
    nodes = _statements(source)
    if any(isinstance(node, DEFINITIONS) for node in nodes):
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
    _refuse_others(nodes, ast.Assert, ast.Import, ast.ImportFrom)
    parts = [(isinstance(node, ast.Assert), ast.get_source_segment(source, node) or "") for node in nodes]
    return [text for is_test, text in parts if not is_test], [text for is_test, text in parts if is_test]


def _statements(source: str) -> Sequence[ast.stmt]:
    try:
        return parse(source).body
    except SyntaxError as error:
        raise DataError(
            f"tests, line {error.lineno or 1}: {error.msg}; give assert lines or pytest functions"
        ) from None
    except (ValueError, MemoryError, RecursionError) as error:
        before, null, _ = source.partition("\0")  # of which Python says the line from 3.11.4 on
        place = f"tests, line {before.count(chr(10)) + 1}" if null else "tests"
        raise DataError(f"{place}: cannot be parsed ({error}); repair the line") from None


def _refuse_others(nodes: Sequence[ast.stmt], *kinds: type[ast.stmt]) -> None:
    for node in nodes:
        if not isinstance(node, kinds):
            raise DataError(
                f"tests, line {node.lineno}: {ast.unparse(node)[:80]!r} is no test; give assert lines, or "
                "functions whose names start with test"
            )

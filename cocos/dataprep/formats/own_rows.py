"""Tests of own rows, and repair of the rows: Python's repr, fences, imports of the solution."""

import ast
import copy
import io
import re
import sys
import tokenize
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from cocos.dataprep.formats.humaneval import ExtractedTests, group_by_assert
from cocos.dataprep.formats.pytest_files import PYTEST, PYTEST_HELPERS, plain_python
from cocos.dataprep.formats.source_edits import (
    InlinedImports,
    defined_names,
    node_source,
    parse_source,
    read_names,
)
from cocos.extraction import extract
from cocos.files.python_parser import parse, tree_of
from cocos.problems import Problem

IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LIST = re.compile(r"\s*(?:(?:np\.|numpy\.)?array\()?(\[.*\])(?:,?\s*dtype=\w+)?\)?\s*", re.DOTALL)


def python_value(text: str) -> list | dict | None:
    """Return the list, or the object, whose repr in Python or numpy a text is; None if it is none.

    pandas writes both into a CSV file. numpy puts no commas between texts, so that Python would join them.
    """
    try:
        if found := _LIST.fullmatch(text):
            tokens = list(tokenize.generate_tokens(io.StringIO(found[1]).readline))
            texts = [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
            others = {token.string.strip() for token in tokens if token.type != tokenize.STRING}
            if others <= {"[", "]", ",", ""}:
                return texts
        value = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, tokenize.TokenError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def split_asserts(source: str) -> ExtractedTests:
    """Split a program of asserts into its first imports, and a test per assert with what the assert needs.

    If asserts share a variable, the program is one test.

    Raises:
        ValueError: The text does not parse, asserts nothing, or contains a test function or a comparison.

    """
    body = parse_source(source).body
    definitions = [node for node in body if isinstance(node, DEFINITIONS) and "assert" in ast.unparse(node)]
    for function in definitions:
        if not any(function.name in read_names(other) for other in body if other is not function):
            line = node_source(source, function).partition("\n")[0][:80]
            form = "check" if function.name == "check" else "pytest"
            raise ValueError(f"contains a test function: {line!r}; use --tests {form}")
    if not any(map(_asserts, body)):
        if python_value(source) is not None:
            raise ValueError("is a list, not lines of asserts; use --tests list")
        found = f"a statement that is not an assert: {source.strip()[:80]!r}" if body else "no assert"
        raise ValueError(f"contains {found}; write one assert per line, as in assert f(1) == 2")
    for node in body:
        line = node_source(source, node).partition("\n")[0][:80]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            raise ValueError(f"contains a statement that is not an assert: {line!r}; write 'assert {line}'")
    imports = list(takewhile(lambda node: isinstance(node, IMPORTS), body))
    groups = [] if definitions else group_by_assert(body[len(imports) :])
    if not groups:
        return ExtractedTests((source.strip(),))
    tests = ("\n".join(node_source(source, node) for node in group) for group in groups)
    return ExtractedTests((*(node_source(source, node) for node in imports), *tests))


def _asserts(node: ast.stmt) -> bool:
    """Return whether a statement contains an assert, or expects an exception as `pytest.raises` does."""
    return any(
        isinstance(inner, ast.Assert)
        or (isinstance(inner, ast.Call) and "raises" in ast.unparse(inner.func).lower())
        for inner in ast.walk(node)
    )


def is_import(source: object) -> bool:
    """Return whether a program consists of imports alone."""
    tree = tree_of(source) if isinstance(source, str) else None
    return tree is not None and bool(tree.body) and all(isinstance(node, IMPORTS) for node in tree.body)


def repaired(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """Return the problem without a fence around its reference, imports of it, and pytest; and what went."""
    notes = []
    code = without_fence(problem.code, problem.called_names, problem.used_names)
    if code != problem.code:
        problem = replace(problem, code=code)
        notes.append("the fence around the reference")
    # One program, since an import may stand in the setup, or in the first test, and its names in another.
    whole = tree_of("\n".join((problem.setup, *problem.scored_tests)))
    if whole is None or not (own := _own_modules(whole, problem)):
        return problem, tuple(notes)
    imports = InlinedImports(whole, partial(_key_in, own))

    def edited(source: str) -> str:
        tree = parse(source)
        before = ast.dump(tree)
        tree = imports.visit(tree)
        if PYTEST in own:
            tree = plain_python(tree)
        return source if ast.dump(tree) == before else ast.unparse(tree)

    lists = ("test_imports", "test_list", "hidden_test_list")
    fields: dict[str, Any] = {
        name: tuple(filter(None, map(edited, getattr(problem, name)))) for name in lists
    }
    problem = replace(problem, test_setup_code=edited(problem.test_setup_code), **fields)
    return problem, (*notes, *(f"the import of {module}" for module in sorted(own)))


def without_fence(code: str, names: Collection[str] = (), used_names: Collection[str] = ()) -> str:
    """Return the program in a fenced block; a program, or a text without a block, as it is."""
    if tree_of(code) is not None:
        return code
    found = extract(code, names, used_names)
    return found.code if found.source in ("block", "blocks", "cleaned") else code


def _own_modules(tree: ast.Module, problem: Problem) -> set[str]:
    """Return the imported modules that can go: the reference defines what tests use of them; and pytest."""
    code, modules = tree_of(problem.code), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules.add("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    modules = {module for module in modules if module.split(".")[0] not in sys.stdlib_module_names}
    if not modules:
        return modules
    imports = InlinedImports(tree, partial(_key_in, modules))
    imports.visit(copy.deepcopy(tree))
    defined = {name for node in code.body for name in defined_names(node)} if code else set()
    if problem.used_names <= defined:
        defined.add("*")
    known = {PYTEST: PYTEST_HELPERS}
    others = {module for module, name in imports.used if name not in known.get(module, defined)}
    return {module for module, _ in imports.used} - others


def _key_in(modules: set[str], name: str, level: int) -> str | None:
    """Return the name of an imported module, with a point per level, if it is among the modules."""
    key = "." * level + name
    return key if key in modules else None

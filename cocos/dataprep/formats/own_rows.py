"""Tests of own rows, and repair of the rows: Python's repr, fences, imports of the solution."""

import ast
import io
import re
import sys
import tokenize
from dataclasses import replace
from itertools import takewhile

from cocos.dataprep.formats.humaneval import ExtractedTests, group_by_assert
from cocos.dataprep.formats.source_edits import InlinedImports, defined_names, node_source, parse_source
from cocos.extraction import extract
from cocos.files.python_parser import parse, tree_of
from cocos.problems import Problem

IMPORTS = (ast.Import, ast.ImportFrom)
_LIST = re.compile(r"\s*(?:(?:np\.|numpy\.)?array\()?(\[.*\])(?:,?\s*dtype=\w+)?\)?\s*", re.DOTALL)


def python_value(text: str) -> list[str] | dict[str, str] | None:
    """Return the list of texts, or the object, whose repr in Python or numpy a text is; None if it is none.

    pandas writes both into a CSV file. numpy puts no commas between texts, so that Python would join them.
    """
    try:
        if found := _LIST.fullmatch(text):
            tokens = list(tokenize.generate_tokens(io.StringIO(found[1]).readline))
            texts = [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
            others = {token.string.strip() for token in tokens if token.type != tokenize.STRING}
            return texts if others <= {"[", "]", ",", ""} else None
        value = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, tokenize.TokenError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def split_asserts(source: str) -> ExtractedTests:
    """Split a program of asserts into its first imports, and a test per assert with what the assert needs.

    If asserts share a variable, the program is one test.

    Raises:
        ValueError: The text does not parse, asserts nothing, or contains a test function or a comparison.

    """
    body = parse_source(source).body
    if not any(map(_asserts, body)):
        if python_value(source) is not None:
            raise ValueError("is a list, not lines of asserts; use --tests list")
        found = f"a statement that is not an assert: {source.strip()[:80]!r}" if body else "no assert"
        raise ValueError(f"contains {found}; write one assert per line, as in assert f(1) == 2")
    for node in body:
        line = node_source(source, node).partition("\n")[0][:80]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _asserts(node):
            raise ValueError(f"contains a test function: {line!r}; use --tests pytest")
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            raise ValueError(f"contains a statement that is not an assert: {line!r}; write 'assert {line}'")
    imports = list(takewhile(lambda node: isinstance(node, IMPORTS), body))
    groups = group_by_assert(body[len(imports) :])
    if not groups:
        return ExtractedTests((source.strip(),))
    tests = ("\n".join(node_source(source, node) for node in group) for group in groups)
    return ExtractedTests((*(node_source(source, node) for node in imports), *tests))


def _asserts(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Assert) for inner in ast.walk(node))


def is_import(source: object) -> bool:
    """Return whether a program consists of imports alone."""
    tree = tree_of(source) if isinstance(source, str) else None
    return tree is not None and bool(tree.body) and all(isinstance(node, IMPORTS) for node in tree.body)


def repaired(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """Return the problem without fences around its reference and imports of it, and what was left out."""
    notes = []
    if tree_of(problem.code) is None:
        found = extract(problem.code, problem.called_names, problem.used_names)
        if found.source in ("block", "blocks", "cleaned"):
            problem = replace(problem, code=found.code)
            notes.append("the fence around the reference")
    tree = tree_of(problem.code)
    if tree is None:
        return problem, tuple(notes)
    defined = {name for node in tree.body for name in defined_names(node)}

    def without(source: str) -> str:
        used = _imported(source)
        others = {module for module, name in used if name not in defined}
        own = {module for module, _ in used} - others
        if not own:
            return source
        notes.extend(f"the import of {module}" for module in sorted(own))
        inner = parse(source)
        return ast.unparse(InlinedImports(inner, lambda name, _: name if name in own else None).visit(inner))

    edited = replace(
        problem,
        test_setup_code=without(problem.test_setup_code),
        test_imports=tuple(filter(None, map(without, problem.test_imports))),
        test_list=tuple(map(without, problem.test_list)),
        hidden_test_list=tuple(map(without, problem.hidden_test_list)),
    )
    return edited, tuple(dict.fromkeys(notes))


def _imported(source: str) -> set[tuple[str, str]]:
    """Return what a program uses of modules that are not Python's own: (module, name) pairs."""
    tree = tree_of(source)
    if tree is None:
        return set()
    modules: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules |= {node.module} if isinstance(node, ast.ImportFrom) else {a.name for a in node.names}
    own = {module for module in modules if module and module.split(".")[0] not in sys.stdlib_module_names}
    imports = InlinedImports(tree, lambda name, level: name if name in own and not level else None)
    imports.visit(tree)
    return imports.used

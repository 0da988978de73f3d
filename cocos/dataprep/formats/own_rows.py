"""Repair of what own rows have besides a problem's fields: Python's repr, fences, imports of the solution."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import replace

from cocos.dataprep.formats.source_edits import Edit, apply_edits, defined_names
from cocos.extraction import extract
from cocos.files.python_parser import syntax_tree
from cocos.problems import Problem

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


def repaired(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """Return the problem without fences around its reference and imports of it, and what was left out."""
    notes = []
    if isinstance(syntax_tree(problem.code), str):
        found = extract(problem.code, problem.called_names)
        if found.source in ("block", "blocks", "cleaned"):
            problem = replace(problem, code=found.code)
            notes.append("the fence around the reference")
    tree = syntax_tree(problem.code)
    if isinstance(tree, str):
        return problem, tuple(notes)
    defined = {name for node in tree.body for name in defined_names(node)}

    def without(source: str) -> str:
        edits = list(_edits(source, defined))
        notes.extend(
            f"the import of {name}" for name, _ in edits if name and f"the import of {name}" not in notes
        )
        return apply_edits(source, [edit for _, edit in edits]).strip("\n") if edits else source

    edited = replace(
        problem,
        test_setup_code=without(problem.test_setup_code),
        test_imports=tuple(filter(None, map(without, problem.test_imports))),
        test_list=tuple(map(without, problem.test_list)),
        hidden_test_list=tuple(map(without, problem.hidden_test_list)),
    )
    return edited, tuple(notes)


def _edits(source: str, defined: set[str]) -> Iterator[tuple[str, Edit]]:
    """Yield edits that leave out imports of names of the reference, each with the module's name or ""."""
    tree = syntax_tree(source)
    if isinstance(tree, str):
        return
    nodes = list(ast.walk(tree))
    for node in tree.body:  # a function could be left without a body
        match node:
            case ast.ImportFrom(module=str(module), names=names) if not _is_known(module):
                if all(alias.name in defined and alias.asname is None for alias in names):
                    yield module, Edit(node, "")
            case ast.Import(names=[ast.alias(name=module, asname=asname)]) if not _is_known(module):
                name = asname or module
                used = [n for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name]
                if used and all(n.attr in defined for n in used):
                    yield module, Edit(node, "")
                    yield from (("", Edit(n, n.attr)) for n in used)


def _is_known(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names

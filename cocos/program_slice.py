"""Slice of a program: the module-level statements that its tests need, by data flow.

Models write asserts, calls, prints and whole test suites around a solution, and one that fails while the
program loads would leave no test a verdict. A statement stays if it can change something that the called
names read, directly or through names that stay, or the state of a module (`random.seed(0)`). By convention
asserts and prints change nothing, nor do calls of what the tests call: tests make such calls themselves.

Where it is open what a statement changes, it stays. A program in which nothing but definitions, imports and
constants could go is returned as it is. Does not know where a program was found.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable

from cocos.data_flow import DEFINITIONS, EVERYTHING, IMPORTS, NAMESPACES, Flow, Statement, statement_of
from cocos.files.python_parser import parse

_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


def slice_of(code: str, names: Collection[str] = (), used_names: Collection[str] = ()) -> str:
    """Return a program that parses without the statements that its tests do not need.

    Args:
        names: Names that the tests call. Without them, every definition counts that is no test and no `main`.
        used_names: Further names that the tests use.

    """
    body = parse(code).body
    if all(map(_is_plain, body)):
        return code
    try:
        needed = _needed([statement_of(node) for node in body], names, used_names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the program does not compile
        return code
    left_out = [node for node in body if node not in needed]
    return code if all(map(_is_plain, left_out)) else _without(code, body, left_out)


def _needed(
    statements: list[Statement], names: Collection[str], used_names: Collection[str]
) -> set[ast.stmt]:
    flow = Flow(statements, {*names})
    roots = {*names, *used_names} if names else _definitions(statements)
    read = flow.read_by(roots, set())
    live, solution, users = roots | read, flow.called | read, flow.users_of(roots)

    def is_needed(statement: Statement) -> bool:
        node = statement.node
        if isinstance(node, ast.ImportFrom) and (node.names[0].name == "*" or node.module == "__future__"):
            return True
        changed = statement.binds | flow.changed(statement, solution)
        return bool(changed & {*live, EVERYTHING}) or (
            users.isdisjoint(statement.reads) and flow.changes_module(statement)
        )

    kept: set[Statement] = set()
    while found := {s for s in statements if s not in kept and is_needed(s)}:
        kept |= found
        live |= {name for statement in found for name in statement.reads}
        if live & {"eval", *NAMESPACES}:  # they may read what the source does not show
            live |= {name for s in statements if _is_plain(s.node) for name in s.binds}
    return {statement.node for statement in kept}


def _definitions(statements: Iterable[Statement]) -> set[str]:
    """Return the names of functions and classes that are neither tests nor `main`."""
    names = set[str]()
    for statement in statements:
        node = statement.node
        is_other_name = isinstance(getattr(node, "value", None), ast.Name | ast.Attribute | ast.Lambda)
        if isinstance(node, DEFINITIONS) or (isinstance(node, _ASSIGNMENTS) and is_other_name):
            names |= statement.binds
    return {name for name in names if name != "main" and not name.lower().startswith("test")}


def _is_plain(node: ast.stmt) -> bool:
    """Return whether a statement alone is no reason to change the program: it only defines something."""
    if isinstance(node, DEFINITIONS):
        return not node.decorator_list
    if isinstance(node, _ASSIGNMENTS):
        return not any(isinstance(inner, ast.Call) for inner in ast.walk(node))
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, (*IMPORTS, ast.Pass))


def _without(code: str, body: list[ast.stmt], left_out: list[ast.stmt]) -> str:
    """Return the program without these statements, and without what follows its last one."""
    lines = re.split(r"\r\n|\r|\n", code)
    uses = Counter(line for node in body for line in {_first_line(node), node.end_lineno})
    end = 0
    for node in body:
        if node not in left_out or _first_line(node) <= end:
            end = node.end_lineno or 0
    del lines[end:]
    for node in reversed(left_out):
        first, last = _first_line(node), node.end_lineno or 0
        if first <= end and max(uses[first], uses[last]) > 1:  # columns count bytes
            before = lines[first - 1].encode()[: node.col_offset].decode()
            after = lines[last - 1].encode()[node.end_col_offset :].decode()
            lines[first - 1 : last] = [f"{before}pass{after}"]
        elif first <= end:
            del lines[first - 1 : last]
    return "\n".join(lines).rstrip()


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])

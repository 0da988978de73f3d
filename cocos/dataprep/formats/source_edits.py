"""Edits of programs, and the names that their statements read and bind."""

import ast
import symtable
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

from cocos.files.python_parser import parse

NodeT = TypeVar("NodeT", bound=ast.AST)


def parse_source(source: str) -> ast.Module:
    """Return the syntax tree of a program; raise ValueError with the parser's message if it has none."""
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"does not parse ({error})") from None


def node_source(source: str, node: ast.expr | ast.stmt) -> str:
    """Return the text of a node, without decorators."""
    # ast.get_source_segment would split the whole source for each node.
    data, line_starts = _lines(source)
    start = line_starts[node.lineno - 1] + node.col_offset
    return data[start : line_starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)].decode()


@lru_cache(4)
def _lines(source: str) -> tuple[bytes, list[int]]:
    """Return a program's bytes, which the columns of ast nodes count, and the offset of each line."""
    data = source.encode()
    lengths = map(len, data.splitlines(keepends=True))
    return data, list(accumulate(lengths, initial=0))


def substitute_names(source: str, node: ast.expr | ast.stmt, replacements: Mapping[str, str]) -> str:
    """Return the text of a node with names replaced by expressions.

    Args:
        replacements: Name -> text of the expression that replaces it.

    """
    text = node_source(source, node)
    tree = parse(text)  # parsed again, because positions must count from the start of this text
    data, line_starts = _lines(text)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in replacements]
    parts, position = [], 0
    for node in sorted(names, key=lambda name: (name.lineno, name.col_offset)):
        start = line_starts[node.lineno - 1]
        parts += [data[position : start + node.col_offset], replacements[node.id].encode()]
        position = start + (node.end_col_offset or 0)
    return b"".join([*parts, data[position:]]).decode()


def read_names(node: ast.AST) -> set[str]:
    """Return the names that a node reads, at any depth."""
    return {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    }


def global_reads(source: str) -> set[str]:
    """Return the names that a program reads and does not bind in an inner scope."""
    names: set[str] = set()
    tables = [symtable.symtable(source, "program", "exec")]
    for table in tables:
        is_top = table.get_type() == "module"
        names |= {
            s.get_name() for s in table.get_symbols() if s.is_referenced() and (is_top or s.is_global())
        }
        tables += table.get_children()
    return names


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that a node binds or changes, at any depth, parameters included."""
    names: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            # `xs[0] = 1` and `x.y = 1` change the object that x names.
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                names |= {n.id for n in ast.walk(inner.value) if isinstance(n, ast.Name)}
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
    return names


def defined_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement adds to its namespace: of a function, only its own name."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case _:
            return bound_names(statement)


def needed_before(node: ast.AST, earlier: dict[ast.stmt, set[str]]) -> list[ast.stmt]:
    """Return the earlier statements that a statement depends on.

    Args:
        earlier: Statement -> names whose values it may give or change.

    """
    needed, chosen = read_names(node), []
    # Backwards, so that the names read by a chosen statement are known before the ones above it.
    for statement, names in reversed(earlier.items()):
        if names & needed:
            chosen.append(statement)
            needed |= read_names(statement)
    return chosen[::-1]


class Substitution(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return the expression for a name, if there is one."""
        return self._values.get(node.id, node)


class InlinedImports(ast.NodeTransformer):
    """Removes the imports of modules whose definitions stand in the same program.

    `from m import f` becomes nothing, `from m import f as g` becomes `g = f`, and `m.f` becomes `f`.

    Args:
        tree: Program with the imports.
        find: Name and level of an imported module -> its file; None if it is not inlined.

    Attributes:
        used: (file, name) of each definition that the program reads.

    """

    def __init__(self, tree: ast.AST, find: Callable[[str, int], str | None]) -> None:
        self._find = find
        self.used: set[tuple[str, str]] = set()
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        # Local name of an inlined module -> its file.
        self._modules = {a.asname or a.name: self._file(node, a.name) for node in imports for a in node.names}

    def _file(self, node: ast.Import | ast.ImportFrom, name: str = "") -> str | None:
        """Return the file of the module that an import binds to a name, or, without it, imports from."""
        parts = filter(None, (getattr(node, "module", ""), name))
        return self._find(".".join(parts), getattr(node, "level", 0))

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """Return what remains of an import."""
        aliases = [alias for alias in node.names if not self._file(node, alias.name)]
        if isinstance(node, ast.Import) or not (file := self._file(node)):
            node.names = aliases
            return [node] if aliases else []
        self.used |= {(file, alias.name) for alias in aliases}
        renamed = [f"{a.asname} = {a.name}" for a in aliases if a.asname not in (None, a.name)]
        return ast.parse("\n".join(renamed)).body

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit the children; a block that becomes empty gets a statement."""
        super().generic_visit(node)
        if isinstance(node, ast.stmt) and getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    visit_ImportFrom = visit_Import

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return the attribute's name alone if its value is an inlined module."""
        if file := self._modules.get(ast.unparse(node.value)):
            self.used.add((file, node.attr))
            return ast.copy_location(ast.Name(node.attr, node.ctx), node)
        return self.generic_visit(node)


def remove_docstrings(tree: NodeT) -> NodeT:
    """Remove the docstrings below a node, in place; return the node."""
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree

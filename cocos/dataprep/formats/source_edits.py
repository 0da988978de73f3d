"""Program text changed at the positions of its syntax tree, so that comments, quotes and line breaks stay as
they were.
"""

import ast
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cocos.syntax import parse


class Edit(NamedTuple):
    """The text that takes the place of a node."""

    node: ast.expr | ast.stmt
    text: str


def apply(source: str, edits: Iterable[Edit]) -> str:
    """The source with every node replaced; of two nodes one inside the other, the outer one is."""
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = sorted(
        (
            starts[node.lineno - 1] + node.col_offset,
            -(starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)),
            text,
        )
        for node, text in edits
    )
    parts, done = [], 0
    for start, end, text in spans:
        if start >= done:
            parts += [data[done:start], text.encode()]
            done = -end
    return b"".join([*parts, data[done:]]).decode()


def text_of(source: str, node: ast.AST) -> str:
    """The node's own text, without decorators."""
    return ast.get_source_segment(source, node) or ast.unparse(node)


def rename(source: str, node: ast.expr | ast.stmt, names: Mapping[str, str]) -> str:
    """The text of a node with names replaced by expressions."""
    text = text_of(source, node)
    dedented = parse(text)  # positions within the text alone
    edits = [
        Edit(inner, names[inner.id])
        for inner in ast.walk(dedented)
        if isinstance(inner, ast.Name) and inner.id in names
    ]
    return apply(text, edits)


def read_names(node: ast.AST) -> set[str]:
    """Names that the node reads, at whatever depth."""
    return {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    }


def bound_names(node: ast.AST) -> set[str]:
    """Names that the node binds or changes, at whatever depth; parameters count."""
    names: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                names |= {n.id for n in ast.walk(inner.value) if isinstance(n, ast.Name)}
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
    return names


def bound_at_top(node: ast.stmt) -> set[str]:
    """Names that a statement adds to the namespace that it stands in."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case _:
            return bound_names(node)

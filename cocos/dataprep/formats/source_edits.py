"""Edits of program text at the positions of syntax tree nodes, and the names that nodes read and bind.

Edits change the text instead of unparsing the tree: comments, quotes and line breaks stay as they were. Tabs
become spaces, so that a model reads and writes one kind of indentation.
"""

import ast
import io
import symtable
import tokenize
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeVar

from cocos.files.python_parser import parse

NodeT = TypeVar("NodeT", bound=ast.AST)


class Edit(NamedTuple):
    """Replacement text for a node."""

    node: ast.expr | ast.stmt
    text: str


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Replace nodes of a program by text. An edit inside another edit's node is ignored."""
    data, line_starts = _lines(source)
    # The negative end sorts the longest of the edits with the same start first: the outer one.
    spans = sorted(
        (
            line_starts[node.lineno - 1] + node.col_offset,
            -(line_starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)),
            text,
        )
        for node, text in edits
    )
    parts, position = [], 0
    for start, negative_end, text in spans:
        if start >= position:
            parts += [data[position:start], text.encode()]
            position = -negative_end
    return b"".join([*parts, data[position:]]).decode()


def node_source(source: str, node: ast.AST) -> str:
    """Return the text of a node, without decorators."""
    if not isinstance(node, ast.stmt | ast.expr) or not hasattr(node, "lineno"):
        return ast.unparse(node)
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
    edits = [
        Edit(inner, replacements[inner.id])
        for inner in ast.walk(tree)
        if isinstance(inner, ast.Name) and inner.id in replacements
    ]
    return apply_edits(text, edits)


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


def remove_docstrings(tree: NodeT) -> NodeT:
    """Remove the docstrings below a node, in place; return the node."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
                | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
                | ast.Module(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
            ):
                node.body = rest or [ast.Pass()]
    return tree


# Python 3.12 splits an f-string into several tokens.
STRING_TOKENS = ("STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")


def tabs_to_spaces(code: str) -> str:
    """Return the program with spaces for tabs, or unchanged if that would change its syntax tree.

    A tab in the indentation becomes four spaces if the program indents with tabs only. Otherwise it reaches
    the next multiple of eight, as in Python's tokenizer. Other tabs become one space. Lines that begin inside
    a string stay as they are. Text that is not valid Python is returned unchanged.
    """
    if "\t" not in code:
        return code
    tree = _dump_tree(code)
    if tree is None:
        return code
    begins_in_string, touches_string = _string_lines(code)
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines]
    width = 8 if any(" " in indent for indent in indents) else 4
    spaced = "\n".join(
        line
        if number in begins_in_string
        else indent.expandtabs(width)
        + line[len(indent) :].replace("\t", "\t" if number in touches_string else " ")
        for number, (line, indent) in enumerate(zip(lines, indents, strict=True), start=1)
    )
    # The replacement is wrong for rare layouts, such as a form feed before the indentation.
    return spaced if _dump_tree(spaced) == tree else code


def _dump_tree(code: str) -> str | None:
    """Return the syntax tree as text, or None if the program does not parse."""
    try:
        return ast.dump(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _string_lines(code: str) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that begin inside a string, and of those that contain part of one."""
    begins_in_string: set[int] = set()
    touches_string: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if tokenize.tok_name[token.type] in STRING_TOKENS:
                touches_string |= set(range(token.start[0], token.end[0] + 1))
                begins_in_string |= set(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # the comparison of syntax trees rejects a wrong replacement
    return begins_in_string, touches_string

"""Parser of a program's source: its syntax tree, and whether it can be tested."""

import ast

from cocos.executor.parser import parse

__all__ = ["form_fault", "parse", "syntax_tree", "tree_of"]


def syntax_tree(source: str) -> ast.Module | str:
    """Return the syntax tree of a program; if it does not parse, the parser's message."""
    try:
        return parse(source)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, MemoryError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"


def tree_of(source: str) -> ast.Module | None:
    """Return the syntax tree of a program; None if it does not parse."""
    tree = syntax_tree(source)
    return tree if isinstance(tree, ast.Module) else None


def form_fault(code: str, function: str, original: str) -> str:
    """Return what keeps a program from being tested, or "" for nothing.

    Args:
        function: Function that it has to define; "" for any program.
        original: Program that defines the function with the parameters that it has to have; "" for any.

    """
    if not code.strip():
        return "the answer contains no program"
    tree = syntax_tree(code)
    if isinstance(tree, str):
        return tree
    found, expected = _parameter_names(tree, function), _parameter_names(tree_of(original), function)
    if not function or found == (expected or found or []):
        return ""
    if found is None:
        return f"it defines no function {function}"
    return f"it defines {function}({', '.join(found)}) instead of {function}({', '.join(expected or [])})"


def _parameter_names(tree: ast.Module | None, function: str) -> list[str] | None:
    """Return the names of a function's parameters; None if the program does not parse or not define it."""
    for node in reversed(tree.body) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            return [inner.arg for inner in ast.walk(node.args) if isinstance(inner, ast.arg)]
    return None

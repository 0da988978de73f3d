"""Search for tests that check nothing when they run, whatever the program does."""

import ast

from cocos.python_parser import parse

RUNNERS = {"main", "TextTestRunner", "runModule"}  # names that run the test classes of unittest or pytest


def asserts(test: str) -> bool:
    """Return whether a test executes an assert, a raise, or a call of an assert method.

    Functions that nothing calls do not count, nor do test classes that nothing runs or whose result is
    discarded, as `unittest.main(exit=False)` does.
    """
    tree = parse(test)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if any(_discards_result(node) for node in ast.walk(tree)):
        names -= RUNNERS
    return any(_asserts(node, names) for node in tree.body)


def _asserts(node: ast.AST, names: set[str]) -> bool:
    """Return whether a node does; `names` are the names that occur in the test."""
    if isinstance(node, (ast.Assert, ast.Raise)):
        return True
    if isinstance(node, ast.Call) and "assert" in ast.unparse(node.func).lower():
        return True
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.decorator_list:
        if node.name not in names:
            return False
    elif isinstance(node, ast.ClassDef):
        if node.name not in names and not names & RUNNERS:
            return False
        # Whatever uses the class may call any of its methods.
        names = names | {method.name for method in node.body if isinstance(method, ast.FunctionDef)}
    return any(_asserts(child, names) for child in children)


def _discards_result(node: ast.AST) -> bool:
    """Return whether a node is the statement `unittest.main(exit=False)`."""
    match node:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="main") | ast.Name(id="main"), keywords=keywords)
        ):
            return any(
                keyword.arg == "exit" and isinstance(keyword.value, ast.Constant) and not keyword.value.value
                for keyword in keywords
            )
    return False

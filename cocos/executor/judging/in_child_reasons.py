"""Reasons why a test can only run in the candidate's process."""

import ast


def why_in_child(tree: ast.Module, remote: set[str]) -> str | None:
    """Return why the judge cannot run a test, or None if it can.

    Args:
        tree: The test.
        remote: Names in it that the candidate defines.

    """
    nodes = list(ast.walk(tree))
    if any(isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.Global)) for node in nodes):
        return "asynchronous, or rebinds globals"
    if any(_reads_stdout(node) for node in nodes):
        return "reads what the candidate prints"
    if not remote:
        return "no name in it is known to be a function of the candidate"
    # By convention a capitalized name without an underscore is a class.
    if classes := {name for name in remote if name[:1].isupper() and "_" not in name}:
        return f"uses the candidate's class {', '.join(sorted(classes))}"
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    # A stub can be called, or passed on as in `check(f)`. It has no attributes and cannot be compared.
    uses = {id(call.func) for call in calls} | {id(argument) for call in calls for argument in call.args}
    if any(isinstance(node, ast.Name) and node.id in remote and id(node) not in uses for node in nodes):
        return "uses a function of the candidate other than by calling it or passing it as an argument"
    own_functions = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    # Any parameter may be a function of the candidate, as `c` is in `def check(c)`.
    maybe_stubs = remote | {node.arg for node in nodes if isinstance(node, ast.arg)}
    for call in calls:
        if _is_call_of_name(call, maybe_stubs) and _passes_function(call, own_functions | remote):
            return "passes a function or a class to the candidate"
        if isinstance(call.func, ast.Attribute) and _is_call_of_name(call.func.value, maybe_stubs):
            return "calls a method of a value that the candidate returned"
    return None


def _reads_stdout(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="redirect_stdout" | "stdout") | ast.Name(id="redirect_stdout"):
            return True
    return False


def _is_call_of_name(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _passes_function(call: ast.Call, functions: set[str]) -> bool:
    """Return whether an argument contains a lambda, or one of these names without calling it."""
    parts = [part for argument in (*call.args, *call.keywords) for part in ast.walk(argument)]
    called = {
        part.func.id for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    }
    passed = {part.id for part in parts if isinstance(part, ast.Name)} - called
    return any(isinstance(part, ast.Lambda) for part in parts) or bool(passed & functions)

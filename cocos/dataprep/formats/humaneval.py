"""Conversion of HumanEval's `check(candidate)` function to independent tests.

Each assert becomes a test. If asserts depend on each other, the whole function becomes one test. Handles
HumanEval (arXiv 2107.03374) and HumanEvalPack, whose `test` field also calls check(). The tests call the
function under test by its name instead of `candidate`, as MBPP's tests do.
"""

import ast
from typing import NamedTuple

from cocos.dataprep.formats.source_edits import (
    bound_names,
    defined_names,
    needed_before,
    node_source,
    parse_source,
    read_names,
    substitute_names,
)
from cocos.files.python_parser import parse


class ExtractedTests(NamedTuple):
    """Tests of a problem, and a reason for each test that was left out."""

    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def split_check_function(source: str, entry_point: str, helpers: str = "") -> ExtractedTests:
    """Split a check() function into tests.

    Raises:
        ValueError: The text does not parse, has no check() with one parameter, or check() asserts nothing.

    """
    tree = parse_source(source)
    checks = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if len(checks) != 1 or len(checks[0].args.args) != 1:
        raise ValueError("has no function check(candidate)")
    check = checks[0]
    candidate = check.args.args[0].arg
    vacuous = [node for node in check.body if _is_vacuous(node)]
    body = [node for node in check.body if node not in vacuous]
    if not any(isinstance(inner, ast.Assert) for node in body for inner in ast.walk(node)):
        raise ValueError("asserts nothing in check()")
    others = [node for node in tree.body if node is not check and not _is_dispensable(node)]
    assert_groups = [] if others else group_by_assert(body)
    assigned = set().union(*map(bound_names, body))
    # Substitution is by name: it would be wrong if check() assigned to one of the two names.
    if assert_groups and not assigned & {candidate, entry_point}:
        tests = []
        for nodes in assert_groups:
            text = "\n".join(substitute_names(source, node, {candidate: entry_point}) for node in nodes)
            tests.append(_prepend_helpers(text, helpers))
    else:
        definitions = [*(node_source(source, node) for node in others), node_source(source, check)]
        tests = [_prepend_helpers("\n\n".join([*definitions, f"check({entry_point})"]), helpers)]
        vacuous = []  # they stay in the text of check()
    return ExtractedTests(
        tuple(tests), tuple(f"{node_source(source, node)}: passes for any program" for node in vacuous)
    )


def prompt_helpers(prompt: str, entry_point: str) -> str:
    """Return what a prompt defines besides the function under test, with its imports; "" if nothing.

    Raises:
        ValueError: The prompt does not parse.

    """
    tree = parse_source(f"{prompt}    pass\n")  # it ends after the docstring, or even after the signature
    helpers = [
        node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign))
        and entry_point not in defined_names(node)
        and (not isinstance(node, ast.Assign) or defined_names(node) & read_names(tree))
    ]
    if not helpers:
        return ""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(node_source(prompt, node) for node in (*imports, *helpers))


def _prepend_helpers(test: str, helpers: str) -> str:
    """Return the test, preceded by the helpers if it uses one of them.

    Each test carries its own copy, so that it does not depend on what the candidate did with these names.
    """
    if not helpers:
        return test
    statements = [node for node in parse(helpers).body if not isinstance(node, ast.Import)]
    defined = {name for node in statements for name in defined_names(node)}
    return f"{helpers}\n{test}" if defined & read_names(parse(test)) else test


def group_by_assert(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Group each asserting statement with the earlier statements that bind the names it reads.

    Returns:
        One group per asserting statement. [] if check() cannot be split, because a statement has an unknown
        effect, or because two groups need one variable, whose value the first assert may have changed.

    """
    groups: list[list[ast.stmt]] = []
    used: set[ast.stmt] = set()
    bindings: list[ast.stmt] = []
    for node in body:
        if any(isinstance(inner, ast.Assert) for inner in ast.walk(node)):
            chosen = needed_before(node, {earlier: bound_names(earlier) for earlier in bindings})
            # Two groups may share an import, but not a variable.
            variables = {one for one in chosen if not isinstance(one, (ast.Import, ast.ImportFrom))}
            if used & variables:
                return []
            used |= variables
            groups.append([*chosen, node])
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)):
            bindings.append(node)
        elif not _has_no_effect(node):
            return []
    return groups


def _is_vacuous(node: ast.stmt) -> bool:
    """Return whether a statement is an assert of a true constant, such as HumanEval's `assert True`."""
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and bool(node.test.value)


def _has_no_effect(node: ast.stmt) -> bool:
    """Return whether tests do not need a statement: pass, a constant, a name, or a call of print."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant() | ast.Name() | ast.Call(func=ast.Name(id="print"))):
            return True
    return False


def _is_dispensable(node: ast.stmt) -> bool:
    """Return whether a top-level statement is METADATA, a docstring, or HumanEvalPack's call of check()."""
    match node:
        case ast.Assign(targets=[ast.Name(id="METADATA")]) | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="check"))):
            return True
    return False

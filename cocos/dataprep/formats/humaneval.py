"""HumanEval's check(candidate) as tests of their own: one per assert, or the whole function where its asserts
hang together.

Knows HumanEval (arXiv 2107.03374) and HumanEvalPack, whose `test` calls check() itself. A test names the
function under test instead of `candidate`, so that it reads like MBPP's.
"""

import ast
from typing import NamedTuple

from cocos.dataprep.formats.source_edits import bound_at_top, bound_names, read_names, rename, text_of
from cocos.syntax import parse


class Tests(NamedTuple):
    """Tests, and what was left out of them and why."""

    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def check_as_tests(source: str, entry_point: str, helpers: str = "") -> Tests:
    """The tests of a HumanEval row.

    Args:
        source: The program text that defines check().
        entry_point: Name of the function under test.
        helpers: Definitions of the prompt that the tests may use.

    Raises:
        ValueError: There is no check() of one parameter, or it does not parse.

    """
    tree = _parsed(source)
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
    slices = [] if others else _slices(body)
    own = set().union(*map(bound_names, body))
    if slices and not own & {candidate, entry_point}:
        tests = []
        for nodes in slices:
            text = "\n".join(rename(source, node, {candidate: entry_point}) for node in nodes)
            tests.append(_with_helpers(text, helpers))
    else:
        parts = [*(text_of(source, node) for node in others), text_of(source, check), f"check({entry_point})"]
        tests, vacuous = [_with_helpers("\n\n".join(parts), helpers)], []
    return Tests(tuple(tests), tuple(f"{text_of(source, node)}: holds for any program" for node in vacuous))


def helpers_of_prompt(prompt: str, entry_point: str) -> str:
    """What a prompt defines beside the function under test, with the imports that it needs, or ""."""
    tree = _parsed(prompt + "    pass\n")
    defining = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign))]
    others = [
        node
        for node in defining
        if entry_point not in bound_at_top(node)
        and (not isinstance(node, ast.Assign) or bound_at_top(node) & read_names(tree))
    ]
    if not others:
        return ""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(text_of(prompt, node) for node in (*imports, *others))


def _with_helpers(test: str, helpers: str) -> str:
    if not helpers:
        return test
    tree = parse(helpers)
    defined = {name for node in tree.body if not isinstance(node, ast.Import) for name in bound_at_top(node)}
    return f"{helpers}\n{test}" if defined & read_names(parse(test)) else test


def _slices(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Each asserting statement with the statements before it that bind what it reads; [] where they share
    such a statement.
    """
    slices: list[list[ast.stmt]] = []
    used: set[ast.stmt] = set()
    before: list[ast.stmt] = []
    for node in body:
        if any(isinstance(inner, ast.Assert) for inner in ast.walk(node)):
            needed, chosen = read_names(node), []
            for earlier in reversed(before):
                if bound_names(earlier) & needed:
                    chosen.append(earlier)
                    needed |= read_names(earlier)
            own = {earlier for earlier in chosen if not isinstance(earlier, (ast.Import, ast.ImportFrom))}
            if used & own:
                return []
            used |= own
            slices.append([*reversed(chosen), node])
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)):
            before.append(node)
        elif not _prints(node):
            return []
    return slices


def _is_vacuous(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and bool(node.test.value)


def _prints(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant() | ast.Name() | ast.Call(func=ast.Name(id="print"))):
            return True
    return False


def _is_dispensable(node: ast.stmt) -> bool:
    """METADATA, a docstring, and the call of check() that HumanEvalPack brings along."""
    match node:
        case ast.Assign(targets=[ast.Name(id="METADATA")]) | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="check"))):
            return True
    return False


def _parsed(source: str) -> ast.Module:
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"does not parse ({error})") from None

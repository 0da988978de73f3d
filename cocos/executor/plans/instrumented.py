"""Source of tests, with calls of the driver where it has to know what a test compares.

    assert f(1) == 2            assert __compare__('==', f(1), 2)
    assert abs(f(1) - 2) < .1   assert __compare__('within', f(1), 2, .1, abs)
    assert 2 == f(1)            assert __compare__('~==', 2, f(1))     the left side is the expected one
    assert ok and done          assert __true__('ok and done', ok and done)
    x is y                      __is__(x, y)
    except Low as e: ...        except __caught__('Low', Low) as e: ...     it may be a failed assert
    type(x)   x.__class__       __type__(x)
    def g(x: List[int]): ...    def g(x): ...     a List that only the program has imported would be asked
    x: List[A] = f(1)           x = f(1)          and so would its class A
    lambda x: x + y             __source__('lambda x: x + y', 'y', False)(lambda x: x + y)

The last one, which decorates a `def`, notes the source in which a function crosses to the program, the names
that it takes from elsewhere, and whether it has a constant that a test may expect. A function that asserts,
or assigns to what the driver would have to know, has none.

The calls change neither which tests pass nor what the test can observe: no message is added to an assert.
"""

import ast
import copy
import symtable
from typing import Any

from cocos.executor.inside.marks import holds_expected
from cocos.executor.plans.names import BUILTINS, free_names, names_in

_SYMBOLS: dict[type, str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}
_CONDITION_CHARS = 200


def instrumented(test: str, is_main: bool = False) -> str:
    """Return a test's source with the calls.

    Args:
        test: Source of the test, or of a setup.
        is_main: Its `__name__` is "__main__".

    """
    has_own_type = "type" not in free_names(symtable.symtable(test, "<test>", "exec"))
    tree = _Instrumenter(has_own_type, is_main).visit(ast.parse(test))
    tree.body = [_without_annotation(node) for node in tree.body]
    return ast.unparse(ast.fix_missing_locations(tree))


def _without_annotation(node: ast.stmt) -> ast.stmt:
    match node:
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return ast.Assign([target], value)
    return node


class _Instrumenter(ast.NodeTransformer):
    def __init__(self, has_own_type: bool, is_main: bool) -> None:
        self.has_own_type, self.is_main = has_own_type, is_main

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant("__main__") if self.is_main and node.id == "__name__" else node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        condition: Any = node.test
        text = ast.Constant(ast.unparse(condition)[:_CONDITION_CHARS])
        if not isinstance(condition, ast.Compare):
            self.generic_visit(node)
        else:
            node.msg = node.msg and self.visit(node.msg)
            condition.left, *condition.comparators = map(self.visit, (condition.left, *condition.comparators))
        match condition:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left, ast.Sub(), right)], keywords=[]),
                ops=[ast.Lt()],
                comparators=[limit],
            ):
                symbol = ast.Constant(f"{_left_mark(left)}within")
                node.test = _call("__compare__", symbol, left, right, limit, ast.Name("abs", ast.Load()))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                symbol = ast.Constant(_left_mark(left) + _SYMBOLS[type(operator)])
                node.test = _call("__compare__", symbol, left, right)
            case _:
                node.test = _call("__true__", text, node.test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot() as op], comparators=[right]) if not any(
                isinstance(side, ast.Constant) for side in (node.left, right)
            ):
                same = _call("__is__", node.left, right)
                return same if isinstance(op, ast.Is) else ast.UnaryOp(ast.Not(), same)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if node.type and not names_in(node.type) <= BUILTINS:
            node.type = _call("__caught__", ast.Constant(ast.unparse(node.type)), node.type)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        note = _source_note(node)
        if not node.decorator_list:  # which could read the annotations
            _drop_annotations(node)
        self.generic_visit(node)
        node.decorator_list += note
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        note = _source_note(node)
        self.generic_visit(node)
        return ast.Call(note[0], [node], []) if note else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="type"), args=[value], keywords=[]) if not (
                self.has_own_type or isinstance(value, ast.Starred)
            ):
                return _call("__type__", value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_class = node.attr == "__class__" and isinstance(node.ctx, ast.Load)
        return _call("__type__", node.value) if is_class else node


def _source_note(node: Any) -> list[ast.expr]:
    """Return the decorator that notes the source of a function, if the function may cross."""
    if not all(map(_may_cross, ast.walk(node))):
        return []
    function = copy.deepcopy(node)
    arguments = function.args
    for defaults in (arguments.defaults, arguments.kw_defaults):  # which cross as values
        defaults[:] = [default and ast.Constant(None) for default in defaults]
    if isinstance(function, ast.FunctionDef):
        function.decorator_list = []
        _drop_annotations(function)
    source = ast.unparse(function)
    names = " ".join(sorted(free_names(symtable.symtable(source, "<function>", "exec"))))
    has_constant = any(map(holds_expected, ast.walk(node)))
    return [_call("__source__", ast.Constant(source), ast.Constant(names), ast.Constant(has_constant))]


def _may_cross(node: ast.AST) -> bool:
    """Return whether a function with this part does nothing that the driver would have to know."""
    match node:
        case ast.Raise(exc=ast.Name(id="AssertionError") | ast.Call(func=ast.Name(id="AssertionError"))):
            return False
        case ast.Attribute(attr=name) if name.startswith(("assert", "fail")):
            return False
        case ast.Assert() | ast.Global() | ast.Nonlocal() | ast.Attribute(ctx=ast.Store() | ast.Del()):
            return False
    return True


def _drop_annotations(function: ast.FunctionDef) -> None:
    function.returns = None
    for inner in ast.walk(function.args):
        if isinstance(inner, ast.arg):
            inner.annotation = None


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _left_mark(left: ast.expr) -> str:
    parts = (ast.Name, ast.Call)
    return "" if any(isinstance(node, parts) for node in ast.walk(left)) else "~"

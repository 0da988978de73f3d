"""Mutants: programs that differ from a reference in one operator, constant, boundary or return value."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from cocos.files.python_parser import parse

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.FloorDiv, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_CALLS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "set": "list",
    "abs": "int",
}


class Mutant(NamedTuple):
    """A mutant and its change."""

    code: str
    change: str  # as in "line 3: `a < b` becomes `a <= b`"


def mutants(code: str) -> Iterator[Mutant]:
    """Yield the mutants of a program, in the order of its syntax tree."""
    tree = parse(code)
    for parent in list(ast.walk(tree)):
        for name, value in ast.iter_fields(parent):
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                for changed in _changed(node) if isinstance(node, ast.AST) else ():
                    before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
                    if before == after:
                        continue
                    setattr(
                        parent,
                        name,
                        [*value[:index], changed, *value[index + 1 :]] if value is not node else changed,
                    )
                    line = getattr(node, "lineno", 0)
                    yield Mutant(ast.unparse(tree), f"line {line}: `{_cut(before)}` becomes `{_cut(after)}`")
                    setattr(parent, name, value)


def _cut(source: str) -> str:
    return source.partition("\n")[0][:60]


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of a node."""
    match node:
        case ast.Compare(left, [operator, *rest], comparators) if type(operator) in _COMPARISONS:
            yield ast.Compare(left, [_COMPARISONS[type(operator)](), *rest], comparators)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.AugAssign(target, operator, value) if type(operator) in _OPERATORS:
            yield ast.AugAssign(target, _OPERATORS[type(operator)](), value)
            yield ast.Pass()
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
            if value:
                yield ast.Constant(value - 1)
        case ast.Call(ast.Name(name), [argument], []) if name in _CALLS:
            yield ast.Call(ast.Name(_CALLS[name], ast.Load()), [argument], [])
        case ast.If(condition, body, others):
            yield ast.If(ast.UnaryOp(ast.Not(), condition), body, others)
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call(ast.Attribute())):  # of a method, for its effect: `found.sort()`
            yield ast.Pass()
        case ast.Slice(lower, upper, None) if lower or upper:
            yield ast.Slice(upper=upper) if lower else ast.Slice(lower=lower)

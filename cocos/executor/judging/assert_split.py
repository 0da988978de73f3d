"""Splitting of one assert into atoms for the candidate's process and a condition for the trusted process.

    assert abs(f(2) - 1.5) < tolerance_of(g, 1)      # f, g and tolerance_of exist in the candidate's process

    atoms        f(2)    tolerance_of(g, 1)          evaluated in the candidate's process
    condition    abs(_0 - 1.5) < _1                  evaluated in the trusted process, with the atoms' values

Reads the test's source only, never the candidate's. The trusted process evaluates only the names and node
types listed here. They cannot run the candidate's code and take at most n log n time in the size of their
values. Any other subexpression becomes an atom if it is a call, a name, an attribute or a subscript.
Otherwise the assert is not split.
"""

import ast
import builtins
import collections
import copy
import decimal
import fractions
import math
import sys
from dataclasses import dataclass
from types import CodeType


def _builtins(names: str) -> dict[str, object]:
    return {name: getattr(builtins, name) for name in names.split()}


# Functions that decide whether an assert holds. The trusted process calls its own, even if the candidate has
# redefined the name.
_DECIDING = _builtins("abs all any bool enumerate isinstance max min reversed round sum type zip")
# Constructors and conversions. A call of one on the candidate's value is part of the atom: the codec cannot
# encode any object that has a __len__ or an __iter__, but it can encode the length or the list made from it.
_CONVERTING = _builtins("bytes complex dict float frozenset int len list range repr set sorted str tuple")
_STANDARD = {
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": collections.defaultdict,
    "deque": collections.deque,
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "object": object,
}
_MODULES = {"math": math, "sys": sys}
_MODULE_ATTRIBUTES = {
    "math": frozenset(
        (
            *("ceil", "copysign", "e", "fabs", "floor", "inf", "isclose", "isfinite", "isinf", "isnan"),
            *("nan", "pi", "sqrt", "tau", "trunc"),
        )
    ),
    "sys": frozenset(["getsizeof", "maxsize"]),
}
SAFE_NAMES = {**_DECIDING, **_CONVERTING, **_STANDARD, **_MODULES}
_SAFE_NODES = (
    *(ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Subscript, ast.Slice),
    *(ast.UnaryOp, ast.unaryop, ast.BoolOp, ast.boolop, ast.BinOp, ast.operator, ast.Compare, ast.cmpop),
    *(ast.IfExp, ast.Call, ast.keyword, ast.Attribute),
)
_MAX_EXPONENT = 1000  # the largest exponent, shift width and range bound that the trusted process evaluates


@dataclass(frozen=True)
class Split:
    """Plan for a single assert that could be split.

    Attributes:
        atoms: Source of the expressions that the candidate's process evaluates.
        condition: Expression that the trusted process evaluates, with the atoms' values as _0, _1, ...
        actual: The candidate's side of the condition, for messages; None unless it is a single comparison.
        expected: The other side of the condition, or None.

    """

    atoms: tuple[str, ...]
    condition: CodeType
    actual: CodeType | None
    expected: CodeType | None


class _Unsplittable(Exception):
    """The assert cannot be split."""


def split_assert(condition: ast.expr, unsafe: set[str], candidate_names: set[str]) -> Split | None:
    """Split the condition of an assert.

    Args:
        condition: The asserted expression; left unchanged.
        unsafe: Names that the candidate could redefine so that the assert holds, such as helpers that the
            setup defines.
        candidate_names: Names that exist only in the candidate's process, even if they are also builtins.

    Returns:
        The split, or None if the assert uses an unsafe name or cannot be split.

    """
    names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
    if names & unsafe:
        return None
    unknown = (names - SAFE_NAMES.keys()) | (names & candidate_names)
    if not unknown:
        # The function under test has the name of a builtin, as in `sum(10, 15) == 6`. Assume that it is the
        # function that is called first.
        calls = [node.func for node in ast.walk(condition) if isinstance(node, ast.Call)]
        unknown = {function.id for function in calls[:1] if isinstance(function, ast.Name)}
    splitter = _Splitter(unknown)
    try:
        skeleton = splitter.visit(copy.deepcopy(condition))
    except _Unsplittable:
        return None
    if not splitter.atoms:
        return None
    actual = expected = None
    if isinstance(skeleton, ast.Compare) and len(skeleton.ops) == 1:
        actual, expected = _compile(skeleton.left), _compile(skeleton.comparators[0])
        if isinstance(condition, ast.Compare) and _is_safe(condition.left, unknown):  # `2 == f(1)`
            actual, expected = expected, actual
    return Split(tuple(splitter.atoms), _compile(skeleton), actual, expected)


class _Splitter:
    """Replaces each part of a condition that needs the candidate by a name, and collects its source."""

    def __init__(self, unknown: set[str]) -> None:
        self.unknown = unknown
        self.atoms: list[str] = []

    def visit(self, node: ast.expr) -> ast.expr:
        """Return `node` as the trusted process will evaluate it; raise _Unsplittable if it cannot."""
        if _is_safe(node, self.unknown):
            _refuse_costly(node)
            return node
        match node:
            case ast.Compare():
                node.left = self.visit(node.left)
                node.comparators = [self.visit(side) for side in node.comparators]
            case ast.BoolOp():
                node.values = [self.visit(value) for value in node.values]
            case ast.UnaryOp():
                node.operand = self.visit(node.operand)
            # No other operators: `*`, `**` and `%` could build huge values from small ones.
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                node.left, node.right = self.visit(node.left), self.visit(node.right)
            case ast.List() | ast.Tuple() | ast.Set() if not _has_star(node.elts):
                node.elts = [self.visit(element) for element in node.elts]
            case ast.Call(func=ast.Name(id=name)) if name in _DECIDING and name not in self.unknown:
                self._visit_arguments(node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=attribute)) if (
                attribute in _MODULE_ATTRIBUTES["math"]
            ):
                self._visit_arguments(node)
            case ast.Call() | ast.Name() | ast.Attribute() | ast.Subscript():
                return self._replace_by_atom(node)
            case _:
                raise _Unsplittable
        return node

    def _visit_arguments(self, node: ast.Call) -> None:
        # sum(lists, []) takes quadratic time.
        has_start = isinstance(node.func, ast.Name) and node.func.id == "sum" and len(node.args) > 1
        if has_start or _has_star(node.args):
            raise _Unsplittable
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def _replace_by_atom(self, node: ast.expr) -> ast.expr:
        # The candidate could falsify a comparison in its own process. A comparison in a lambda is safe: it is
        # part of an argument of the candidate's function, as in `f(lambda x: x > 1, [1, 2])`.
        decisions = (ast.Compare, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
        if any(isinstance(inner, decisions) for inner in _walk_outside_lambdas(node)):
            raise _Unsplittable
        self.atoms.append(ast.unparse(node))
        return ast.Name(f"_{len(self.atoms) - 1}", ast.Load())


def _has_star(nodes: list[ast.expr]) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


def _walk_outside_lambdas(node: ast.AST):
    yield node
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _walk_outside_lambdas(child)


def _is_safe(node: ast.AST, unknown: set[str]) -> bool:
    """Return whether the trusted process can evaluate this without the candidate."""
    for inner in ast.walk(node):
        if not isinstance(inner, _SAFE_NODES):
            return False
        match inner:
            case ast.Name(id=name) if name not in SAFE_NAMES or name in unknown:
                return False
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                if attribute not in _MODULE_ATTRIBUTES.get(name, ()):
                    return False
            case ast.Attribute():
                return False
            case ast.Call(func=function) if not isinstance(function, (ast.Name, ast.Attribute)):
                return False
    return True


def _refuse_costly(node: ast.AST) -> None:
    """Raise _Unsplittable for a power, shift or range that could be large.

    The trusted process has no time or memory limit.
    """
    for inner in ast.walk(node):
        match inner:
            case ast.BinOp(op=ast.Pow() | ast.LShift(), right=ast.Constant(value=int(size))) if (
                size <= _MAX_EXPONENT
            ):
                continue
            case ast.BinOp(op=ast.Pow() | ast.LShift()):
                raise _Unsplittable
            case ast.Call(func=ast.Name(id="range"), args=bounds):
                sizes = [bound.value for bound in bounds if isinstance(bound, ast.Constant)]
                if len(sizes) < len(bounds) or not all(
                    isinstance(s, int) and s <= _MAX_EXPONENT for s in sizes
                ):
                    raise _Unsplittable


def _compile(expression: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(expression)), "<test>", "eval")

"""One assert, taken apart into what the candidate must compute and what is demanded of it.

Works on the test's text alone. What the trusted side may evaluate is a closed list of names and node types,
each at most n log n in the size of the candidate's values; everything else is an atom, or the assert is not
split at all.
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

# Decides on the trusted side even where the candidate's code defines the same name.
_TRUSTED = {
    name: getattr(builtins, name)
    for name in [
        "abs",
        "all",
        "any",
        "bool",
        "enumerate",
        "isinstance",
        "max",
        "min",
        "reversed",
        "round",
        "sum",
        "type",
        "zip",
    ]
}
# Constructors and conversions: of a candidate's value they are part of the atom, since a generator or an
# object with __len__ does not cross the border, its list or length does.
_CONVERTERS = {
    name: getattr(builtins, name)
    for name in [
        "bytes",
        "complex",
        "dict",
        "float",
        "frozenset",
        "int",
        "len",
        "list",
        "range",
        "repr",
        "set",
        "sorted",
        "str",
        "tuple",
    ]
}
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
_ATTRIBUTES = {
    "math": frozenset(
        [
            "ceil",
            "copysign",
            "e",
            "fabs",
            "floor",
            "inf",
            "isclose",
            "isfinite",
            "isinf",
            "isnan",
            "nan",
            "pi",
            "sqrt",
            "tau",
            "trunc",
        ]
    ),
    "sys": frozenset(["getsizeof", "maxsize"]),
}
SAFE_NAMES = {**_TRUSTED, **_CONVERTERS, **_STANDARD, **_MODULES}
_SAFE_NODES = (
    *(ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Subscript, ast.Slice),
    *(
        ast.UnaryOp,
        ast.unaryop,
        ast.BoolOp,
        ast.boolop,
        ast.BinOp,
        ast.operator,
        ast.Compare,
        ast.cmpop,
        ast.IfExp,
    ),
    *(ast.Call, ast.keyword, ast.Attribute),
)
_MAX_EXPONENT = 1000  # the trusted side evaluates no larger power, shift or range


@dataclass(frozen=True)
class Split:
    """`atoms` are evaluated beside the candidate, `condition` on the trusted side with their values as _0,
    _1, ...

    `actual` and `expected` are the two sides of a plain comparison, for messages, or None.
    """

    atoms: tuple[str, ...]
    condition: CodeType
    actual: CodeType | None
    expected: CodeType | None


class _Unsplittable(Exception):
    pass


def split_assert(condition: ast.expr, not_safe: set[str], of_candidate: set[str]) -> Split | None:
    """Split the condition of an assert, or return None where it needs a name in `not_safe` or another way of
    judging.

    Args:
        condition: The asserted expression; left unchanged.
        not_safe: Helpers of the test's own, which must not run beside the candidate.
        of_candidate: Names that live with the candidate although they look like anybody's.

    """
    names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
    if names & not_safe:
        return None
    unknown = (names - SAFE_NAMES.keys()) | (names & of_candidate)
    if not unknown:  # the function under test bears the name of a builtin: it is the first thing called
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
        actual, expected = _compiled(skeleton.left), _compiled(skeleton.comparators[0])
        if isinstance(condition, ast.Compare) and _is_safe(condition.left, unknown):
            actual, expected = expected, actual
    return Split(tuple(splitter.atoms), _compiled(skeleton), actual, expected)


class _Splitter:
    """Replaces the parts of a condition that need the candidate by names, and collects them as source."""

    def __init__(self, unknown: set[str]) -> None:
        self.unknown = unknown
        self.atoms: list[str] = []

    def visit(self, node: ast.expr) -> ast.expr:
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
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                node.left, node.right = self.visit(node.left), self.visit(node.right)
            case ast.List() | ast.Tuple() | ast.Set() if not any(
                isinstance(e, ast.Starred) for e in node.elts
            ):
                node.elts = [self.visit(element) for element in node.elts]
            case ast.Call(func=ast.Name(id=name)) if name in _TRUSTED and name not in self.unknown:
                self._visit_arguments(node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=attr)) if (
                attr in _ATTRIBUTES["math"]
            ):
                self._visit_arguments(node)
            case ast.Call() | ast.Name() | ast.Attribute() | ast.Subscript():
                return self._atom(node)
            case _:
                raise _Unsplittable
        return node

    def _visit_arguments(self, node: ast.Call) -> None:
        is_sum_of_lists = (
            isinstance(node.func, ast.Name) and node.func.id == "sum" and len(node.args) > 1
        )  # quadratic
        if is_sum_of_lists or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise _Unsplittable
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def _atom(self, node: ast.expr) -> ast.expr:
        decisions = (ast.Compare, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
        if any(isinstance(inner, decisions) for inner in _walk_outside_lambdas(node)):
            raise _Unsplittable  # a comparison beside the candidate would be the candidate's to decide
        self.atoms.append(ast.unparse(node))
        return ast.Name(f"_{len(self.atoms) - 1}", ast.Load())


def _walk_outside_lambdas(node: ast.AST):
    yield node
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _walk_outside_lambdas(child)


def _is_safe(node: ast.AST, unknown: set[str]) -> bool:
    """Whether the trusted side can evaluate this without the candidate."""
    for inner in ast.walk(node):
        if not isinstance(inner, _SAFE_NODES):
            return False
        match inner:
            case ast.Name(id=name) if name not in SAFE_NAMES or name in unknown:
                return False
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                if attr not in _ATTRIBUTES.get(name, ()):
                    return False
            case ast.Attribute():
                return False
            case ast.Call(func=function) if not isinstance(function, (ast.Name, ast.Attribute)):
                return False
    return True


def _refuse_costly(node: ast.AST) -> None:
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


def _compiled(expression: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(expression)), "<test>", "eval")

"""Splitting of one assert into atoms for the candidate's process and a condition for the trusted process.

    assert abs(f(2) - 1.5) < tolerance_of(g, 1)      # f, g and tolerance_of exist in the candidate's process

    atoms        f(2)    tolerance_of(g, 1)          evaluated in the candidate's process
    condition    abs(_0 - 1.5) < _1                  evaluated in the trusted process, with the atoms' values

Reads the test's source only, never the candidate's. The candidate can read every atom and choose its value.
So an atom is only the call of a function that the candidate defines, or a conversion of its result. Nothing
else of the test may depend on the candidate's process: no expectation such as `'abc'.upper()` or a constant
of the setup, and no decision such as `f(3).startswith('a')`. An assert with such a part is not split.
"""

import ast
import itertools
from dataclasses import dataclass
from types import CodeType

from cocos.executor.judging.instrumented import SYMBOLS, tolerance
from cocos.executor.judging.safe_expressions import CONVERTING, DECIDING, MATH_TESTS, is_cheap, is_safe

# Methods of plain values. `word.startswith('a')` decides, even if the candidate defines `word`.
_PLAIN_METHODS = frozenset().union(*map(dir, (str, bytes, list, tuple, dict, set, int, float)))
_KEYWORDS = frozenset(["rel_tol", "abs_tol", "default"])  # of deciding functions


@dataclass(frozen=True)
class Split:
    """Plan for a single assert that could be split.

    Attributes:
        atoms: Source of the expressions that the candidate's process evaluates.
        condition: Expression that the trusted process evaluates, with the atoms' values as _0, _1, ...
        symbol: Operator of the condition, after "~" if its left side is the expected one, or "within"; ""
            unless it is a single comparison.
        sides: Both sides of it, and the tolerance, if there is one.

    """

    atoms: tuple[str, ...]
    condition: CodeType
    symbol: str = ""
    sides: tuple[CodeType, ...] = ()


class _Unsplittable(Exception):
    """The assert cannot be split."""


def split_assert(condition: ast.expr, brought: set[str], shadowed: set[str]) -> Split | None:
    """Split the condition of an assert, or return None if that is not possible.

    Args:
        condition: The asserted expression; left unchanged.
        brought: Names that only the candidate can define, even if they are also builtins.
        shadowed: Names that the setup defines, even if they are also builtins.

    """
    splitter = _Splitter(brought, shadowed)
    try:
        skeleton = splitter.visit(condition)
    except _Unsplittable:
        return None
    if not splitter.atoms:
        return None
    symbol, sides = "", tuple[ast.expr, ...]()
    if isinstance(skeleton, ast.Compare) and len(skeleton.ops) == 1:
        symbol, sides = SYMBOLS[type(skeleton.ops[0])], (skeleton.left, skeleton.comparators[0])
        if parts := tolerance(skeleton):
            symbol, sides = "within", parts
        if not _reads_atom(sides[0]):  # `2 == f(1)`
            symbol = f"~{symbol}"
    return Split(tuple(splitter.atoms), _compile(skeleton), symbol, tuple(map(_compile, sides)))


def _reads_atom(side: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id[:1] == "_" for node in ast.walk(side))


class _Splitter:
    """Replaces each part of a condition that needs the candidate by a name, and collects its source."""

    def __init__(self, brought: set[str], shadowed: set[str]) -> None:
        self.brought = brought
        self.unsafe = brought | shadowed  # these are not the builtins of the trusted process
        self.atoms: list[str] = []

    def visit(self, node: ast.expr) -> ast.expr:
        """Return `node` as the trusted process will evaluate it; raise _Unsplittable if it cannot."""
        if is_safe(node, self.unsafe):
            if not is_cheap(node):
                raise _Unsplittable
            return node
        if self._is_atom(node):
            self.atoms.append(ast.unparse(node))
            return ast.Name(f"_{len(self.atoms) - 1}", ast.Load())
        match node:
            case ast.Compare(left=left, ops=operators, comparators=sides):
                _refuse_identity(node)
                return ast.Compare(self.visit(left), operators, [self.visit(side) for side in sides])
            case ast.BoolOp(op=operator, values=values):
                return ast.BoolOp(operator, [self.visit(value) for value in values])
            case ast.UnaryOp(op=operator, operand=operand):
                return ast.UnaryOp(operator, self.visit(operand))
            # No other operators: `*`, `**` and `%` could build huge values from small ones.
            case ast.BinOp(op=ast.Add() | ast.Sub() as operator, left=left, right=right):
                return ast.BinOp(self.visit(left), operator, self.visit(right))
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return type(node)([self.visit(element) for element in elements], ast.Load())
            case ast.Set(elts=elements):
                return ast.Set([self.visit(element) for element in elements])
            case ast.Subscript(value=value, slice=index) if is_safe(index, self.unsafe):
                return ast.Subscript(self.visit(value), self.visit(index), ast.Load())
            case ast.Call(func=ast.Name(id=name)) if name in DECIDING and name not in self.unsafe:
                return self._visit_arguments(node, name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name)) if (
                name in MATH_TESTS and "math" not in self.unsafe
            ):
                return self._visit_arguments(node, name)
        raise _Unsplittable

    def _visit_arguments(self, node: ast.Call, name: str) -> ast.Call:
        # sum(lists, []) takes quadratic time, and the number of digits in round makes a power of ten. The
        # class in isinstance must be a known one.
        constants = node.args[1:] if name in ("round", "isinstance") else []
        if (
            not all(keyword.arg in _KEYWORDS for keyword in node.keywords)
            or (name == "sum" and len(node.args) > 1)
            or not all(is_safe(argument, self.unsafe) for argument in constants)
            or (name == "round" and not is_cheap(ast.Call(node.func, [ast.Constant(0), *constants], [])))
        ):
            raise _Unsplittable
        keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], keywords)

    def _is_atom(self, node: ast.expr) -> bool:
        """Return whether the candidate may evaluate this, because it can choose the value anyway."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=[converted, *others], keywords=keywords) if (
                name in CONVERTING and name not in self.unsafe
            ):
                options = [*others, *(keyword.value for keyword in keywords)]
                return self._is_converted(converted) and not any(map(_decides, options))
            case ast.Call(func=function):
                arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                # A comparison in a lambda is the affair of the candidate's function, as in
                # `f(lambda x: x > 1, [1, 2])`.
                if any(_decides(a) for a in arguments if not isinstance(a, ast.Lambda)):
                    return False
                is_curried = isinstance(function, ast.Call) and self._is_atom(function)
                return is_curried or self._is_defined_by_candidate(function)
        return self._is_defined_by_candidate(node)

    def _is_converted(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=function), *others]):
                return function in self.brought and not any(map(_decides, others))
            case ast.Subscript(value=value, slice=index) if is_safe(index, self.unsafe):
                return self._is_converted(value)
        return self._is_atom(node)

    def _is_defined_by_candidate(self, node: ast.expr) -> bool:
        """Return whether this is a name of the candidate, or an attribute of one or of its instance.

        Not a method of a value that a function returned: `f(3).isdigit()` decides about that value.
        """
        match node:
            case ast.Name(id=name):
                return name in self.brought
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if not name[:1].isupper():
                return name in self.brought and attribute not in _PLAIN_METHODS
            case ast.Attribute(value=ast.Call(func=ast.Name(id=name)) as instance):
                # By convention a capitalized name is a class.
                return name[:1].isupper() and self._is_atom(instance)
            case ast.Attribute(value=value):
                return self._is_defined_by_candidate(value)
        return False


def _refuse_identity(node: ast.Compare) -> None:
    """Raise _Unsplittable for the identity of values, which were copied on their way here."""
    sides = [node.left, *node.comparators]
    for operator, pair in zip(node.ops, itertools.pairwise(sides), strict=True):
        singletons = (None, True, False, ...)
        if isinstance(operator, (ast.Is, ast.IsNot)) and not any(
            isinstance(side, ast.Constant) and any(side.value is single for single in singletons)
            for side in pair
        ):
            raise _Unsplittable


def _decides(node: ast.AST) -> bool:
    """Return whether an expression compares or binds, so that its value could decide the assert."""
    decisions = (ast.Compare, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(inner, decisions) for inner in ast.walk(node))


def _compile(expression: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(expression)), "<test>", "eval")

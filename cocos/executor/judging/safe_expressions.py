"""Expressions that the trusted process evaluates: what they may contain, and what would take too long.

The trusted process has no time or memory limit. So a condition consists only of the names and node types
listed here. They cannot run the candidate's code, and take at most n log n time in the size of the values.
"""

import ast
import builtins
import collections
import math
import sys


def _builtins(names: str) -> dict[str, object]:
    return {name: getattr(builtins, name) for name in names.split()}


# Functions that decide whether an assert holds. The trusted process calls its own, even if the candidate has
# redefined the name.
DECIDING = _builtins("abs all any bool isinstance max min round sum")
# Constructors and conversions. A call of one on the candidate's value is part of the atom: an object that has
# a __len__ or an __iter__ is not plain, but its length and the list of its elements are.
CONVERTING = _builtins("bytes complex dict float frozenset int len list repr set sorted str tuple")
# Names that are evaluated only without a value of the candidate.
_CONSTANT = {
    **_builtins("enumerate range reversed type zip"),
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": collections.defaultdict,
    "deque": collections.deque,
    "object": object,
    "math": math,
    "sys": sys,
}
SAFE_NAMES = {**DECIDING, **CONVERTING, **_CONSTANT}
# Functions of math that the trusted process calls on values of the candidate.
MATH_TESTS = frozenset(
    ("ceil", "copysign", "fabs", "floor", "isclose", "isfinite", "isinf", "isnan", "sqrt", "trunc")
)
_MODULE_ATTRIBUTES = {
    "math": MATH_TESTS | {"e", "inf", "nan", "pi", "tau"},
    "sys": frozenset(["getsizeof", "maxsize"]),
}
_SAFE_NODES = (
    *(ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Subscript, ast.Slice),
    *(ast.UnaryOp, ast.unaryop, ast.BoolOp, ast.boolop, ast.BinOp, ast.operator, ast.Compare, ast.cmpop),
    *(ast.IfExp, ast.Call, ast.keyword, ast.Attribute),
)
_MAX_EXPONENT = 1000  # the largest exponent, shift width, range bound and number of digits
_MAX_REPEAT = 100_000  # the largest product of the numbers in a product that may repeat a string or a list
# Calls that make a number of numbers.
_OF_NUMBERS = frozenset(("abs", "float", "int", "max", "min", "round"))
# Calls whose result does not depend on the order of a set that they read.
_ORDERLESS = frozenset(
    ("all", "any", "bool", "frozenset", "isinstance", "len", "max", "min", "set", "sorted", "sum")
)


def is_safe(node: ast.AST, unsafe: set[str]) -> bool:
    """Return whether the trusted process can evaluate an expression without the candidate.

    Args:
        node: The expression.
        unsafe: Names that candidate or setup define, even if they are also builtins.

    """
    for inner in ast.walk(node):
        if not isinstance(inner, _SAFE_NODES):
            return False
        match inner:
            case ast.Name(id=name) if name not in SAFE_NAMES or name in unsafe:
                return False
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                if attribute not in _MODULE_ATTRIBUTES.get(name, ()):
                    return False
            case ast.Attribute():
                return False
            case ast.Call(func=function) if not isinstance(function, (ast.Name, ast.Attribute)):
                return False
    return True


def is_cheap(node: ast.expr) -> bool:
    """Return whether a safe expression takes little time and has the same value in every process."""
    return all(map(_is_bounded, ast.walk(node))) and not _shows_set_order(node)


def _is_bounded(node: ast.AST) -> bool:
    """Return whether this operation cannot build a huge value from small ones."""
    match node:
        case ast.BinOp(op=ast.Pow() | ast.LShift(), left=base, right=exponent):
            return _is_number(base, 1 << 64) and _is_number(exponent, _MAX_EXPONENT)
        case ast.BinOp(op=ast.Mod()):  # '%9999999999d' % 5
            return _is_numeric(node)
        case ast.BinOp(op=ast.Mult()):
            parts = list(ast.walk(node))
            numbers = [n.value for n in parts if isinstance(n, ast.Constant) and isinstance(n.value, int)]
            is_literal = not any(isinstance(n, (ast.Call, ast.Name, ast.Pow, ast.LShift)) for n in parts)
            return _is_numeric(node) or (is_literal and math.prod(map(abs, numbers)) <= _MAX_REPEAT)
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            return all(_is_number(argument, _MAX_EXPONENT) for argument in arguments)
        case ast.Call(func=ast.Name(id="bytes"), args=arguments):
            return all(isinstance(a, ast.List) or _is_text(a) for a in arguments)
        case ast.Call(func=ast.Name(id="round"), args=[_, digits]):
            return _is_number(digits, _MAX_EXPONENT)
    return True


def _is_number(node: ast.AST, limit: int) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand, limit)
        case ast.Constant(value=int() | float() as value):
            return abs(value) <= limit
    return False


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_numeric(node: ast.AST) -> bool:
    """Return whether the value is a number whatever the operands are, as in `1e-6 * max(1.0, math.pi)`."""
    match node:
        case ast.UnaryOp(operand=operand):
            return _is_numeric(operand)
        case ast.BinOp(left=left, right=right):
            return _is_numeric(left) and _is_numeric(right)
        case ast.Constant(value=value):
            return isinstance(value, (int, float, complex))
        case ast.Attribute() | ast.Call(func=ast.Attribute()):  # of math or sys
            return True
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in _OF_NUMBERS and all(map(_is_numeric, arguments))
    return False


def _shows_set_order(node: ast.AST, is_ordered: bool = False) -> bool:
    """Return whether the value depends on the order of a set, as `list({'a', 'b'})` does.

    That order depends on the hash seed, which is random in the trusted process and fixed in a sandbox.

    Args:
        node: The expression.
        is_ordered: A call around the expression depends on the order of its argument.

    """
    match node:
        case ast.Set() | ast.Call(func=ast.Name(id="set" | "frozenset")) if is_ordered:
            return True
        case ast.Call(func=ast.Name(id=name), keywords=keywords):
            # max(.., key=len) returns the first of several elements.
            is_ordered = name not in _ORDERLESS or bool(keywords)
    return any(_shows_set_order(child, is_ordered) for child in ast.iter_child_nodes(node))

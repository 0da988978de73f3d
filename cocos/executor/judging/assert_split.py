"""Splitting of a test into atoms for the candidate's process and conditions for the trusted process.

    assert abs(f(g(2)) - 1.5) < 0.1      # f and g exist in the candidate's process

    atom         f(g(2))                 evaluated in the candidate's process
    condition    abs(_0 - 1.5) < 0.1     evaluated in the trusted process, with the atom's value

Reads the test's source only, never the candidate's. The candidate can read every atom and choose its value.
So an atom is only the call of a function that the candidate defines, or a conversion of its result. Nothing
else of the test may depend on the candidate's process: no expectation such as `'abc'.upper()` or a constant
of the setup, and no decision such as `f(3).startswith('a')`. A test with such a part is not split.

The trusted process has a copy of an atom's value, made right after its evaluation. In one process, a later
call may change that value, or the data that an earlier call received. So an assert has at most one atom, and
Python evaluates it before anything can end the condition early. The name of an atom is read only until the
next atom, and in none. A name of a list, or of other data that a call could change, is read once if an atom
reads it. A test that needs more is not split.
"""

import ast
import copy
import itertools
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from cocos.executor.judging.safe_expressions import (
    CONVERTING,
    DECIDING,
    MATH_TESTS,
    SAFE_NAMES,
    is_cheap,
    is_safe,
)

# Methods of plain values. `word.startswith('a')` decides, even if the candidate defines `word`.
_PLAIN_METHODS = frozenset().union(*map(dir, (str, bytes, list, tuple, dict, set, int, float)))
_KEYWORDS = frozenset(["rel_tol", "abs_tol", "default"])  # of deciding functions
# An expression in one of these may be evaluated more than once, or later.
_REPEATED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

SYMBOLS: dict[type, str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}


@dataclass(frozen=True)
class Check:
    """One assert of a split test.

    Attributes:
        text: The condition as the test has it.
        condition: Expression that the trusted process evaluates, with the atoms' values as _0, _1, ...
        symbol: Operator of the condition, after "~" if its left side is the expected one, or "within"; ""
            unless it is a single comparison.
        sides: Both sides of it, and the tolerance, if there is one.

    """

    text: str
    condition: CodeType
    symbol: str = ""
    sides: tuple[CodeType, ...] = ()


@dataclass(frozen=True, eq=False)  # hashed as a part of keys of caches
class Split:
    """Plan for a test that could be split.

    Attributes:
        atoms: Source of the expressions that the candidate's process evaluates.
        checks: Its asserts, in order.

    """

    atoms: tuple[str, ...]
    checks: tuple[Check, ...]

    @cached_property
    def source(self) -> str:
        """Source of a tuple of functions, one per atom: one that raises does not stop the others."""
        return f"({''.join(f'(lambda: {atom}),' for atom in self.atoms)})"


class _Unsplittable(Exception):
    """The test cannot be split."""


def split_test(body: list[ast.stmt], candidate_names: set[str], shadowed: set[str]) -> Split | None:
    """Split a test that consists of asserts and of assignments to names, or return None.

    Args:
        body: Its statements; left unchanged.
        candidate_names: Names that only the candidate can define, even if they are also builtins.
        shadowed: Names that the setup defines, even if they are also builtins.

    """
    splitter = _Splitter(candidate_names, shadowed)
    checks: list[Check] = []
    try:
        for statement in body:
            match statement:
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if atom := splitter.assign(name, value):
                        checks.append(Check("", _compile(atom)))
                case ast.Assert(test=condition):
                    checks.append(_check(condition, splitter.visit_assert(condition)))
                case _:
                    return None
        splitter.refuse_shared_data()
    except _Unsplittable:
        return None
    return Split(tuple(splitter.atoms), tuple(checks)) if splitter.atoms and checks else None


def _check(condition: ast.expr, skeleton: ast.expr) -> Check:
    symbol, sides = "", tuple[ast.expr, ...]()
    if isinstance(skeleton, ast.Compare) and len(skeleton.ops) == 1:
        symbol, sides = SYMBOLS[type(skeleton.ops[0])], (skeleton.left, skeleton.comparators[0])
        if parts := tolerance(skeleton):
            symbol, sides = "within", parts
        if not _reads_atom(sides[0]):  # `2 == f(1)`
            symbol = f"~{symbol}"
    return Check(ast.unparse(condition), _compile(skeleton), symbol, tuple(map(_compile, sides)))


def tolerance(condition: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """Return both sides and the tolerance of `abs(a - b) < tolerance`, or None."""
    match condition:
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=right)], keywords=[]
            ),
            ops=[ast.Lt()],
            comparators=[limit],
        ):
            return left, right, limit
    return None


def _reads_atom(side: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id[:1] == "_" for node in ast.walk(side))


@dataclass
class _Assigned:
    """Meaning of a name of the test.

    Attributes:
        value: Data, or the name of an atom.
        is_mutable: A call could change the data.
        num_atoms: For an atom, the number of atoms up to it; otherwise 0.
        uses: How often it is used.

    """

    value: ast.expr
    is_mutable: bool
    num_atoms: int = 0
    uses: int = 0
    in_atoms: bool = False  # an atom uses it


class _Substitution(ast.NodeTransformer):
    """Puts what the names of a test stand for in their place."""

    def __init__(self, names: dict[str, _Assigned]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if (new := self.names.get(node.id)) is None:
            return node
        new.uses += 1
        value = copy.deepcopy(new.value)
        value.assigned = new  # type: ignore[attr-defined]
        return value


class _Splitter:
    """Replaces each part of a condition that needs the candidate by a name, and collects its source."""

    def __init__(self, candidate_names: set[str], shadowed: set[str]) -> None:
        self.candidate_names = candidate_names
        self.unsafe = candidate_names | shadowed  # these are not the builtins of the trusted process
        self.atoms: list[str] = []
        self._names: dict[str, _Assigned] = {}
        self._assigned: list[_Assigned] = []

    def assign(self, name: str, value: ast.expr) -> ast.expr | None:
        """Let a name stand for data, or for an atom of its own.

        Returns:
            For an atom, a condition that is true if the atom has a value.

        """
        if name in self.unsafe or name in SAFE_NAMES:
            raise _Unsplittable
        value = self._substitute(value)
        if is_safe(value, self.unsafe) and is_cheap(value):
            if any(new.is_mutable for new in _assigned_in(value)):  # a second name for the same list
                raise _Unsplittable
            new = _Assigned(value, _is_mutable(value))
        elif self._is_atom(value):
            new = _Assigned(self._add_atom(value), False, len(self.atoms))
        else:
            raise _Unsplittable
        self._names[name] = new
        self._assigned.append(new)
        return ast.Tuple([new.value], ast.Load()) if new.num_atoms else None

    def visit_assert(self, condition: ast.expr) -> ast.expr:
        """Return a condition as the trusted process will evaluate it."""
        used_before, num_atoms = [new.uses for new in self._assigned], len(self.atoms)
        skeleton = self.visit(self._substitute(condition))
        if len(self.atoms) > num_atoms + 1:  # the second call could change the value of the first
            raise _Unsplittable
        for new, uses in zip(self._assigned, used_before, strict=True):
            # A later call could change the value that an earlier one returned.
            if new.num_atoms and new.uses > uses and new.num_atoms != len(self.atoms):
                raise _Unsplittable
        return skeleton

    def refuse_shared_data(self) -> None:
        """Raise _Unsplittable if a call could change data that the test uses again."""
        if any(new.is_mutable and new.in_atoms and new.uses > 1 for new in self._assigned):
            raise _Unsplittable

    def _substitute(self, node: ast.expr) -> ast.expr:
        bound = {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
        bound |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if bound & self._names.keys():
            raise _Unsplittable
        return _Substitution(self._names).visit(copy.deepcopy(node)) if self._names else node

    def visit(self, node: ast.expr) -> ast.expr:
        """Return `node` as the trusted process will evaluate it; raise _Unsplittable if it cannot."""
        if isinstance(node, ast.Name) and node.id[:1] == "_" and node.id[1:].isdigit():
            return node
        if is_safe(node, self.unsafe):
            if not is_cheap(node):
                raise _Unsplittable
            return node
        if self._is_atom(node):
            return self._add_atom(node)
        match node:
            case ast.Compare(left=left, ops=operators, comparators=[side, *others]):
                _refuse_identity(node)
                sides = [self.visit(left), self.visit(side), *self._visit_without_atom(others)]
                return ast.Compare(sides[0], operators, sides[1:])
            case ast.BoolOp(op=operator, values=[value, *others]):
                return ast.BoolOp(operator, [self.visit(value), *self._visit_without_atom(others)])
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
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as value], keywords=[]) if (
                "len" not in self.unsafe and value.id[:1] == "_"
            ):
                return ast.Call(node.func, [self.visit(value)], [])
            case ast.Call(func=ast.Name(id=name)) if name in DECIDING and name not in self.unsafe:
                return self._visit_arguments(node, name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name)) if (
                name in MATH_TESTS and "math" not in self.unsafe
            ):
                return self._visit_arguments(node, name)
        raise _Unsplittable

    def _visit_without_atom(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """Visit what Python may not evaluate: `or`, `and` and chains of comparisons stop early."""
        num_atoms = len(self.atoms)
        visited = [self.visit(node) for node in nodes]
        if len(self.atoms) > num_atoms:
            raise _Unsplittable
        return visited

    def _add_atom(self, node: ast.expr) -> ast.Name:
        """Add an atom and return the name that stands for its value."""
        for outer in ast.walk(node):  # a lambda would make a new list each time
            if isinstance(outer, _REPEATED) and any(new.is_mutable for new in _assigned_in(outer)):
                raise _Unsplittable
        for new in _assigned_in(node):
            if new.num_atoms:  # the candidate's process does not keep the value of another atom
                raise _Unsplittable
            new.in_atoms = True
        self.atoms.append(ast.unparse(node))
        return ast.Name(f"_{len(self.atoms) - 1}", ast.Load())

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
            case ast.Subscript(value=ast.Call() as value, slice=index) if is_constant_index(index):
                return self._is_atom(value)
        return self._is_defined_by_candidate(node)

    def _is_converted(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=function), *others]):
                return function in self.candidate_names and not any(map(_decides, others))
            case ast.Subscript(value=value, slice=index) if is_safe(index, self.unsafe):
                return self._is_converted(value)
        return self._is_atom(node)

    def _is_defined_by_candidate(self, node: ast.expr) -> bool:
        """Return whether this is a name of the candidate, or an attribute of one or of its instance.

        Not a method of a value that a function returned: `f(3).isdigit()` decides about that value.
        """
        match node:
            case ast.Name(id=name):
                return name in self.candidate_names
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if not name[:1].isupper():
                return name in self.candidate_names and attribute not in _PLAIN_METHODS
            case ast.Attribute(value=ast.Call(func=ast.Name(id=name)) as instance, attr=attribute):
                # By convention a capitalized name is a class. If it is a function, `startswith` decides.
                return name[:1].isupper() and attribute not in _PLAIN_METHODS and self._is_atom(instance)
            case ast.Attribute(value=value):
                return self._is_defined_by_candidate(value)
        return False


def _assigned_in(node: ast.expr) -> list[_Assigned]:
    """Return the meanings of the test's names that were put into an expression."""
    return [inner.assigned for inner in ast.walk(node) if hasattr(inner, "assigned")]


def is_constant_index(node: ast.expr) -> bool:
    """Return whether an index is made of constants only, as in `[0]`, `[-1]`, `['key']` and `[1:]`."""
    allowed = (ast.Constant, ast.UnaryOp, ast.USub, ast.Slice)
    return all(isinstance(inner, allowed) for inner in ast.walk(node))


def _is_mutable(value: ast.expr) -> bool:
    fixed = (ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.Tuple, ast.Load)
    return not all(isinstance(inner, fixed) for inner in ast.walk(value))


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

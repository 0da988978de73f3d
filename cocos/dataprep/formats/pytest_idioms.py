"""Replacement of pytest calls in a test file by the standard library, since the executor runs without pytest.

`pytest.raises` becomes unittest's assertRaises, `x == pytest.approx(y)` becomes math.isclose with pytest's
default tolerances, and `pytest.fail` becomes an AssertionError. `solution.f` becomes `f`: the candidate's
names are in the same namespace as the test.
"""

import ast

from cocos.dataprep.formats.source_edits import Edit, apply_edits, node_source
from cocos.python_parser import parse


def replace_pytest_calls(source: str, modules: tuple[str, ...]) -> str:
    """Return the test file without pytest's calls and without the prefix of the module under test.

    Args:
        modules: Names by which the file imports the module under test.

    Raises:
        ValueError: A pytest call has no counterpart in the standard library.

    """
    # A pass replaces only the outermost calls. The next pass replaces calls inside their arguments.
    while True:
        edits = _Pass(source, parse(source), modules).edits()
        if not edits:
            return source
        source = apply_edits(source, edits)


def decorator_name(decorator: ast.expr) -> str:
    """Return the last part of a decorator's name: "parametrize" for `@pytest.mark.parametrize(...)`."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(node).split(".")[-1]


class _Pass:
    """Search for replaceable expressions in one version of a test file."""

    def __init__(self, source: str, tree: ast.Module, modules: tuple[str, ...]) -> None:
        self.source, self.tree = source, tree
        self.module_names: set[str] = set()  # local names of the module under test
        self.pytest_names: dict[str, str] = {}  # local name -> name in pytest
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=aliases):
                    self.module_names |= {a.asname or a.name for a in aliases if a.name in modules}
                case ast.ImportFrom(module="pytest", names=aliases):
                    self.pytest_names |= {a.asname or a.name: a.name for a in aliases}
        # Targets of `with ...assertRaises(...) as caught`: an earlier pass has replaced pytest.raises there.
        self.caught = {
            item.optional_vars.id
            for node in ast.walk(tree)
            if isinstance(node, ast.With)
            for item in node.items
            if isinstance(item.optional_vars, ast.Name) and "assertRaises" in ast.unparse(item.context_expr)
        }

    def edits(self) -> list[Edit]:
        """Return the replacement of every node that has one."""
        edits = []
        for node in ast.walk(self.tree):
            text = self._replacement(node)
            if text is not None:
                edits.append(Edit(node, text))  # type: ignore[arg-type]
        return edits

    def _pytest_name(self, node: ast.AST) -> str | None:
        """Return "approx" for `pytest.approx` and for `approx` imported from pytest; None for other nodes."""
        match node:
            case ast.Attribute(value=ast.Name(id="pytest"), attr=name):
                return name
            case ast.Name(id=name):
                return self.pytest_names.get(name)
        return None

    def _replacement(self, node: ast.AST) -> str | None:
        match node:
            case ast.Attribute(value=value, attr=name) if ast.unparse(value) in self.module_names:
                return name
            # pytest calls the caught exception `value`, unittest calls it `exception`.
            case ast.Attribute(value=ast.Name(id=caught), attr="value") if caught in self.caught:
                return f"{caught}.exception"
            case ast.Call(func=function) if self._pytest_name(function) == "raises":
                return self._assert_raises(node)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                for value, other in ((left, right), (right, left)):
                    if isinstance(other, ast.Call) and self._pytest_name(other.func) == "approx":
                        return self._is_close(value, other)
            case ast.Expr(value=ast.Call(func=function, args=[value, *_])) if (
                self._pytest_name(function) == "approx"
            ):
                return node_source(self.source, value)  # a statement `approx(x)` compares nothing
            case ast.Expr(value=ast.Call(func=function, args=args)) if self._pytest_name(function) == "fail":
                reason = node_source(self.source, args[0]) if args else "'pytest.fail'"
                return f"raise AssertionError({reason})"
        return None

    def _assert_raises(self, call: ast.Call) -> str:
        arguments = ", ".join(node_source(self.source, argument) for argument in call.args)
        # __import__ needs no import statement, so that the test stays a single statement where it was one.
        match call.keywords:
            case []:
                return f"__import__('unittest').TestCase().assertRaises({arguments})"
            case [ast.keyword(arg="match", value=pattern)]:
                regex = node_source(self.source, pattern)
                return f"__import__('unittest').TestCase().assertRaisesRegex({arguments}, {regex})"
        raise ValueError(f"uses {ast.unparse(call)}, which the standard library cannot replace")

    def _is_close(self, value: ast.expr, approx: ast.Call) -> str:
        tolerance = {k.arg: node_source(self.source, k.value) for k in approx.keywords}
        collections = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
        is_scalar = len(approx.args) == 1 and not isinstance(approx.args[0], collections)
        if not is_scalar or tolerance.keys() - {"rel", "abs"}:
            raise ValueError(f"uses {ast.unparse(approx)[:80]}, which the standard library cannot replace")
        # pytest.approx: rel 1e-6 and abs 1e-12 by default; abs alone switches the relative tolerance off.
        default_rel = "0" if "abs" in tolerance else "1e-06"
        rel, absolute = tolerance.get("rel", default_rel), tolerance.get("abs", "1e-12")
        operands = f"{node_source(self.source, value)}, {node_source(self.source, approx.args[0])}"
        return f"math.isclose({operands}, rel_tol={rel}, abs_tol={absolute})"

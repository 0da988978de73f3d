"""Replacement of pytest calls in a test file by the standard library, since the executor runs without pytest.

`pytest.raises` becomes unittest's assertRaises, `x == pytest.approx(y)` becomes math.isclose with pytest's
default tolerances, and `pytest.fail` becomes an AssertionError. `solution.f` becomes `f`: the candidate's
names are in the same namespace as the test.
"""

import ast
import copy

from cocos.dataprep.formats.source_edits import Edit, apply_edits, node_source
from cocos.files.python_parser import parse


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


# unittest's method -> the condition that it asserts; the keys of the placeholders are its first arguments.
UNITTEST_CONDITIONS = {
    **dict.fromkeys(
        (
            *("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual"),
            *("assertTupleEqual", "assertSequenceEqual", "assertMultiLineEqual"),
        ),
        "a == b",
    ),
    "assertNotEqual": "a != b",
    "assertTrue": "a",
    "assertFalse": "not a",
    "assertIs": "a is b",
    "assertIsNot": "a is not b",
    "assertIsNone": "a is None",
    "assertIsNotNone": "a is not None",
    "assertIn": "a in b",
    "assertNotIn": "a not in b",
    "assertIsInstance": "isinstance(a, b)",
    "assertGreater": "a > b",
    "assertGreaterEqual": "a >= b",
    "assertLess": "a < b",
    "assertLessEqual": "a <= b",
    "assertAlmostEqual": "abs(a - b) < 5e-8",  # rounded to 7 digits, the difference is 0
    "assertCountEqual": "sorted(a) == sorted(b)",
}


def unittest_functions(tree: ast.Module) -> str:
    """Return the source of a test file with functions of plain asserts in the place of unittest's methods.

    A class keeps the methods that use more of `self` than the methods above and assertRaises.
    """
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.decorator_list and is_unittest(node):
            methods = [] if _has_fixtures(node) else [method for method in node.body if is_test(method)]
            functions = {method: _as_function(node, method) for method in methods}
            body += filter(None, functions.values())
            node.body = [method for method in node.body if not functions.get(method)]
            if not node.body:
                continue
        body.append(node)
    tree.body = body
    return ast.unparse(ast.fix_missing_locations(tree))


def is_unittest(node: ast.ClassDef) -> bool:
    """Return whether a class is a unittest.TestCase by its bases."""
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def is_test(node: ast.stmt) -> bool:
    """Return whether a statement is a test function or method."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _has_fixtures(owner: ast.ClassDef) -> bool:
    names = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    return bool(names & {"setUp", "tearDown", "setUpClass", "tearDownClass"})


def _as_function(owner: ast.ClassDef, method: ast.stmt) -> ast.FunctionDef | None:
    """Return a test method as a function without `self`; None if it needs `self`."""
    if not isinstance(method, ast.FunctionDef) or method.decorator_list or len(method.args.args) != 1:
        return None
    asserts = _PlainAsserts(method.args.args[0].arg)
    body = [asserts.visit(copy.deepcopy(node)) for node in method.body]
    if any(isinstance(n, ast.Name) and n.id == asserts.instance for s in body for n in ast.walk(s)):
        return None
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.FunctionDef(f"test_{owner.name}_{method.name}", arguments, body, [])


class _PlainAsserts(ast.NodeTransformer):
    """Replaces unittest's assert methods by asserts, and `self.assertRaises` by that of a new instance."""

    def __init__(self, instance: str) -> None:
        self.instance = instance

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(func=ast.Attribute(ast.Name(instance), name), args=args, keywords=[]) if (
                instance == self.instance and name in UNITTEST_CONDITIONS
            ):
                values = dict(zip("ab", args, strict=False))
                condition = ast.parse(UNITTEST_CONDITIONS[name], mode="eval").body
                if values.keys() >= {n.id for n in ast.walk(condition) if isinstance(n, ast.Name)} & {*"ab"}:
                    return ast.Assert(_Substitution(values).visit(condition))
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        match node:
            case ast.Attribute(ast.Name(instance), "assertRaises" | "assertRaisesRegex") if (
                instance == self.instance
            ):
                node.value = ast.parse("__import__('unittest').TestCase()", mode="eval").body
                return node
        return self.generic_visit(node)


class _Substitution(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._values.get(node.id, node)

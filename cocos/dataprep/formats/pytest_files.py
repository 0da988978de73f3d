"""Conversion of a pytest or unittest file to independent tests that run without pytest.

Each test function, each method of a test class and each set of parameters becomes one test, because each test
gets one verdict and rewards count verdicts. A test contains the imports, helpers and fixtures that it needs.
Tests are left out, and reported with a reason, if they

    - are async, or marked skip, skipif, xfail, usefixtures or patch;
    - need a built-in fixture (capsys, tmp_path, request), or a fixture that yields;
    - have parameters that are computed, marked, or do not match their names;
    - call something of pytest that the standard library cannot replace.
"""

import ast
import copy
import itertools
import re
from collections.abc import Iterator

from cocos.dataprep.formats.humaneval import ExtractedTests
from cocos.dataprep.formats.source_edits import (
    InlinedImports,
    NodeT,
    Substitution,
    bound_names,
    defined_names,
    parse_source,
    read_names,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
MODULE_UNDER_TEST = "solution"  # KodCode's name
PYTEST = "pytest"
PYTEST_HELPERS = ("raises", "approx", "fail")  # that plain Python can replace
MARKS = ("fixture", "parametrize")
UNSUPPORTED_MARKS = ("skip", "skipif", "xfail", "usefixtures", "patch")
SET_UP = re.compile("set_?up|tear_?down", re.IGNORECASE)  # methods that run before or after each test
# __import__ needs no import statement, so that the test stays a single statement where it was one.
UNITTEST = "__import__('unittest').TestCase()"
# Name of unittest's method after `assert` -> the condition; the placeholders are its arguments.
CONDITIONS = {
    **{"True": "a", "False": "not a", "NotEqual": "a != b", "Is": "a is b", "IsNot": "a is not b"},
    **{"IsNone": "a is None", "IsNotNone": "a is not None", "In": "a in b", "NotIn": "a not in b"},
    **{"IsInstance": "isinstance(a, b)", "Greater": "a > b", "GreaterEqual": "a >= b", "Less": "a < b"},
    **{"LessEqual": "a <= b", "CountEqual": "sorted(a) == sorted(b)"},
    "AlmostEqual": "abs(a - b) < 5e-8",  # rounded to 7 digits, the difference is 0
    **{f"{kind}Equal": "a == b" for kind in ("", "List", "Dict", "Set", "Tuple", "Sequence", "MultiLine")},
}


def split_pytest_file(source: str) -> ExtractedTests:
    """Split a file that tests the module `solution` into tests.

    The imports of that module are removed, because a candidate's names are in the same namespace as the test.

    Raises:
        ValueError: The file does not parse, or no test in it can be converted.

    """
    tree = parse_source(source)
    names = InlinedImports(tree, lambda name, level: name if name == MODULE_UNDER_TEST else None)
    return split_test_module(names.visit(tree))


def split_test_module(tree: ast.Module) -> ExtractedTests:
    """Split the syntax tree of a test file; raise ValueError if no test in it can be converted."""
    file = _TestFile(tree)
    tests: list[str] = []
    left_out: list[str] = []
    for name, function, owner in _test_functions(tree):
        try:
            tests += file.convert(function, owner)
        except (ValueError, RecursionError) as reason:
            left_out.append(f"{name}: {reason}")
    if not tests:
        raise ValueError("; ".join(left_out) or "has no test function")
    return ExtractedTests(tuple(tests), tuple(left_out))


def plain_python(tree: ast.Module) -> ast.Module:
    """Return a test that calls `PYTEST_HELPERS` as plain Python; raise ValueError if it cannot be."""
    tree = _StandardLibrary({name: name for name in PYTEST_HELPERS}, tree).visit(tree)
    return ast.parse("\n".join(_with_math([*map(ast.unparse, tree.body)])))


def _with_math(lines: list[str]) -> list[str]:
    """Return a test's statements, with the import that `math.isclose` needs in the place of `approx`."""
    needs_math = "import math" not in lines and "math.isclose(" in "\n".join(lines)
    return ["import math"] * needs_math + lines


def decorator_name(decorator: ast.expr) -> str:
    """Return the last part of a decorator's name: "parametrize" for `@pytest.mark.parametrize(...)`."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(node).split(".")[-1]


def _test_functions(tree: ast.Module) -> Iterator[tuple[str, Function, ast.ClassDef | None]]:
    """Yield every test function with its full name and, for a method, its class."""
    for node in tree.body:
        yield from ((function.name, function, None) for function in _tests([node]))
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_unittest(node)):
            yield from ((f"{node.name}.{method.name}", method, node) for method in _tests(node.body))


class _TestFile:
    """Index of what the top-level statements of a test file define."""

    def __init__(self, tree: ast.Module) -> None:
        self.body = tree.body
        self.definitions: dict[str, ast.stmt] = {}  # name -> the statement that defines it
        self.fixtures: dict[str, Function] = {}
        self.side_effects: list[ast.stmt] = []  # such as `random.seed(...)`: every test has them
        self.pytest_names: dict[str, str] = {}  # local name -> name in pytest
        for node in tree.body:
            match node:
                case ast.ImportFrom(module="pytest"):
                    self.pytest_names |= {alias.asname or alias.name: alias.name for alias in node.names}
                case ast.Import(names=[ast.alias("pytest")]) | ast.Expr(ast.Constant()):
                    pass
                case ast.If(test=test) if "__name__" in ast.unparse(test):
                    pass  # `if __name__ == "__main__": pytest.main()`
                case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(ast.Name("sys"), "path")))):
                    pass  # where it finds what it tests; a sandbox has no such folder, and tests no __file__
                case ast.Expr(ast.Call(ast.Name(name))) if name.startswith("test"):
                    pass  # a test called by hand; it is converted anyway
                case ast.FunctionDef() if any(decorator_name(d) == "fixture" for d in node.decorator_list):
                    self.fixtures[node.name] = node
                case _ if names := defined_names(node):
                    self.definitions |= dict.fromkeys(names - self.definitions.keys(), node)
                case _:
                    self.side_effects.append(node)

    def convert(self, function: Function, owner: ast.ClassDef | None) -> list[str]:
        """Return the tests of one test function, one per set of parameters.

        Raises:
            ValueError: The function cannot run without pytest.

        """
        if isinstance(function, ast.AsyncFunctionDef):
            raise ValueError("is asynchronous")
        for decorator in function.decorator_list + (owner.decorator_list if owner else []):
            if decorator_name(decorator) in UNSUPPORTED_MARKS:
                raise ValueError(f"is marked {ast.unparse(decorator)}")
        plain = self._without_pytest(function)
        if owner and not any(SET_UP.match(getattr(node, "name", "")) for node in owner.body):
            instance = "".join(argument.arg for argument in function.args.args[:1])
            asserts = _StandardLibrary({}, plain, instance).visit(copy.deepcopy(plain))
            if instance not in read_names(asserts):
                del asserts.args.args[:1]
                plain, owner = asserts, None
        return [self._test(plain, owner, values) for values in _parameter_sets(function)]

    def _test(
        self, function: ast.FunctionDef, owner: ast.ClassDef | None, values: dict[str, ast.expr]
    ) -> str:
        """Return the test for one set of parameters, in the shortest form that means the same.

        A single assert becomes that assert with values in the place of parameters, and a function of asserts
        alone becomes these asserts: so prompts show them. Another test is its function and a call.
        """
        parameters = [argument.arg for argument in function.args.args][1 if owner else 0 :]
        needed: list[ast.AST] = [*values.values(), *([owner] if owner else [function.args, *function.body])]
        values |= {name: self._fixture_call(name, needed) for name in parameters if name not in values}
        body = function.body[ast.get_docstring(function) is not None :]
        only_asserts = owner is None and all(isinstance(node, ast.Assert) for node in body)
        # A name that the assert binds itself, as in `all(x > 0 for x in xs)`, must not be replaced.
        if only_asserts and len(body) == 1 and not bound_names(body[0]) & values.keys():
            lines = [ast.unparse(Substitution(values).visit(copy.deepcopy(body[0])))]
        elif only_asserts and not parameters:
            lines = [*map(ast.unparse, body)]
        else:
            lines = self._call(function, owner, ", ".join(ast.unparse(values[name]) for name in parameters))
        return "\n".join(_with_math([*self._context(needed, (owner or function).name), *lines]))

    def _call(self, function: ast.FunctionDef, owner: ast.ClassDef | None, arguments: str) -> list[str]:
        """Return the lines that define a test function and call it."""
        if owner is None:
            return [ast.unparse(function), f"{function.name}({arguments})"]
        tests = _tests(owner.body)
        others = [node for node in owner.body if node not in tests]
        shortened = ast.ClassDef(owner.name, owner.bases, owner.keywords, [*others, function], [])
        lines = [ast.unparse(self._without_pytest(shortened))]
        if _is_unittest(owner):
            # debug() runs setUp, the method and tearDown, and lets a failure through as an exception.
            return [*lines, f"{owner.name}({function.name!r}).debug()"]
        lines.append(f"case = {owner.name}()")
        for node in others:
            if isinstance(node, ast.FunctionDef) and node.name == "setup_method":
                # It may take the test method as an argument; None stands for it.
                lines.append(f"case.setup_method({'None' if len(node.args.args) > 1 else ''})")
        return [*lines, f"case.{function.name}({arguments})"]

    def _fixture_call(self, name: str, needed: list[ast.AST]) -> ast.expr:
        """Return the call that makes a fixture's value, and add what the call needs to `needed`."""
        fixture = self.fixtures.get(name)
        if fixture is None or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(fixture)):
            raise ValueError(f"needs the pytest fixture {name!r}{', which yields' * bool(fixture)}")
        self.definitions.setdefault(name, fixture)
        needed.append(ast.Name(name, ast.Load()))  # so that the context defines the fixture's function
        arguments = [self._fixture_call(argument.arg, needed) for argument in fixture.args.args]
        return ast.Call(ast.Name(name, ast.Load()), arguments, [])

    def _context(self, needed: list[ast.AST], test: str) -> list[str]:
        """Return the texts of all top-level statements that a test needs, in the file's order.

        Each test contains its own copies of imports and helpers. If they were shared as setup code, a test
        that changes a helper's state could make the next one fail.

        Args:
            needed: Nodes whose names must be defined.
            test: Name of the test function or class itself, which is not part of its context.

        """
        chosen = set(self.side_effects)
        queue: list[ast.AST] = [*needed, *self.side_effects]
        while queue:
            node = queue.pop()
            # `total += 1` binds total, but reads it as well.
            names = read_names(node) | (bound_names(node) if isinstance(node, ast.AugAssign) else set())
            found = {self.definitions[name] for name in names - {test} & self.definitions.keys()} - chosen
            chosen |= found
            queue += found
        return [ast.unparse(self._without_pytest(node)) for node in self.body if node in chosen]

    def _without_pytest(self, node: NodeT) -> NodeT:
        """Return a copy of a statement without pytest's calls and marks."""
        return _StandardLibrary(self.pytest_names, node).visit(copy.deepcopy(node))


class _StandardLibrary(ast.NodeTransformer):
    """Replaces calls of pytest and unittest in a copy of a statement, and drops pytest's marks.

    `pytest.raises` becomes unittest's assertRaises, `x == pytest.approx(y)` becomes math.isclose with the
    default tolerances of pytest, and `pytest.fail` an AssertionError.

    Args:
        names: Local name -> name in pytest, of what is imported from it.
        instance: The name of `self`, whose assert methods become asserts; "" to leave them.

    """

    def __init__(self, names: dict[str, str], statement: ast.AST, instance: str = "") -> None:
        self._names, self._instance = names, instance
        self._caught = {
            ast.unparse(item.optional_vars)
            for item in ast.walk(statement)
            if isinstance(item, ast.withitem) and item.optional_vars and "raises(" in ast.unparse(item)
        }

    def _name(self, node: ast.AST) -> str | None:
        """Return "raises" for `pytest.raises` and `raises`, "self.NAME" for a method of `self`."""
        match node:
            case ast.Attribute(ast.Name("pytest"), name):
                return name
            case ast.Attribute(ast.Name(self._instance), name):
                return f"self.{name}"
            case ast.Name(name):
                return self._names.get(name)
        return None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Drop the marks of a test and of a fixture."""
        marks = [d for d in node.decorator_list if "pytest" in ast.unparse(d) or decorator_name(d) in MARKS]
        node.decorator_list = [d for d in node.decorator_list if d not in marks]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace `self.assertRaises`, and pytest's name `value` of what was caught."""
        if node.attr == "value" and ast.unparse(node.value) in self._caught:
            node.attr = "exception"
        elif self._name(node) in ("self.assertRaises", "self.assertRaisesRegex"):
            node.value = _expression(UNITTEST)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace pytest.raises."""
        self.generic_visit(node)
        if self._name(node.func) != "raises":
            return node
        if [keyword.arg for keyword in node.keywords] not in ([], ["match"]):
            raise ValueError(f"uses {ast.unparse(node)}, which the standard library cannot replace")
        patterns = [keyword.value for keyword in node.keywords]
        method = _expression(f"{UNITTEST}.assertRaises{'Regex' * len(patterns)}")
        return ast.Call(method, [*node.args, *patterns], [])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Replace a comparison with pytest.approx."""
        self.generic_visit(node)
        for value, other in itertools.permutations((node.left, node.comparators[0])):
            if isinstance(other, ast.Call) and self._name(other.func) == "approx":
                return _is_close(value, other)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Replace pytest.fail and unittest's assert methods; a statement `approx(x)` compares nothing."""
        self.generic_visit(node)
        match node.value:
            case ast.Call(function, [value, *_]) if self._name(function) == "approx":
                return ast.Expr(value)
            case ast.Call(function, values) if self._name(function) == "fail":
                return ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), values, []))
            case ast.Call(function, [*values], []) if condition := CONDITIONS.get(
                (self._name(function) or "-").removeprefix("self.assert")
            ):
                given = dict(zip("ab", values, strict=False))  # without the message
                if read_names(_expression(condition)) & {"a", "b"} <= given.keys():
                    return ast.Assert(Substitution(given).visit(_expression(condition)))
        return node


def _is_close(value: ast.expr, approx: ast.Call) -> ast.AST:
    tolerance = {str(keyword.arg): ast.unparse(keyword.value) for keyword in approx.keywords}
    collections = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
    is_scalar = len(approx.args) == 1 and not isinstance(approx.args[0], collections)
    if not is_scalar or tolerance.keys() - {"rel", "abs"}:
        raise ValueError(f"uses {ast.unparse(approx)[:80]}, which the standard library cannot replace")
    # pytest.approx: rel 1e-6 and abs 1e-12 by default; abs alone switches the relative tolerance off.
    rel = tolerance.get("rel", "0" if "abs" in tolerance else "1e-06")
    call = _expression(f"math.isclose(a, b, rel_tol={rel}, abs_tol={tolerance.get('abs', '1e-12')})")
    return Substitution({"a": value, "b": approx.args[0]}).visit(call)


def _parameter_sets(function: Function) -> list[dict[str, ast.expr]]:
    """Return every set of parameters that parametrize marks give a function; one empty set without a mark."""
    sets: list[list[dict[str, ast.expr]]] = []
    for mark in reversed(function.decorator_list):  # the mark next to the function varies slowest
        if decorator_name(mark) != "parametrize":
            continue
        assert isinstance(mark, ast.Call)
        arguments = mark.args + [k.value for k in mark.keywords if k.arg in ("argnames", "argvalues")]
        try:
            names = ast.literal_eval(arguments[0])
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            rows = arguments[1].elts  # type: ignore[attr-defined]
        except (ValueError, IndexError, AttributeError):
            raise ValueError("has parameters that are not written out") from None
        sets.append([dict(zip(names, _values(row, len(names)), strict=True)) for row in rows])
    return [dict(itertools.chain.from_iterable(map(dict.items, parts))) for parts in itertools.product(*sets)]


def _values(row: ast.expr, count: int) -> list[ast.expr]:
    """Return the values of one element of a parametrize list."""
    match row:
        case ast.Call(function, values, keywords) if decorator_name(function) == "param":
            if any(keyword.arg == "marks" for keyword in keywords):
                raise ValueError("has parameters with marks")
        case ast.Tuple(values) | ast.List(values) if count > 1:
            pass
        case _:
            values = [row]
    if len(values) != count or any(isinstance(value, ast.Starred) for value in values):
        raise ValueError("has parameters that are not written out")
    return values


def _is_unittest(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def _tests(body: list[ast.stmt]) -> list[Function]:
    return [node for node in body if isinstance(node, Function) and node.name.startswith("test")]


def _expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body

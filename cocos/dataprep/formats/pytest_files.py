"""Conversion of a pytest file to independent tests that run without pytest.

Each test function, each method of a test class and each set of parameters becomes one test, because each test
gets one verdict and rewards count verdicts. A test contains the imports, helpers and fixtures that it needs.
Tests are left out, and reported with a reason, if they

    - are async, or marked skip, skipif, xfail, usefixtures or patch;
    - need a built-in fixture (capsys, tmp_path), or a fixture that yields or has options;
    - have parameters that are computed, marked, or do not match their names.
"""

import ast
import itertools

from cocos.dataprep.formats.humaneval import ExtractedTests
from cocos.dataprep.formats.pytest_idioms import decorator_name, is_test, is_unittest, replace_pytest_calls
from cocos.dataprep.formats.source_edits import (
    bound_names,
    defined_names,
    node_source,
    read_names,
    substitute_names,
)
from cocos.files.python_parser import parse

Function = ast.FunctionDef | ast.AsyncFunctionDef
MODULES_UNDER_TEST = ("solution",)  # KodCode's name
UNSUPPORTED_MARKS = ("skip", "skipif", "xfail", "usefixtures", "patch")


class _UnsupportedTest(ValueError):
    """A test cannot run without pytest; the message gives the reason."""


def split_pytest_file(source: str, modules: tuple[str, ...] = MODULES_UNDER_TEST) -> ExtractedTests:
    """Split a pytest file into tests.

    Args:
        modules: Names by which the file imports the module under test. These imports are removed, because a
            candidate's names are in the same namespace as the test.

    Raises:
        ValueError: The file does not parse, or no test in it can be converted.

    """
    try:
        source = replace_pytest_calls(source, modules)
        file = _TestFile(source, parse(source), modules)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"does not parse ({error})") from None
    tests: list[str] = []
    left_out: list[str] = []
    for name, function, owner in file.test_functions():
        try:
            tests += file.convert(function, owner)
        except _UnsupportedTest as reason:
            left_out.append(f"{name}: {reason}")
    if not tests:
        raise ValueError("; ".join(left_out) or "has no test function")
    return ExtractedTests(tuple(tests), tuple(left_out))


class _TestFile:
    """Test file without pytest calls, and an index of what its top-level statements define."""

    def __init__(self, source: str, tree: ast.Module, modules: tuple[str, ...]) -> None:
        self.source, self.tree = source, tree
        self.definitions: dict[str, ast.stmt] = {}  # name -> the statement that defines it
        self.fixtures: dict[str, Function] = {}
        self.side_effects: list[ast.stmt] = []  # such as `sys.path.append(...)`: every test has them
        # For `from solution import area as surface`: local name -> name in the module under test.
        self.aliases: dict[str, str] = {}
        removed_imports = (*modules, "pytest")
        for node in tree.body:
            match node:
                case ast.ImportFrom(module=module, names=names) if module in removed_imports:
                    if module != "pytest":
                        self.aliases |= {a.asname: a.name for a in names if a.asname}
                case ast.Import(names=names) if all(a.name in removed_imports for a in names):
                    pass
                case ast.If(test=test) if "__name__" in ast.unparse(test):
                    pass  # `if __name__ == "__main__": pytest.main()`
                case ast.Expr(value=ast.Constant()):
                    pass  # a docstring
                case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name.startswith("test"):
                    pass  # a test called by hand; it is converted anyway
                case ast.FunctionDef() if any(decorator_name(d) == "fixture" for d in node.decorator_list):
                    self.fixtures[node.name] = node
                case _:
                    self._add_statement(node)

    def _add_statement(self, node: ast.stmt) -> None:
        names = defined_names(node)
        for name in names:
            self.definitions.setdefault(name, node)
        if not names:
            self.side_effects.append(node)

    def test_functions(self) -> list[tuple[str, Function, ast.ClassDef | None]]:
        """Return every test function with its full name and, for a method, its class."""
        functions: list[tuple[str, Function, ast.ClassDef | None]] = []
        for node in self.tree.body:
            if isinstance(node, Function) and node.name.startswith("test"):
                functions.append((node.name, node, None))
            elif isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or is_unittest(node)):
                methods = [m for m in node.body if isinstance(m, Function) and m.name.startswith("test")]
                functions += [(f"{node.name}.{method.name}", method, node) for method in methods]
        return functions

    def convert(self, function: Function, owner: ast.ClassDef | None) -> list[str]:
        """Return the tests of one test function, one per set of parameters.

        Raises:
            _UnsupportedTest: The function cannot run without pytest.

        """
        if isinstance(function, ast.AsyncFunctionDef):
            raise _UnsupportedTest("is asynchronous")
        for decorator in function.decorator_list + (owner.decorator_list if owner else []):
            if decorator_name(decorator) in UNSUPPORTED_MARKS:
                raise _UnsupportedTest(f"is marked {ast.unparse(decorator)}")
        parameters = [argument.arg for argument in function.args.args][1 if owner else 0 :]
        return [self._test(function, owner, parameters, values) for values in _parameter_sets(function)]

    def _test(
        self,
        function: Function,
        owner: ast.ClassDef | None,
        parameters: list[str],
        values: dict[str, ast.expr],
    ) -> str:
        """Return the test for one set of parameters, in the shortest form that means the same.

        A single assert becomes that assert with values in the place of parameters, because the executor then
        reports the expected and the actual value. A function of asserts alone becomes these asserts. In all
        other cases the test keeps the function and calls it.
        """
        arguments = {name: self._operand(value, function) for name, value in values.items()}
        # Not the function's decorators, which are pytest's marks.
        definition = [owner] if owner else [function.args, *function.body]
        needed: list[ast.AST] = [*values.values(), *definition]
        for name in parameters:
            if name not in arguments:
                arguments[name] = self._fixture_call(name, needed)
        context = self._context(needed, owner or function)
        if owner is None:
            body = [node for node in function.body if not _is_docstring(node)]
            only_asserts = all(isinstance(node, ast.Assert) for node in body)
            # A name that the assert binds itself, as in `all(x > 0 for x in xs)`, must not be replaced.
            if only_asserts and len(body) == 1 and not bound_names(body[0]) & arguments.keys():
                return "\n".join([*context, substitute_names(self.source, body[0], arguments)])
            if only_asserts and not parameters:
                return "\n".join([*context, *(node_source(self.source, node) for node in body)])
        call = self._call(function, owner, ", ".join(arguments[name] for name in parameters))
        return "\n".join([*context, *call])

    def _operand(self, value: ast.expr, function: Function) -> str:
        """Return the text of a parameter's value, in parentheses if an operator may bind tighter."""
        text = node_source(self.source, value)
        is_power = isinstance(value, ast.UnaryOp) and "**" in ast.unparse(function)
        loose = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.BinOp, ast.Compare, ast.NamedExpr)
        return f"({text})" if is_power or isinstance(value, loose) else text

    def _call(self, function: Function, owner: ast.ClassDef | None, arguments: str) -> list[str]:
        """Return the lines that define a test function and call it."""
        if owner is None:
            return [node_source(self.source, function), f"{function.name}({arguments})"]
        class_source = _class_source(self.source, owner, function)
        if is_unittest(owner):
            # debug() runs setUp, the method and tearDown, and lets a failure through as an exception.
            return [class_source, f"{owner.name}({function.name!r}).debug()"]
        lines = [class_source, f"case = {owner.name}()"]
        methods = {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
        if "setup_method" in methods:
            # setup_method may take the test method as an argument; None stands for it.
            takes_method = len(methods["setup_method"].args.args) > 1
            lines.append(f"case.setup_method({'None' if takes_method else ''})")
        return [*lines, f"case.{function.name}({arguments})"]

    def _fixture_call(self, name: str, needed: list[ast.AST]) -> str:
        """Return the call that makes a fixture's value, and add what the call needs to `needed`."""
        if name not in self.fixtures:
            raise _UnsupportedTest(f"needs the pytest fixture {name!r}")
        fixture = self.fixtures[name]
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(fixture)):
            raise _UnsupportedTest(f"needs the fixture {name!r}, which yields")
        if any(isinstance(d, ast.Call) for d in fixture.decorator_list):
            raise _UnsupportedTest(f"needs the fixture {name!r}, which has options")
        self.definitions.setdefault(name, fixture)
        needed.append(ast.Name(name, ast.Load()))  # so that the context defines the fixture's function
        arguments = [self._fixture_call(argument.arg, needed) for argument in fixture.args.args]
        return f"{name}({', '.join(arguments)})"

    def _context(self, needed: list[ast.AST], test: ast.AST) -> list[str]:
        """Return the texts of all top-level statements that a test needs, in the file's order.

        Each test contains its own copies of imports and helpers. If they were shared as setup code, a test
        that changes a helper's state could make the next one fail.

        Args:
            needed: Nodes whose names must be defined.
            test: The test function or class itself, which is not part of its context.

        """
        chosen: dict[ast.stmt, None] = dict.fromkeys(self.side_effects)
        queue: list[ast.AST] = [*needed, *self.side_effects]
        read: set[str] = set()
        while queue:
            node = queue.pop()
            # `total += 1` binds total, but reads it as well.
            names = read_names(node) | (bound_names(node) if isinstance(node, ast.AugAssign) else set())
            for name in names - read:
                read.add(name)
                definition = self.definitions.get(name)
                if definition is not None and definition is not test and definition not in chosen:
                    chosen[definition] = None
                    queue.append(definition)
        # replace_pytest_calls may have introduced math.isclose.
        imports = ["import math"] if "math" in read and "math" not in self.definitions else []
        aliases = [f"{local} = {name}" for local, name in self.aliases.items() if local in read]
        position = {node: number for number, node in enumerate(self.tree.body)}
        texts = [_with_decorators(self.source, node) for node in sorted(chosen, key=position.__getitem__)]
        return [*imports, *aliases, *texts]


def _parameter_sets(function: Function) -> list[dict[str, ast.expr]]:
    """Return every set of parameters that parametrize marks give a function; one empty set without a mark."""
    marks = [d for d in function.decorator_list if decorator_name(d) == "parametrize"]
    sets_per_mark: list[list[dict[str, ast.expr]]] = []
    for mark in reversed(marks):  # pytest's order: the mark next to the function varies slowest
        assert isinstance(mark, ast.Call)
        arguments = mark.args + [k.value for k in mark.keywords if k.arg in ("argnames", "argvalues")]
        if len(arguments) < 2 or not isinstance(arguments[1], (ast.List, ast.Tuple)):
            raise _UnsupportedTest("has parameters that are not written out")
        try:
            names = ast.literal_eval(arguments[0])
        except ValueError:
            raise _UnsupportedTest("has parameter names that are not written out") from None
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        sets_per_mark.append([_parameter_set(names, value) for value in arguments[1].elts])
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*sets_per_mark)
    ]


def _parameter_set(names: list[str], value: ast.expr) -> dict[str, ast.expr]:
    """Return name -> value for one element of a parametrize list."""
    if isinstance(value, ast.Call) and decorator_name(value) == "param":
        if any(keyword.arg == "marks" for keyword in value.keywords):
            raise _UnsupportedTest("has parameters with marks")
        values = value.args
    elif len(names) == 1:
        values = [value]
    elif isinstance(value, (ast.Tuple, ast.List)):
        values = value.elts
    else:
        raise _UnsupportedTest("has parameters that are not written out")
    if len(values) != len(names) or any(isinstance(v, ast.Starred) for v in values):
        raise _UnsupportedTest("has parameters that do not match their names")
    return dict(zip(names, values, strict=True))


def _with_decorators(source: str, node: ast.stmt) -> str:
    """Return the text of a statement with its decorators, except @pytest.fixture."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        decorators = [d for d in node.decorator_list if decorator_name(d) != "fixture"]
        return "\n".join([*(f"@{node_source(source, d)}" for d in decorators), node_source(source, node)])
    return node_source(source, node)


def _class_source(source: str, owner: ast.ClassDef, method: Function) -> str:
    """Return the text of a test class without its other tests and without pytest's marks."""
    text = node_source(source, owner)
    others = {node.name for node in owner.body if isinstance(node, Function) and is_test(node)} - {
        method.name
    }
    if not others and "pytest" not in text:
        return text
    tree = parse(text)
    [copy] = tree.body
    assert isinstance(copy, ast.ClassDef)
    copy.body = [node for node in copy.body if not (isinstance(node, Function) and node.name in others)]
    for node in ast.walk(copy):
        if isinstance(node, Function):
            node.decorator_list = [d for d in node.decorator_list if "pytest" not in ast.unparse(d)]
    return ast.unparse(copy)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

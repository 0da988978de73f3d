"""A pytest file as tests of their own: one per test function, per method of a test class, per set of
parameters.

Each test carries the imports, helpers and fixtures that it needs and nothing else. What pytest alone can do
(capsys, tmp_path, xfail, async tests) is left out by name.
"""

import ast
import itertools
from dataclasses import dataclass, field

from cocos.dataprep.formats.humaneval import Tests
from cocos.dataprep.formats.pytest_idioms import decorator_name, in_plain_words
from cocos.dataprep.formats.source_edits import bound_at_top, bound_names, read_names, rename, text_of
from cocos.syntax import parse

Function = ast.FunctionDef | ast.AsyncFunctionDef
MODULES = ("solution",)


class _Unsupported(ValueError):
    """A test cannot stand by itself; the message says why."""


def file_as_tests(source: str, modules: tuple[str, ...] = MODULES) -> Tests:
    """The tests of a pytest file.

    Args:
        source: The file's text.
        modules: Names by which it imports the module under test; those imports are resolved away.

    Raises:
        ValueError: It does not parse, or no test in it can stand by itself.

    """
    try:
        source = in_plain_words(source, modules)
        file = _File(source, parse(source), modules)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"does not parse ({error})") from None
    tests: list[str] = []
    left_out: list[str] = []
    for name, function, owner in file.functions():
        try:
            tests += file.tests_of(function, owner)
        except _Unsupported as reason:
            left_out.append(f"{name}: {reason}")
    if not tests:
        raise ValueError("; ".join(left_out) or "has no test function")
    return Tests(tuple(tests), tuple(left_out))


@dataclass
class _File:
    """A test file in plain words, and who defines what in it."""

    source: str
    tree: ast.Module
    modules: tuple[str, ...]
    makers: dict[str, ast.stmt] = field(default_factory=dict)  # name -> the statement that defines it
    always: list[ast.stmt] = field(
        default_factory=list
    )  # statements that define nothing and still do something
    aliases: dict[str, str] = field(default_factory=dict)  # name here -> name in the module under test
    fixtures: dict[str, Function] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.tree.body:
            match node:
                case ast.ImportFrom(module=module, names=names) if module in (*self.modules, "pytest"):
                    if module != "pytest":
                        self.aliases |= {a.asname: a.name for a in names if a.asname}
                case ast.Import(names=names) if all(a.name in (*self.modules, "pytest") for a in names):
                    pass
                case ast.If(test=test) if "__name__" in ast.unparse(test):
                    pass
                case ast.Expr(value=ast.Constant()):
                    pass
                case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name.startswith("test"):
                    pass
                case ast.FunctionDef() if any(decorator_name(d) == "fixture" for d in node.decorator_list):
                    self.fixtures[node.name] = node
                case _:
                    for name in bound_at_top(node):
                        self.makers.setdefault(name, node)
                    if not bound_at_top(node):
                        self.always.append(node)

    def functions(self) -> list[tuple[str, Function, ast.ClassDef | None]]:
        """Every test function with its name and the class that it is a method of."""
        found: list[tuple[str, Function, ast.ClassDef | None]] = []
        for node in self.tree.body:
            if isinstance(node, Function) and node.name.startswith("test"):
                found.append((node.name, node, None))
            elif isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_unittest(node)):
                methods = [m for m in node.body if isinstance(m, Function) and m.name.startswith("test")]
                found += [(f"{node.name}.{method.name}", method, node) for method in methods]
        return found

    def tests_of(self, function: Function, owner: ast.ClassDef | None) -> list[str]:
        """The texts of one test function's tests, one per set of parameters."""
        if isinstance(function, ast.AsyncFunctionDef):
            raise _Unsupported("is asynchronous")
        for decorator in function.decorator_list + (owner.decorator_list if owner else []):
            if decorator_name(decorator) in ("skip", "skipif", "xfail", "usefixtures", "patch"):
                raise _Unsupported(f"is marked {ast.unparse(decorator)}")
        names = [argument.arg for argument in function.args.args][1 if owner else 0 :]
        return [self._test(function, owner, names, values) for values in _parameters(function)]

    def _test(
        self, function: Function, owner: ast.ClassDef | None, names: list[str], values: dict[str, ast.expr]
    ) -> str:
        given = {name: text_of(self.source, value) for name, value in values.items()}
        needed: list[ast.AST] = [*values.values(), owner or function]
        for name in names:
            if name not in given:
                given[name] = self._fixture(name, needed)
        body = [node for node in function.body if not _is_docstring(node)]
        context = self._context(needed, owner or function)
        single = body[0] if len(body) == 1 and isinstance(body[0], ast.Assert) else None
        is_plain = all(isinstance(node, ast.Assert) for node in body) and not set(names) & bound_names(
            function.args
        )
        if owner is None and single and not bound_names(single) & given.keys():
            return "\n".join([*context, rename(self.source, single, given)])
        if owner is None and is_plain:
            return "\n".join([*context, *(text_of(self.source, node) for node in body)])
        arguments = ", ".join(given[name] for name in names)
        return "\n".join([*context, *self._call(function, owner, arguments)])

    def _call(self, function: Function, owner: ast.ClassDef | None, arguments: str) -> list[str]:
        if owner is None:
            return [text_of(self.source, function), f"{function.name}({arguments})"]
        text = _without_pytest_marks(self.source, owner)
        if _is_unittest(owner):
            return [text, f"{owner.name}({function.name!r}).debug()"]
        methods = {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
        lines = [text, f"case = {owner.name}()"]
        if "setup_method" in methods:
            takes_method = len(methods["setup_method"].args.args) > 1
            lines.append(f"case.setup_method({'None' if takes_method else ''})")
        return [*lines, f"case.{function.name}({arguments})"]

    def _fixture(self, name: str, needed: list[ast.AST]) -> str:
        """The call that makes a fixture; what it needs is added to `needed`."""
        if name not in self.fixtures:
            raise _Unsupported(f"needs the pytest fixture {name!r}")
        fixture = self.fixtures[name]
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(fixture)):
            raise _Unsupported(f"needs the fixture {name!r}, which cleans up after itself")
        if any(isinstance(d, ast.Call) for d in fixture.decorator_list):
            raise _Unsupported(f"needs the fixture {name!r}, which has options")
        self.makers.setdefault(name, fixture)
        needed.append(ast.Name(name, ast.Load()))
        arguments = [self._fixture(argument.arg, needed) for argument in fixture.args.args]
        return f"{name}({', '.join(arguments)})"

    def _context(self, needed: list[ast.AST], itself: ast.AST) -> list[str]:
        """Imports and definitions that the nodes need, directly or through each other, in the file's
        order.
        """
        chosen: dict[ast.stmt, None] = dict.fromkeys(self.always)
        waiting: list[ast.AST] = [*needed, *self.always]
        read: set[str] = set()
        while waiting:
            node = waiting.pop()
            names = read_names(node) | (bound_names(node) if isinstance(node, ast.AugAssign) else set())
            for name in names - read:
                read.add(name)
                maker = self.makers.get(name)
                if maker is not None and maker is not itself and maker not in chosen:
                    chosen[maker] = None
                    waiting.append(maker)
        imports = ["import math"] if "math" in read and "math" not in self.makers else []
        renamed = [f"{here} = {there}" for here, there in self.aliases.items() if here in read]
        order = {node: number for number, node in enumerate(self.tree.body)}
        texts = [_with_decorators(self.source, node) for node in sorted(chosen, key=order.__getitem__)]
        return [*imports, *renamed, *texts]


def _parameters(function: Function) -> list[dict[str, ast.expr]]:
    """Every set of parameters that parametrize marks give a function; one empty set where there is no
    mark.
    """
    marks = [d for d in function.decorator_list if decorator_name(d) == "parametrize"]
    sets: list[list[dict[str, ast.expr]]] = []
    for mark in reversed(marks):  # the mark next to the function varies fastest last, as pytest runs them
        assert isinstance(mark, ast.Call)
        arguments = mark.args + [k.value for k in mark.keywords if k.arg in ("argnames", "argvalues")]
        if len(arguments) < 2 or not isinstance(arguments[1], (ast.List, ast.Tuple)):
            raise _Unsupported("has parameters that are not written out")
        try:
            names = ast.literal_eval(arguments[0])
        except ValueError:
            raise _Unsupported("has parameter names that are not written out") from None
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        sets.append([_case(names, value) for value in arguments[1].elts])
    return [
        {name: value for part in case for name, value in part.items()} for case in itertools.product(*sets)
    ]


def _case(names: list[str], value: ast.expr) -> dict[str, ast.expr]:
    if isinstance(value, ast.Call) and decorator_name(value) == "param":
        if any(keyword.arg == "marks" for keyword in value.keywords):
            raise _Unsupported("has parameters with marks of their own")
        values = value.args
    elif len(names) == 1:
        values = [value]
    elif isinstance(value, (ast.Tuple, ast.List)):
        values = value.elts
    else:
        raise _Unsupported("has parameters that are not written out")
    if len(values) != len(names) or any(isinstance(v, ast.Starred) for v in values):
        raise _Unsupported("has parameters that do not fit their names")
    return dict(zip(names, values, strict=True))


def _with_decorators(source: str, node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        decorators = [f"@{text_of(source, d)}" for d in node.decorator_list if decorator_name(d) != "fixture"]
        return "\n".join([*decorators, text_of(source, node)])
    return text_of(source, node)


def _without_pytest_marks(source: str, owner: ast.ClassDef) -> str:
    text = text_of(source, owner)
    if "pytest" not in text:
        return text
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, Function):
            node.decorator_list = [d for d in node.decorator_list if "pytest" not in ast.unparse(d)]
    return ast.unparse(tree)


def _is_unittest(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

"""Statements of a test, driven one after another; `expressions.py` evaluates what is in them."""

import ast
import builtins
import types
from collections.abc import Callable, Iterable
from typing import Any

from expressions import (
    Expressions,
    Mixed,
    Objects,
    bound_in,
    changeable,
    compiled,
    fresh,
    local_names,
    names_in,
)
from program_values import OBJECT, CannotCross, ProgramGone, Theirs, catches
from wire_format import MESSAGE_CHARS

_CONDITION_CHARS = 200
_SYMBOLS = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}


class Failed(AssertionError):
    """A condition is false.

    Attributes:
        sides: Its text, or the operator and the sides of a comparison.

    """

    def __init__(self, sides: list[str]) -> None:
        super().__init__()
        self.sides = sides


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Test(Expressions):
    """One test."""

    def run(self, setup: str, source: str) -> None:
        """Run the setup for what the test uses of it, then the test."""
        tree = Renamed({}, self.new_name).visit(ast.parse(source))
        self.given = _given(tree, self.theirs)
        for statement in ast.parse(setup).body:
            self._run_setup(statement)
        self.run_body(tree.body)

    def marks(self) -> list:
        """Return the reasons why the test is marked, and whether the program has caused all of them."""
        if not self.reasons:
            return []
        return [", ".join(self.reasons)[:MESSAGE_CHARS], all(self.reasons.values())]

    def end(self) -> None:
        """Tell the program's process that the test has ended."""
        self.program.end()

    def _run_setup(self, node: ast.stmt) -> None:
        # The program's process has run this statement, if anything there needs it.
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) or self.is_pure(node):
            self.run_statement(node)
            if isinstance(node, ast.ClassDef):
                self.sent.add(node.name)  # another class of this name would not be the program's
        else:
            self.theirs |= bound_in(node)

    def run_body(self, body: Iterable[ast.stmt]) -> None:
        """Run statements in order."""
        for statement in body:
            self.run_statement(statement)

    def run_statement(self, node: ast.stmt) -> None:
        """Run one statement."""
        visit = getattr(self, f"_run_{type(node).__name__}", self._run_there)
        visit(node)

    def _run_here(self, node: ast.stmt) -> None:
        exec(compiled(node, "exec"), self.names)
        self.theirs -= bound_in(node)

    def _run_there(self, node: ast.stmt) -> None:
        """Run a statement that this process cannot drive, and mark the test."""
        self.mark(f"{type(node).__name__} runs in the program's process")
        self._do(node)

    def _do(self, node: ast.stmt) -> None:
        bindings: list = []
        bound = bound_in(node)
        read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for name in bound - read:
            self.names.pop(name, None)
        source = self.embedded(node, bindings)
        self.theirs |= bound
        for name in bound:
            self.names.pop(name, None)
        self.program.do(bindings, source)

    def _run_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            if (
                not self.is_pure(node)
                and self.runs_there(node.value)
                and not isinstance(node.value, ast.Name)
            ):
                self._do(node)
            else:
                self.evaluate(node.value)

    def _run_Pass(self, node: ast.Pass) -> None:
        pass

    _run_Global = _run_Nonlocal = _run_Pass

    def _run_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self._run_here(node)
        for name in bound_in(node):
            self.sources[name] = ast.unparse(node)
            self.sent.discard(name)

    _run_ImportFrom = _run_Import

    def _run_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.pop(node.name, None)
        self.theirs.discard(node.name)
        self.sources[node.name] = ast.unparse(node)
        self.sent.discard(node.name)
        own = local_names(node)
        if (names_in(node) - own).isdisjoint(self.needed_by_program(node)):
            self._run_here(node)
        elif node.decorator_list or _yields(node):
            if any(
                isinstance(inner, (ast.Assert, ast.Compare, ast.BoolOp)) for inner in ast.walk(node)
            ) or any(map(self.is_pure, node.decorator_list)):
                self.mark("a function of the test runs in the program's process")
            del self.sources[node.name]
            self._do(node)
        else:
            self.functions[node.name] = node

    def needed_by_program(self, node: ast.FunctionDef) -> set[str]:
        """Return the names in a function that need the program."""
        used = self.needs(frozenset(names_in(node) - local_names(node)))
        touched = used & (self.theirs | self.functions.keys())
        return set(names_in(node)) if touched else set()

    def _run_ClassDef(self, node: ast.ClassDef) -> None:
        if self.is_pure(node):
            self._run_here(node)
            self.sources[node.name] = ast.unparse(node)
            self.sent.discard(node.name)
        else:
            self._run_there(node)

    def _run_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is None:
            return
        if self.is_pure(node.value) and all(self._is_here(target) for target in targets):
            given = {n for target in targets for n in bound_in(target)} & self.given
            if given and not self.is_sendable(value := self.evaluate(node.value)):
                if not isinstance(value, (type, types.FunctionType)):
                    if given != {n for target in targets for n in bound_in(target)}:
                        self.mark("an object of the test lives in the program's process")
                    self._do(node)
                    return
                self._store(targets, value)
                for name in given:
                    self.sources[name] = ast.unparse(node)
                    self.sent.discard(name)
                return
            self._run_here(node)
            for target in targets:
                self._forget(target)
        elif self.runs_there(node.value):
            self._do(node)
        else:
            self._store(targets, self.evaluate(node.value))

    _run_AnnAssign = _run_Assign

    def _forget(self, target: ast.expr) -> None:
        for name in bound_in(target):
            self.theirs.discard(name)
            self.functions.pop(name, None)
            self.sources.pop(name, None)

    def _is_here(self, target: ast.expr) -> bool:
        """Return whether an assignment to a target happens in this process."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return all(map(self._is_here, target.elts))
        if isinstance(target, ast.Starred):
            return self._is_here(target.value)
        return isinstance(target, ast.Name) or self.is_pure(target)

    def _store(self, targets: list[ast.expr], value: Any) -> None:
        for target in targets:
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Give a value to a target."""
        if isinstance(value, (Theirs, Mixed)) and self._is_here(target):
            try:
                [known] = self.data(value)
            except Objects:
                known = OBJECT
            if known is not OBJECT and not changeable(known):
                value = known
        if isinstance(value, (Theirs, Mixed)) or not self._is_here(target):
            bindings: list = []
            source = self.operand(value, bindings)
            text = self.embedded(target, bindings)
            self.program.do(bindings, f"{text} = {source}")
            for name in bound_in(target):
                self.names.pop(name, None)
                self._forget(ast.Name(name, ast.Store()))
                self.theirs.add(name)
            return
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        else:
            name = self.new_name("value")
            self.names[name] = value
            statement = ast.Assign([target], ast.Name(name, ast.Load()))
            exec(compiled(statement, "exec"), self.names)
            del self.names[name]
        self._forget(target)

    def _run_AugAssign(self, node: ast.AugAssign) -> None:
        if self.is_pure(node):
            self._run_here(node)
            return
        target = node.target
        if isinstance(target, ast.Name) and target.id in self.names and not changeable(self.names[target.id]):
            read = ast.Name(target.id, ast.Load())
            self.assign(target, self.evaluate(ast.BinOp(read, node.op, node.value)))
        else:
            if not self.runs_there(node.value):
                value = self.evaluate(node.value)
                name = self.new_name("value")
                self.assign(ast.Name(name, ast.Store()), value)
                node = ast.AugAssign(target, node.op, ast.Name(name, ast.Load()))
            self._do(node)

    def _run_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            statement = ast.Delete([target])
            if self.is_pure(target):
                exec(compiled(statement, "exec"), self.names)
            else:
                bindings: list = []
                self.program.do(bindings, self.embedded(statement, bindings))

    def _run_Assert(self, node: ast.Assert) -> None:
        sides: list[str] = []
        if not self._holds(node.test, sides):
            if node.msg is not None:
                [message] = self.data(self.evaluate(node.msg))
                raise AssertionError(message)
            raise Failed(sides or [ast.unparse(node.test)[:_CONDITION_CHARS]])

    def _holds(self, condition: ast.expr, sides: list[str]) -> bool:
        """Return whether a condition holds; note what it compared if it does not."""
        left_mark = ""
        match condition:
            case ast.Compare(
                left=ast.Call(
                    func=ast.Name(id="abs"),
                    args=[ast.BinOp(left=left, op=ast.Sub(), right=right)],
                    keywords=[],
                ),
                ops=[ast.Lt()],
                comparators=[limit],
            ) if "abs" not in self.theirs:
                parts = self.data(*(self.evaluate(side) for side in (left, right, limit)))
                left_mark = "~" if self.is_pure(left) else ""
                if abs(parts[0] - parts[1]) < parts[2]:
                    return True
                sides += [f"{left_mark}within", *map(_shown, parts)]
                return False
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                is_identity = isinstance(operator, (ast.Is, ast.IsNot))
                values = [self._operand(left, is_identity), self._operand(right, is_identity)]
                if self.truth(self.compare(operator, *values, left, right)):
                    return True
                left_mark = "~" if self.is_pure(left) and not self.is_pure(right) else ""
                sides += [left_mark + _SYMBOLS[type(operator)], *map(self._text, values)]
                return False
        return self.truth(self.evaluate(condition))

    def _text(self, value: Any) -> str:
        """Return the `repr` of a value."""
        try:
            return _shown(*self.data(value))
        except Objects:
            pass
        try:
            return str(*self.data(self.ask("repr({})", [value])))[:MESSAGE_CHARS]
        except Exception as error:
            return f"<{type(error).__name__} in __repr__>"

    def _run_Return(self, node: ast.Return) -> None:
        raise _Return(None if node.value is None else self.evaluate(node.value))

    def _run_Break(self, node: ast.Break) -> None:
        raise _Break

    def _run_Continue(self, node: ast.Continue) -> None:
        raise _Continue

    def _run_If(self, node: ast.If) -> None:
        self.run_body(node.body if self.truth(self.evaluate(node.test)) else node.orelse)

    def _run_While(self, node: ast.While) -> None:
        if self.is_pure(node):
            self._run_here(node)
            return
        while self.truth(self.evaluate(node.test)):
            try:
                self.run_body(node.body)
            except _Continue:
                continue
            except _Break:
                return
        self.run_body(node.orelse)

    def _run_For(self, node: ast.For) -> None:
        if self.is_pure(node):
            self._run_here(node)
            return
        for value in self.iterate(node.iter):
            self.assign(node.target, value)
            try:
                self.run_body(node.body)
            except _Continue:
                continue
            except _Break:
                return
        self.run_body(node.orelse)

    def _run_Raise(self, node: ast.Raise) -> None:
        if node.exc is None or self.is_pure(node):
            raise self._being_handled[-1] if node.exc is None else self._made(node)
        self._run_there(node)

    def _made(self, node: ast.Raise) -> BaseException:
        assert node.exc is not None
        error = self.evaluate(node.exc)
        return error() if isinstance(error, type) else error

    _being_handled: list[BaseException] = []

    def _run_Try(self, node: ast.Try) -> None:
        try:
            try:
                self.run_body(node.body)
            except (_Break, _Continue, _Return, ProgramGone, CannotCross):
                raise
            except BaseException as error:
                self._handle(node, error)
            else:
                self.run_body(node.orelse)
        finally:
            self.run_body(node.finalbody)

    def _handle(self, node: ast.Try, error: BaseException) -> None:
        for handler in node.handlers:
            if handler.type is not None and not catches(self.kinds(handler.type), error):
                continue
            if handler.name:
                theirs = getattr(error, "theirs", None)
                self.assign(ast.Name(handler.name, ast.Store()), error if theirs is None else theirs)
                self.errors[handler.name] = error
            self._being_handled.append(error)
            try:
                self.run_body(handler.body)
            finally:
                self._being_handled.pop()
            return
        raise error

    def _run_With(self, node: ast.With) -> None:
        [item, *others] = node.items
        body: list[ast.stmt] = [ast.With(others, node.body)] if others else node.body
        manager = self.evaluate(item.context_expr)
        if isinstance(manager, Theirs):
            manager = _TheirManager(self, manager)
        with manager as value:
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
            self.run_body(body)

    def call(self, definition: ast.FunctionDef, positional: list, keywords: dict) -> Any:
        """Interpret a call of a function of the test, with names of its own for its variables."""
        new = Renamed({name: self.new_name(name) for name in local_names(definition)}, self.new_name)
        signature = definition.args
        names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
        given = dict(zip(names, positional, strict=False)) | keywords
        defaults = dict(zip(names[::-1], signature.defaults[::-1], strict=False))
        defaults |= {
            argument.arg: default
            for argument, default in zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
            if default is not None
        }
        for name, default in defaults.items():
            if name not in given:
                given[name] = self.evaluate(default)
        rest = positional[len(names) :]
        wanted = {*names, *(argument.arg for argument in signature.kwonlyargs)}
        if signature.vararg:
            wanted.add(signature.vararg.arg)
            given[signature.vararg.arg] = Mixed(tuple(rest))
        elif rest:
            raise TypeError(f"{definition.name}() takes {len(names)} positional arguments")
        if signature.kwarg:
            wanted.add(signature.kwarg.arg)
            given[signature.kwarg.arg] = Mixed({k: given.pop(k) for k in [*given] if k not in wanted})
        if given.keys() != wanted:
            raise TypeError(f"{definition.name}() got other arguments: {sorted(given.keys() ^ wanted)}")
        for name, value in given.items():
            self.assign(ast.Name(new.names[name], ast.Store()), value)
        try:
            self.run_body([new.visit(fresh(statement)) for statement in definition.body])
        except _Return as returned:
            return returned.value
        return None


class _TheirManager:
    """A context manager of the program."""

    def __init__(self, test: Test, manager: Theirs) -> None:
        self.test, self.manager = test, manager

    def __enter__(self) -> Theirs:
        return self.test.ask("{}.__enter__()", [self.manager])

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        if error is None or isinstance(error, (_Break, _Continue, _Return, ProgramGone, CannotCross)):
            if not isinstance(error, (ProgramGone, CannotCross)):
                self.test.ask("{}.__exit__(None, None, None)", [self.manager])
            return False
        if (theirs := getattr(error, "theirs", None)) is None:  # a failed assert cannot be withdrawn
            is_assert = isinstance(error, AssertionError) or vars(builtins).get(kind.__name__) is not kind
            name = "AssertionError" if is_assert else kind.__name__
            form = f"{{0}}.__exit__({name}, {name}(*{{1}}), None)"
            swallows = self.test.ask(form, [self.manager, () if is_assert else error.args])
            if is_assert:
                return False
        else:
            swallows = self.test.ask("{0}.__exit__(type({1}), {1}, None)", [self.manager, theirs])
        if not self.test.truth(swallows):
            return False
        if not self.manager.is_named:
            self.test.mark("__exit__ of an object", True)
        return True


class Renamed(ast.NodeTransformer):
    """Gives other names to the variables of a function, and to those of comprehensions.

    In the program's process all of them are global, where the program may have the same names.
    """

    def __init__(self, names: dict[str, str], new_name: Callable[[str], str]) -> None:
        self.names, self.new_name = names, new_name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = node.name and self.names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_Import(self, node: Any) -> ast.AST:
        for alias in node.names:
            bound = (alias.asname or alias.name).split(".")[0]
            if bound in self.names:
                alias.asname = self.names[bound]
        return node

    visit_ImportFrom = visit_Import

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        if self.names.keys().isdisjoint(node.names):
            return node
        return ast.Global([self.names.get(name, name) for name in node.names])

    def _inner(self, node: Any, own: set[str]) -> ast.AST:
        outer, self.names = self.names, {k: v for k, v in self.names.items() if k not in own}
        node = self.generic_visit(node)
        self.names = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._inner(node, {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)})

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self._inner(node, local_names(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)

    def _comprehension(self, node: Any) -> ast.AST:
        own = {name for generator in node.generators for name in bound_in(generator.target)}
        outer, self.names = self.names, self.names | {name: self.new_name(name) for name in own}
        node = self.generic_visit(node)
        self.names = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def _given(tree: ast.AST, remote: set[str]) -> set[str]:
    """Return the names that the program may get: those in calls of it, or of what came from it."""
    derived = set(remote)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            derived.add(node.arg)
    while True:
        before = len(derived)
        for node in ast.walk(tree):
            if (
                isinstance(node, (ast.Assign, ast.For, ast.withitem, ast.FunctionDef))
                and names_in(node) & derived
            ):
                derived |= bound_in(node)
        if len(derived) == before:
            break
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _root(node) in derived
        for name in names_in(node)
    }


def _root(node: ast.AST) -> str:
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
                node = inner
            case _:
                return ""
    return node.id


def _yields(node: ast.AST) -> bool:
    return any(isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await)) for inner in ast.walk(node))


def _shown(value: Any) -> str:
    try:
        return repr(value)[:MESSAGE_CHARS]
    except BaseException as worse:
        return f"<{type(worse).__name__} in __repr__>"

"""Data flow between the module-level statements of a program: names that they bind, read and change.

Where it is open what a statement changes, it counts as changed. By convention asserts and prints change
nothing, nor do calls of known names.
"""

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_STORED = (ast.Store, ast.Del)
NAMESPACES = {"exec", "globals", "locals", "vars"}  # they bind and read names that the source does not show
_TEST_MODULES = {"doctest", "hypothesis", "pytest", "timeit", "unittest"}
_EXITS = {"exit", "quit", "_exit", "abort"}
_READING_METHODS = {*dir(str), "copy", "get", "items", "keys", "values"}
EVERYTHING = "*"  # among the names that a statement changes


@dataclass(frozen=True, eq=False)
class Statement:
    """A module-level statement and its global names."""

    node: ast.stmt
    binds: frozenset[str]  # names that it gives to something
    reads: frozenset[str]  # names that it reads, or that a call of what it defines does
    declared: frozenset[str]  # names that such a call binds, by `global`

    def parts_at_load(self) -> list[ast.AST]:
        """Return the parts that run when the program loads: of a definition, what is not in functions."""
        node = self.node
        if isinstance(node, ast.ClassDef):
            inner = [part for part in node.body if not isinstance(part, DEFINITIONS)]
            return [*node.decorator_list, *node.bases, *node.keywords, *inner]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        return [node]


def statement_of(node: ast.stmt) -> Statement:
    """Return a module-level statement with its names; raise SyntaxError if it cannot be compiled."""
    table = symtable.symtable(ast.unparse(node), "<code>", "exec")
    symbols = [s for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()]
    reads, declared, scopes = set[str](), set[str](), [table]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_declared_global():
                declared.add(symbol.get_name())
            elif symbol.is_referenced() and (symbol.is_global() or scope.get_type() != "function"):
                reads.add(symbol.get_name())
    binds = frozenset(symbol.get_name() for symbol in symbols)
    return Statement(node, binds, frozenset(reads | declared), frozenset(declared))


class Flow:
    """What the statements of a program read and change.

    Args:
        statements: The statements, in order.
        called: Names that the tests call. Calls of them change nothing that matters: tests make them, too.

    """

    def __init__(self, statements: Sequence[Statement], called: set[str]) -> None:
        self.statements = statements
        self.called = called
        self.binders: dict[str, list[Statement]] = {}
        for statement in statements:
            for name in statement.binds:
                self.binders.setdefault(name, []).append(statement)
        self.modules = _modules(statements)

    def read_by(self, names: Iterable[str], known: set[str]) -> set[str]:
        """Return the names that what has these names reads, directly or through names that are not known."""
        found, rest = set[str](), [*names]
        while rest:
            new = {name for s in self.binders.get(rest.pop(), ()) for name in s.reads} - found - known
            found |= new
            rest += new
        return found

    def users_of(self, names: set[str]) -> set[str]:
        """Return the names of what comes from these names, which they are themselves."""
        users, size = names - self.modules.keys(), 0
        while size < len(users):
            size = len(users)
            users |= {name for s in self.statements if s.reads & users for name in s.binds}
        return users

    def changed(self, statement: Statement, solution: set[str]) -> set[str]:
        """Return the names of what a statement can change as the program loads; EVERYTHING may be among them.

        Args:
            solution: Names that count as called in an assert or a print: what the solution calls itself.

        """
        parts = [part for node in statement.parts_at_load() for part in _with_checks(node)]
        changed = self._touched(parts, statement)
        if isinstance(statement.node, ast.ClassDef):  # a class may register with its bases
            changed |= self._owners(*statement.node.bases)
        for node, is_check in parts:
            known = solution if is_check else self.called
            if isinstance(node, ast.Name) and node.id not in known:
                for name in {node.id} | self.read_by([node.id], known):
                    for other in self.binders.get(name, ()):
                        changed |= self._touched(list(_with_checks(other.node)), other) | other.declared
        return changed

    def changes_module(self, statement: Statement) -> bool:
        """Return whether a statement may set the state of Python or of a module, as `random.seed(0)` does."""
        nodes = [] if isinstance(statement.node, DEFINITIONS) else [*ast.walk(statement.node)]
        if _names_in(nodes) & {"input", "stdin", *_EXITS}:
            return False
        owners = set[str]()
        for node in nodes:
            match node:
                case ast.Expr(value=ast.Call(func=func)):
                    owners |= self._owners(func)
                case ast.Attribute(value=value, ctx=ctx) | ast.Subscript(value=value, ctx=ctx):
                    owners |= self._owners(value) if isinstance(ctx, _STORED) else set()
        return bool({self.modules[name] for name in owners & self.modules.keys()} - _TEST_MODULES)

    def _touched(self, parts: Sequence[tuple[ast.AST, bool]], statement: Statement) -> set[str]:
        """Return the global names of the objects that parts of a statement change in place."""
        touched = set[str]()
        for node in (node for node, is_check in parts if not is_check):
            match node:
                case ast.Attribute(value=value, ctx=ctx) | ast.Subscript(value=value, ctx=ctx):
                    touched |= self._owners(value) if isinstance(ctx, _STORED) else set()
                case ast.Call(func=ast.Name(id="exec")):
                    touched.add(EVERYTHING)
                case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[first, *_]):
                    touched |= self._owners(first)
                case ast.Call(func=ast.Name(id=name)) if name in self.called or hasattr(builtins, name):
                    pass
                case ast.Call(func=func, args=args, keywords=keywords):
                    given = self._owners(*args, *(keyword.value for keyword in keywords))
                    touched |= {name for name in given if self._is_data(name)}
                    if isinstance(func, ast.Attribute) and func.attr not in _READING_METHODS:
                        touched |= {name for name in self._owners(func.value) if self._has_state(name)}
        known = statement.reads | statement.binds
        local = {n.id for n, _ in parts if isinstance(n, ast.Name) and isinstance(n.ctx, _STORED)} - known
        if touched & local:  # which may be other names of global ones
            touched |= {name for name in statement.reads if self._is_data(name)}
        return self._with_other_names(touched & {*known, EVERYTHING})

    def _with_other_names(self, names: set[str]) -> set[str]:
        """Add the names of the objects from which those with these names may come."""
        found, rest = set[str](), [*names]
        while rest:
            if (name := rest.pop()) not in found:
                found.add(name)
                binders = [] if name in self.called else self.binders.get(name, ())
                rest += [
                    r for s in binders for r in s.reads if r not in self.called or self._is_stateful_class(r)
                ]
        return found

    def _owners(self, *nodes: ast.AST) -> set[str]:
        """Return the names of the objects that the values of expressions may belong to; "*" for all.

        What a call of a called name returns belongs to nothing else.
        """
        owners = set[str]()
        for node in nodes:
            match node:
                case ast.Name(id=name):
                    owners.add(name)
                case ast.Attribute(value=value) | ast.Subscript(value=value):
                    owners |= self._owners(value)
                case ast.Call(func=ast.Name(id=name)) if name in NAMESPACES:
                    owners.add(EVERYTHING)
                case ast.Call(func=func) if (found := self._owners(func)) & self.called:
                    owners |= {name for name in found if self._is_stateful_class(name)}
                case _:
                    owners |= self._owners(*ast.iter_child_nodes(node))
        return owners

    def _is_data(self, name: str) -> bool:
        return any(not isinstance(s.node, (*DEFINITIONS, *IMPORTS)) for s in self.binders.get(name, ()))

    def _is_stateful_class(self, name: str) -> bool:
        nodes = [s.node for s in self.binders.get(name, ())]
        return any(isinstance(node, ast.ClassDef) and _shares_state(node) for node in nodes)

    def _has_state(self, name: str) -> bool:
        """Return whether a method of what has this name can change it, unlike one of most classes."""
        nodes = [s.node for s in self.binders.get(name, ())]
        is_stateless = nodes and all(isinstance(node, (ast.ClassDef, *IMPORTS)) for node in nodes)
        is_builtin = not nodes and hasattr(builtins, name)
        return not (is_stateless or is_builtin) or self._is_stateful_class(name)


def _with_checks(node: ast.AST, is_check: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the nodes below a node, and whether each stands in an assert or a print."""
    is_check |= isinstance(node, ast.Assert)
    is_check |= isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    yield node, is_check
    for child in ast.iter_child_nodes(node):
        yield from _with_checks(child, is_check)


def _names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of variables and attributes."""
    return {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}


def _shares_state(node: ast.ClassDef) -> bool:
    """Return whether methods of a class change what all its objects share."""
    shared = {"cls", node.name}
    for part in node.body:
        if isinstance(part, ast.Assign) or isinstance(
            getattr(part, "value", None), ast.Dict | ast.List | ast.Set
        ):
            shared |= _names_in(n for n in ast.walk(part) if isinstance(getattr(n, "ctx", None), ast.Store))
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=value, ctx=ast.Store()) | ast.Subscript(value=value, ctx=ast.Store()):
                changed: ast.expr = value
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as value)):
                changed = value
            case _:
                continue
        if shared & _names_in(ast.walk(changed)):
            return True
    return False


def _modules(statements: Iterable[Statement]) -> dict[str, str]:
    """Return the names that come from modules, each with the name of the module."""
    modules, others = dict[str, str](), set[str]()
    for statement in statements:
        others |= statement.reads
        for node in ast.walk(statement.node):
            if isinstance(node, IMPORTS):
                for alias in node.names:
                    module = getattr(node, "module", alias.name) or ""
                    modules[alias.asname or alias.name.split(".")[0]] = module.split(".")[0]
    if "*" in modules:
        bound = {name for statement in statements for name in statement.binds}
        modules |= dict.fromkeys(others - bound - {*dir(builtins)}, modules["*"])
    return modules

"""Slice of a program: the module-level statements that its tests need.

Models write asserts, calls, prints and whole test suites around a solution, and one that fails while the
program loads would leave no test a verdict. A definition, an import or an assignment stays if what the tests
use reads its name, directly or through others. Another statement stays if it touches a variable that they
read, itself or through functions that it calls, sets an attribute of what they read, or calls a module
that they use (`random.seed(0)`) or the interpreter. Tests call what they call themselves, so such calls touch
nothing; asserts do not either. A name that is bound anew below all that reads it is another variable; of a
global that functions read, there is only one, unless it has the name of a builtin.

Does not know where a program was found.
"""

import ast
import builtins
import copy
import re
import symtable
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cocos.files.python_parser import parse

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_STATELESS = (ast.FunctionDef, ast.AsyncFunctionDef, *_IMPORTS)
_TEST_MODULES = {"doctest", "hypothesis", "pytest", "timeit", "unittest"}
_INTERPRETER = {"builtins", "sys"}  # what is set there holds for all modules
_ENDS = {"exit", "quit", "_exit", "abort", "input", "stdin"}  # of a program that runs, not of one that loads
_HIDDEN = {"eval", "exec", "globals", "locals", "vars"}  # they use names that the source does not show


@dataclass(frozen=True, eq=False)
class _Statement:
    """A module-level statement and its global names."""

    position: int
    node: ast.stmt
    binds: frozenset[str]
    reads: frozenset[str]  # also in functions that it defines
    touches: frozenset[str]  # those that it reads when it runs, outside asserts
    declared: frozenset[str]  # those that its functions bind, by `global`
    later: frozenset[str]  # those that its functions read, when they are called


def slice_of(code: str, names: Collection[str] = (), used_names: Collection[str] = ()) -> str:
    """Return a program that parses without the statements that its tests do not need.

    Args:
        names: Names that the tests call; empty if they are not known, and then all of the program stays.
        used_names: Further names that the tests use.

    """
    body = parse(code).body
    if not names or all(map(_only_defines, body)):
        return code
    try:
        statements = [_statement(*numbered) for numbered in enumerate(body)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the program does not compile
        return code
    used = {*names, *used_names}
    if any(statement.reads & _HIDDEN for statement in statements):
        used |= {name for s in statements if _only_defines(s.node) for name in s.binds}
    needed = _Flow(statements, {*names}, used).needed()
    left_out = [statement.node for statement in statements if statement not in needed]
    return code if all(map(_only_defines, left_out)) else _without(code, body, left_out)


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, _DEFINITIONS):
        return not node.decorator_list
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not any(isinstance(inner, ast.Call) for inner in ast.walk(node))
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, (*_IMPORTS, ast.Pass))


# -- names --


class _WithoutAsserts(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Pass:
        return ast.Pass()


def _statement(position: int, node: ast.stmt) -> _Statement:
    binds, reads, declared, later = _names(node)
    running = _WithoutAsserts().visit(copy.deepcopy(node))
    return _Statement(position, node, binds, reads, _names(running)[1], declared, later)


def _names(node: ast.stmt) -> tuple[frozenset[str], ...]:
    """Return the global names that a statement binds, reads, and declares and reads in functions."""
    table = symtable.symtable(ast.unparse(node), "<code>", "exec")
    bound = [s for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()]
    reads, declared, later, scopes = set[str](), set[str](), set[str](), [table]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_declared_global():
                declared.add(symbol.get_name())
            elif symbol.is_referenced() and (symbol.is_global() or scope.get_type() != "function"):
                (later if scope.get_type() == "function" else reads).add(symbol.get_name())
    binds = frozenset(symbol.get_name() for symbol in bound)
    later |= declared
    return binds, frozenset(reads | later), frozenset(declared), frozenset(later)


# -- what is needed --


class _Flow:
    """The statements of a program, and what its tests use of it.

    Args:
        called: Names that the tests call.
        used: Names that the tests use, and others that count as used.

    """

    def __init__(self, statements: list[_Statement], called: set[str], used: set[str]) -> None:
        self.statements, self.called, self.used = statements, called, used
        self.binders: dict[str, list[_Statement]] = {}
        for statement in statements:
            for name in statement.binds | statement.declared:
                self.binders.setdefault(name, []).append(statement)
        self.modules = _modules(statement.node for statement in statements)
        self.tries = {"print", *(name for name, module in self.modules.items() if module in _TEST_MODULES)}
        if "*" in self.modules:
            reads = {name for statement in statements for name in statement.reads}
            self.modules |= dict.fromkeys(reads - self.binders.keys() - {*dir(builtins)}, "*")
        self.defined = {s.node.name for s in statements if isinstance(s.node, _DEFINITIONS)}
        # Functions and modules have no state of their own.
        self.variables = {
            name
            for name, binders in self.binders.items()
            if any(name in s.declared or not isinstance(s.node, _STATELESS) for s in binders)
        }
        # Of a class that tests use, the objects have the state: an example below it makes one of its own.
        classes = {s.node.name for s in statements if isinstance(s.node, ast.ClassDef)}
        self.variables -= called | (classes & used)

    def needed(self) -> set[_Statement]:
        """Return the statements that the tests need."""
        needed = set[_Statement]()
        last_reads = dict.fromkeys(self.used, len(self.statements))
        while found := {s for s in self.statements if s not in needed and self._is_needed(s, last_reads)}:
            needed |= found
            for statement in found:
                for name in statement.reads:
                    is_read_later = name in statement.later - {*dir(builtins)} | statement.declared
                    read = len(self.statements) if is_read_later else statement.position
                    last_reads[name] = max(read, last_reads.get(name, 0))
        return needed

    def _is_needed(self, statement: _Statement, last_reads: dict[str, int]) -> bool:
        node, live = statement.node, {*last_reads}
        if not isinstance(node, (*_DEFINITIONS, *_IMPORTS)):
            live -= {
                name
                for name, last in last_reads.items()
                if any(last <= s.position <= statement.position for s in self.binders.get(name, ()))
            }
        if isinstance(node, _IMPORTS) and statement.binds & self.defined & self.called:
            return False
        if isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*"):
            return True
        if statement.binds & live:
            return True
        if isinstance(node, _DEFINITIONS):  # a decorator or a base may register it
            names = _loaded(*node.decorator_list, *getattr(node, "bases", ()))
            return bool((names | (self._touched(names) & self.variables)) & live)
        if isinstance(node, (*_IMPORTS, ast.Assert)):
            return False
        names = self._touched(statement.touches - ((last_reads.keys() | statement.binds) - live))
        is_trial = not names.isdisjoint(self.called) or not statement.reads.isdisjoint(self.tries)
        if _changed(node) & live or names & self.variables & live or (names & _HIDDEN and not is_trial):
            return True
        sets_up = isinstance(node, ast.Expr) or (isinstance(node, ast.Assign) and _changed(node))
        modules = {self.modules[name] for name in statement.reads & self.modules.keys()}
        used = _INTERPRETER | {self.modules[name] for name in live & self.modules.keys()}
        return bool(sets_up and modules & used) and not (is_trial or names & self.used or _ends(node))

    def _touched(self, names: Iterable[str]) -> set[str]:
        """Add the names that what has these names reads when it is called, unless tests call it."""
        found, rest = set[str](), [*names]
        while rest:
            name = rest.pop()
            if name not in found and name not in self.called:
                rest += [read for s in self.binders.get(name, ()) for read in s.touches | s.declared]
            found.add(name)
        return found


def _modules(nodes: Iterable[ast.stmt]) -> dict[str, str]:
    """Return the modules of imported names; "*" has the name of a module of which all is imported."""
    return {
        alias.asname or alias.name.partition(".")[0]: (getattr(node, "module", None) or alias.name).partition(
            "."
        )[0]
        for node in nodes
        if isinstance(node, _IMPORTS)
        for alias in node.names
    }


def _changed(node: ast.AST) -> set[str]:
    """Return the names of which a statement sets an attribute or an element."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute | ast.Subscript) and not isinstance(inner.ctx, ast.Load):
            names |= _loaded(inner.value)
        elif isinstance(inner, ast.Call) and getattr(inner.func, "id", None) in ("setattr", "delattr"):
            names |= _loaded(*inner.args[:1])
    return names


def _loaded(*nodes: ast.AST) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _ends(node: ast.AST) -> bool:
    words = {getattr(inner, "id", None) or getattr(inner, "attr", None) for inner in ast.walk(node)}
    return not words.isdisjoint(_ENDS)


# -- text --


def _without(code: str, body: list[ast.stmt], left_out: list[ast.stmt]) -> str:
    """Return the program without these statements, and without what follows its last one."""
    lines = re.split(r"\r\n|\r|\n", code)
    uses = Counter(line for node in body for line in {_first_line(node), node.end_lineno})
    end = 0
    for node in body:
        if node not in left_out or _first_line(node) <= end:
            end = node.end_lineno or 0
    del lines[end:]
    for node in reversed(left_out):
        first, last = _first_line(node), node.end_lineno or 0
        if first <= end and max(uses[first], uses[last]) > 1:  # columns count bytes
            before = lines[first - 1].encode()[: node.col_offset].decode()
            after = lines[last - 1].encode()[node.end_col_offset :].decode()
            lines[first - 1 : last] = [f"{before}pass{after}"]
        elif first <= end:
            del lines[first - 1 : last]
    return "\n".join(lines).rstrip()


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])

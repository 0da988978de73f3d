"""Names in a source: the ones it binds, and the ones that it takes from elsewhere."""

import ast
import builtins
import importlib
import re
import symtable
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from cocos.executor.parser import parse, quiet

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__builtins__"}
_MODULES = """ bisect cmath collections copy datetime decimal fractions functools heapq itertools json math
operator random re statistics string sys numpy pandas """
# What tests use without importing it, with the import statement. The driver imports it itself, because the
# candidate could have patched what its own process has.
STANDARD_MODULES = {
    **{name: f"import {name}" for name in _MODULES.split()},
    "np": "import numpy as np",
    "pd": "import pandas as pd",
}
STANDARD_CLASSES = {
    **dict.fromkeys(("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"), "collections"),
    **dict.fromkeys(("date", "datetime", "timedelta"), "datetime"),
    "Decimal": "decimal",
    "Fraction": "fractions",
}
STANDARD_NAMES = STANDARD_MODULES.keys() | STANDARD_CLASSES.keys()
# Modules of the standard library that a test can import and use without a trace.
_PURE_WORDS = """ bisect cmath collections copy datetime decimal fractions functools heapq itertools json math
operator re statistics string textwrap typing """
_PURE = frozenset(_PURE_WORDS.split())
_NO_TRACE = _PURE | {"random"}  # which the driver seeds anew for each job
_IMPURE_WORDS = """ setattr delattr exec eval compile open __import__ globals vars input breakpoint getcontext
setcontext localcontext register cache_clear purge __dict__ """
_IMPURE = frozenset(_IMPURE_WORDS.split())


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these nodes bind, without those that their children bind."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names


def free_names(table: symtable.SymbolTable, in_functions: bool = False) -> set[str]:
    """Return the names that a module reads but does not bind at its top level.

    Args:
        table: Symbols of the module.
        in_functions: Return those instead that its functions and classes read, even if it binds them.

    """
    bound = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }

    def names_read(scope: symtable.SymbolTable) -> set[str]:
        if isinstance(scope, symtable.Function):
            names = {name for name in scope.get_globals() if scope.lookup(name).is_referenced()}
        else:  # `is_global` of a symbol is true for all symbols of a scope with the name "top"
            is_top = scope.get_type() == "module"
            names = {
                s.get_name()
                for s in scope.get_symbols()
                if s.is_referenced() and (is_top or (s.is_global() and not s.is_local()))
            }
        return names.union(*map(names_read, scope.get_children()))

    if in_functions:
        return set[str]().union(*map(names_read, table.get_children()))
    return names_read(table) - bound


def standard_imports(nodes: Iterable[ast.AST], free: set[str]) -> dict[str, str]:
    """Return the free names that are standard modules or classes, with a statement that imports each.

    A module is a name of which the source reads an attribute, as in `math.pi`. A class may be what the
    candidate must define, so it is taken for the standard one only if there is another name of the candidate.
    """
    with_attributes = {
        node.value.id
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    imports = {name: STANDARD_MODULES[name] for name in free & with_attributes & STANDARD_MODULES.keys()}
    classes = (free - imports.keys()) & STANDARD_CLASSES.keys()
    if free - imports.keys() - classes:
        imports |= {name: f"from {STANDARD_CLASSES[name]} import {name}" for name in classes}
    return imports


def names_in(node: ast.AST) -> set[str]:
    """Return the variables in a part of a source."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def touched_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds, in any form, and those of what it changes in place."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        inner = (node.names for node in ast.walk(statement) if isinstance(node, ast.Global))
        return {statement.name}.union(*inner)
    names = bound_names(ast.walk(statement))
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=value, ctx=ast.Store()) | ast.Subscript(value=value, ctx=ast.Store()):
                names |= names_in(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
                names |= names_in(value)
    return names


class CodeNames(NamedTuple):
    """Names in a candidate's code.

    Attributes:
        used: Names that it reads and others may bind, without those of the next two.
        builtins: Builtins that it uses.
        defined: Its functions, classes and imports, by a star too, that its functions use.
        standard: Standard names that it defines.
        imports: Statements that import the standard functions with which its stars replace builtins.

    """

    used: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    standard: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()


@lru_cache(maxsize=1 << 10)
def names_of(code: str) -> CodeNames:
    """Return the names in a candidate's code; none if it does not parse."""
    try:
        with quiet():
            table, body = symtable.symtable(code, "<code>", "exec"), parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CodeNames()
    symbols = {symbol.get_name(): symbol for symbol in table.get_symbols()}
    from_modules = [node for node in body if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    stars = [(n.module, names) for n in from_modules if (names := _names_in_module(n.module or ""))]
    star_names = set[str]().union(*(names for _, names in stars))
    in_functions = free_names(table, in_functions=True)
    defined = {name for name, symbol in symbols.items() if symbol.is_imported() or symbol.is_namespace()}
    free = free_names(table) | in_functions - symbols.keys()
    assigned = {name for name, symbol in symbols.items() if symbol.is_assigned()}
    declared = re.findall(r"\w+", " ".join(re.findall(r"\bglobal (.+)", code)))
    unbound = BUILTINS - assigned
    imports = [f"from {module} import {name}" for module, names in stars for name in names & unbound]
    return CodeNames(
        used=frozenset(
            (free | in_functions | assigned.intersection(declared)) - defined - BUILTINS - star_names
        ),
        builtins=frozenset(free & BUILTINS),
        defined=frozenset((defined | star_names) & in_functions),
        standard=frozenset(name for name in STANDARD_NAMES & symbols.keys() if symbols[name].is_namespace()),
        imports=tuple(sorted(imports)),
    )


@lru_cache(maxsize=1 << 10)
def definitions_in(source: str) -> dict[str, str]:
    """Return by name what the functions, classes and imports at the top of a source are.

    A test may repeat a function of the task, as those of HumanEval/32 and 38 do. A source that is nested too
    deeply has none.
    """
    found = {}
    try:
        for node in parse(source).body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    parts: list[Any] = [part for part in node.body if not is_text(part)] + node.decorator_list
                    if isinstance(node, ast.ClassDef):
                        parts += [*node.bases, *node.keywords]
                    else:  # all but annotations
                        parts += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
                    names = [inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)]
                    found[name] = f"def {names} {[*map(ast.dump, parts)]}"
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                    found |= {alias.asname or alias.name: module + alias.name for alias in aliases}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


def replaced_names(body: list[ast.stmt]) -> set[str]:
    """Return the names to which statements give a function, a class, an attribute or None.

    A test that calls a variable `list` means no builtin of the program, though plain Python takes it for one.
    """
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets, ast.Lambda() | ast.Attribute() | ast.Constant(value=None)):
                names |= bound_names(inner for target in targets for inner in ast.walk(target))
    return names


def is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a constant, such as a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _names_in_module(module: str) -> set[str]:
    names = vars(importlib.import_module(module)) if module in _PURE else {}
    return {name for name in names.get("__all__", names) if name[:1] != "_"}


def is_plain(nodes: list[ast.AST]) -> bool:
    """Return whether statements can leave nothing behind in the process that runs them."""
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                if not all(alias.name.split(".")[0] in _NO_TRACE for alias in aliases):
                    return False
            case ast.ImportFrom(module=module):
                if (module or "").split(".")[0] not in _NO_TRACE:
                    return False
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.ClassDef():
                return False
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _IMPURE:
                return False
    return True

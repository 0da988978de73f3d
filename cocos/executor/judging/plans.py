"""Plans, which say in which process each part of a test runs.

A plan depends on the test and the problem's setup, never on the candidate. There are three kinds:

`Split`     for a single assert. The candidate's process evaluates the parts that need the candidate and
            sends plain values. The trusted process evaluates the condition on them (`assert_split.py`).
`Judged`    for other tests. They run in a judge process that the candidate cannot reach. It calls the
            candidate's functions through a socket (`inside/judge.py`).
`InChild`   if neither is possible. The test runs in the candidate's process, which could forge the evidence.
"""

import ast
import builtins
import symtable
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from cocos.executor.judging.assert_messages import add_assert_messages
from cocos.executor.judging.assert_split import Split, split_assert
from cocos.python_parser import parse

# Modules that the tests of benchmarks use without importing them. The judge imports them itself, because the
# candidate could have patched those of its own process.
STANDARD_MODULES = frozenset(
    (
        *("bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq"),
        *("itertools", "json", "math", "operator", "random", "re", "statistics", "string", "sys"),
    )
)
_BUILTINS = frozenset(dir(builtins)) | {"__name__"}


@dataclass(frozen=True)
class Judged:
    """Plan for statements that a judge process runs.

    Example:
        def check(c):
            assert c(1) == 2
        check(f)

    Here `f` is remote: in the judge's process it is a stub that calls the candidate's `f`.

    Attributes:
        source: The statements.
        imports: Import statements to run before them.
        remote: Names that the judge replaces by stubs for the candidate's functions.

    """

    source: str
    imports: str
    remote: tuple[str, ...]


@dataclass(frozen=True)
class InChild:
    """Plan for statements that run in the candidate's process.

    Attributes:
        source: The statements.
        reason: Why the test can be neither split nor judged.

    """

    source: str
    reason: str


Plan = Split | Judged | InChild


@lru_cache(maxsize=1 << 16)
def plan_test(test: str, setup: str = "") -> Plan:
    """Decide how to judge one test.

    Args:
        test: Source of the test. If it does not parse, its plan is InChild, and it raises when it is run.
        setup: Source that the problem runs before its tests, in the candidate's process.

    """
    try:
        tree, setup_tree = parse(test), parse(setup)
        symbols = symtable.symtable(test, "<test>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return InChild(test, "does not parse")
    imports = [node for node in ast.walk(setup_tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = _bound_names(imports)
    setup_names = _bound_names(ast.walk(setup_tree)) - imported
    match tree.body:
        case [ast.Assert(test=condition)]:
            definitions = (ast.FunctionDef, ast.ClassDef)
            helpers = {node.name for node in ast.walk(setup_tree) if isinstance(node, definitions)}
            # The candidate could redefine these names in its process. The trusted process has a `math` and a
            # `sys` of its own, for the attributes that `assert_split` lists.
            unsafe = helpers | (imported - {"math", "sys"})
            if plan := split_assert(condition, unsafe, candidate_names=setup_names):
                return plan
    free = _free_names(symbols) - _BUILTINS - imported
    modules = free & STANDARD_MODULES & _names_with_attributes(tree)
    remote = free - modules
    source = add_assert_messages(test, tree)
    if reason := _why_not_judged(tree, remote, setup_names):
        return InChild(source, reason)
    lines = [f"import {name}" for name in sorted(modules)] + [ast.unparse(node) for node in imports]
    return Judged(source, "\n".join(lines), tuple(sorted(remote)))


def _bound_names(nodes: Iterable[ast.AST]) -> set[str]:
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


def _names_with_attributes(tree: ast.Module) -> set[str]:
    """Return the names of which the test reads an attribute, as in `math.pi`."""
    return {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Return the names that the test reads but does not bind at its top level."""
    bound = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }

    def names_read(scope: symtable.SymbolTable) -> set[str]:
        is_top = scope.get_type() == "module"
        names = {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (is_top or s.is_global())}
        return names.union(*map(names_read, scope.get_children()))

    return names_read(table) - bound


def _why_not_judged(tree: ast.Module, remote: set[str], setup_names: set[str]) -> str | None:
    """Return why the judge cannot run a test, or None if it can.

    The judge can only call the candidate's functions, with plain values, and get plain values back.
    """
    nodes = list(ast.walk(tree))
    if any(isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.Global)) for node in nodes):
        return "asynchronous, or rebinds globals"
    if any(_reads_stdout(node) for node in nodes):
        return "reads what the candidate prints"
    if not remote:
        return "no name in it is known to be a function of the candidate"
    if remote & setup_names:
        return f"uses {', '.join(sorted(remote & setup_names))} of the setup"
    # By convention a capitalized name without an underscore is a class.
    if classes := {name for name in remote if name[:1].isupper() and "_" not in name}:
        return f"uses the candidate's class {', '.join(sorted(classes))}"
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    # A stub can be called, or passed on as in `check(f)`. It has no attributes and cannot be compared.
    uses = {id(call.func) for call in calls} | {id(argument) for call in calls for argument in call.args}
    if any(isinstance(node, ast.Name) and node.id in remote and id(node) not in uses for node in nodes):
        return "uses a function of the candidate other than by calling it or passing it as an argument"
    own_functions = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    # Any parameter may be a function of the candidate, as `c` is in `def check(c)`.
    maybe_stubs = remote | {node.arg for node in nodes if isinstance(node, ast.arg)}
    for call in calls:
        if _is_call_of_name(call, maybe_stubs) and _passes_function(call, own_functions | remote):
            return "passes a function or a class to the candidate"
        if isinstance(call.func, ast.Attribute) and _is_call_of_name(call.func.value, maybe_stubs):
            return "calls a method of a value that the candidate returned"
    return None


def _reads_stdout(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="redirect_stdout" | "stdout") | ast.Name(id="redirect_stdout"):
            return True
    return False


def _is_call_of_name(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _passes_function(call: ast.Call, functions: set[str]) -> bool:
    """Return whether an argument contains a lambda, or one of these names without calling it."""
    parts = [part for argument in (*call.args, *call.keywords) for part in ast.walk(argument)]
    called = {
        part.func.id for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    }
    passed = {part.id for part in parts if isinstance(part, ast.Name)} - called
    return any(isinstance(part, ast.Lambda) for part in parts) or bool(passed & functions)

"""How each test is judged, decided from the test alone: the candidate has no say in it.

`Split`: one assert whose candidate's parts ("atoms") can be told apart (`splitting.py`). The candidate's
process evaluates the atoms and sends plain values; the trusted process evaluates what is demanded of them.
`Judged`: several statements, run in a process that the candidate cannot reach and that calls the candidate's
functions through a pipe (`inside/judge.py`). `InChild`: neither is possible; the test runs beside the
candidate, and its evidence could in principle be forged.
"""

import ast
import builtins
import symtable
from dataclasses import dataclass
from functools import lru_cache

from cocos.executor.judging.assert_messages import explained
from cocos.executor.judging.assert_split import Split, split_assert
from cocos.syntax import parse

# Modules that the tests of benchmarks use without importing them; taken from the test's side, never from the
# candidate's.
STANDARD_MODULES = frozenset(
    [
        "bisect",
        "cmath",
        "collections",
        "copy",
        "datetime",
        "decimal",
        "fractions",
        "functools",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "random",
        "re",
        "statistics",
        "string",
        "sys",
    ]
)
_BUILTINS = frozenset(dir(builtins)) | {"__name__"}


@dataclass(frozen=True)
class Judged:
    """Statements that a judge process runs after `imports`; calls of `remote` names go to the candidate."""

    source: str
    imports: str
    remote: tuple[str, ...]


@dataclass(frozen=True)
class InChild:
    """Statements that run beside the candidate, and why."""

    source: str
    reason: str


Plan = Split | Judged | InChild


@lru_cache(maxsize=1 << 16)
def plan_test(test: str, setup: str = "") -> Plan:
    """Decide how to judge one test of a program; one that does not parse is left to fail in the child."""
    try:
        tree, setup_tree = parse(test), parse(setup)
        symbols = symtable.symtable(test, "<test>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return InChild(test, "does not parse")
    imports = [node for node in ast.walk(setup_tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = _bound_by(imports)
    set_up = _bound_by(ast.walk(setup_tree)) - imported
    helpers = {n.name for n in ast.walk(setup_tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    match tree.body:
        case [ast.Assert(test=condition)]:
            not_safe = helpers | (imported - {"math", "sys"})
            if plan := split_assert(condition, not_safe, of_candidate=set_up):
                return plan
    free = _free_names(symbols) - _BUILTINS - imported
    modules = (
        free
        & STANDARD_MODULES
        & {
            node.value.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
    )
    remote = free - modules
    if reason := _why_not_judged(tree, remote, set_up):
        return InChild(explained(test, tree), reason)
    lines = [f"import {name}" for name in sorted(modules)] + [ast.unparse(node) for node in imports]
    return Judged(explained(test, tree), "\n".join(lines), tuple(sorted(remote)))


def _bound_by(nodes) -> set[str]:
    """Names that these statements bind at whatever level."""
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


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Names that the test reads from outside itself."""
    own = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }

    def read(scope: symtable.SymbolTable) -> set[str]:
        at_top = scope.get_type() == "module"
        names = {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (at_top or s.is_global())}
        return names.union(*map(read, scope.get_children()))

    return read(table) - own


def _why_not_judged(tree: ast.Module, remote: set[str], set_up: set[str]) -> str | None:
    """Why the judge, who can only call the candidate's functions with plain values, cannot have a test."""
    nodes = list(ast.walk(tree))
    if any(isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.Global)) for node in nodes):
        return "asynchronous, or rebinds globals"
    if any(
        isinstance(node, ast.Attribute) and node.attr in ("redirect_stdout", "stdout") for node in nodes
    ) or any(isinstance(node, ast.Name) and node.id == "redirect_stdout" for node in nodes):
        return "reads what the candidate prints"
    if not remote:
        return "the function under test cannot be told apart"
    if remote & set_up:
        return f"uses {', '.join(sorted(remote & set_up))} of the setup"
    if classes := {name for name in remote if name[:1].isupper() and "_" not in name}:
        return f"uses the candidate's class {', '.join(sorted(classes))}"
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    uses = {id(call.func) for call in calls} | {id(argument) for call in calls for argument in call.args}
    if any(isinstance(node, ast.Name) and node.id in remote and id(node) not in uses for node in nodes):
        return "uses the candidate's functions other than by calling them or handing them on"
    own_functions = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    proxies = remote | {node.arg for node in nodes if isinstance(node, ast.arg)}
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in proxies:
            parts = [part for argument in (*call.args, *call.keywords) for part in ast.walk(argument)]
            handed = {part.id for part in parts if isinstance(part, ast.Name)} - {
                part.func.id
                for part in parts
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
            }
            if any(isinstance(part, ast.Lambda) for part in parts) or handed & (own_functions | remote):
                return "hands the candidate something that is not a plain value"
        if isinstance(call.func, ast.Attribute) and _is_call_of(call.func.value, proxies):
            return "calls a method of what the candidate returned"
    return None


def _is_call_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names

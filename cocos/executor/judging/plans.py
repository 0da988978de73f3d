"""Plans, which say in which process each part of a test runs.

A plan depends on the test and the problem's setup, never on the candidate. There are three kinds:

`Split`     for asserts with one call each. The candidate's process evaluates the calls and sends plain
            values. The trusted process evaluates the conditions on them (`assert_split.py`).
`Driven`    for other tests. A process that the candidate cannot reach runs them statement by statement and
            asks the candidate's process for data (`inside/driver.py`).
`InChild`   if neither is possible. The test runs in the candidate's process, which could forge the evidence.

If a split test is undecided, because a value is not plain, its next plan is Driven. If a driven test is
undecided, its next plan is InChild, unless it could be split.
"""

import ast
import copy
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cocos.executor.judging.assert_split import Split, split_test
from cocos.executor.judging.in_child_reasons import NAMES_AT_RUN_TIME, why_in_child
from cocos.executor.judging.names import BUILTINS, bound_names, free_names, standard_imports
from cocos.executor.parser import parse, quiet


@dataclass(frozen=True, eq=False)  # hashed as a part of keys of caches
class Driven:
    """Plan for statements that are driven.

    Attributes:
        source: The statements.
        setup: Statements to run before them: imports, and the setup if the test uses its names.
        remote: Names that only the candidate defines.
        private: Names of the setup that the test reads.

    """

    source: str
    setup: str
    remote: tuple[str, ...]
    private: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)  # hashed as a part of keys of caches
class InChild:
    """Plan for statements that run in the candidate's process.

    Attributes:
        source: The statements.
        reason: Why the test can be neither split nor driven.
        is_programs_choice: What the program did is the reason.

    """

    source: str
    reason: str
    is_programs_choice: bool = False


Plan = Split | Driven | InChild
# Of what conditions use. The trusted process has these names.
_KNOWN_IMPORTS = frozenset(
    ["import math", "import sys", "from collections import Counter", "from collections import OrderedDict"]
)


@dataclass(frozen=True)
class _Setup:
    """Names in a problem's setup.

    Attributes:
        source: The setup.
        imports: Its import statements.
        imported: Names that it imports.
        bound: Other names that it binds, in any scope.
        shadowed: Names that it binds to something else than the standard object of this name.
        remote: Names of the candidate that its functions use; None if it uses such a name as it is run.
        reads: The names that the definition of each of its functions and variables reads.

    """

    source: str
    imports: tuple[str, ...]
    imported: frozenset[str]
    bound: frozenset[str]
    shadowed: frozenset[str]
    remote: frozenset[str] | None
    reads: dict[str, set[str]]


@lru_cache(maxsize=1 << 16)
def plan_test(test: str, setup: str = "", entry_point: str = "", may_split: bool = True) -> Plan:
    """Decide how to judge one test.

    Args:
        test: Source of the test. If it does not parse, its plan is InChild, and it raises when it is run.
        setup: Source that the problem runs before its tests, in the candidate's process.
        entry_point: Name that the candidate must define; never the builtin of that name. "" if unknown.
        may_split: The plan may be Split.

    """
    try:
        with quiet():
            return _plan(test, parse(test), _read_setup(setup), entry_point, may_split)
    except (SyntaxError, ValueError) as error:
        return InChild(test, f"does not parse: {error}")
    except (RecursionError, MemoryError):
        return InChild(test, "nested too deeply")


def next_plan(plan: Plan, test: str, setup: str, entry_point: str, reason: str) -> Plan:
    """Return the plan to try after `plan` left the test undecided; `plan` itself if there is none.

    Args:
        plan: The plan that was executed.
        test: Source of the test.
        setup: The problem's setup.
        entry_point: Name that the candidate must define, or "".
        reason: Why the test was undecided.

    """
    if isinstance(plan, Split):
        return plan_test(test, setup, entry_point, may_split=False)
    if isinstance(plan, Driven) and isinstance(plan_test(test, setup, entry_point), Driven):
        return InChild(test, reason)
    return plan


@lru_cache(maxsize=1 << 12)
def candidate_setup(setup: str, plans: tuple[Plan, ...], used: frozenset[str]) -> str:
    """Return the part of a setup that the candidate's process runs: without what only expectations read.

    Imports and classes always run there, and so does what needs the candidate.

    Args:
        setup: The setup.
        plans: The plans of all tests.
        used: Names that the candidate's code takes from elsewhere.

    """
    sources = [
        plan.source if isinstance(plan, InChild) else "".join(getattr(plan, "atoms", ())) for plan in plans
    ]
    needed = {*used, *re.findall(r"\w+", " ".join(sources))}
    try:
        body = parse(setup).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return setup  # and it raises when it is run
    bound = frozenset[str]().union(*map(touched_names, body))
    known = bound | _read_setup(setup).imported | BUILTINS
    kept: set[int] = set()
    while True:
        new = [
            node
            for node in body
            if id(node) not in kept
            and (
                isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef))
                or touched_names(node) & needed
                or (not isinstance(node, ast.FunctionDef) and not _names(node) <= known)
                or not (touched_names(node) or _names(node) & bound)
            )
        ]
        if not new:
            break
        for node in new:
            kept.add(id(node))
            needed |= _names(node)
    if len(kept) == len(body):
        return setup
    return ast.unparse(ast.Module([node for node in body if id(node) in kept], []))


def names_used(code: str, setup: str) -> frozenset[str]:
    """Return the names of a setup that the candidate's code takes from there."""
    try:
        with quiet():
            if not (bound := _read_setup(setup).bound):
                return frozenset()
            return frozenset(free_names(symtable.symtable(code, "<code>", "exec")) & bound)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def private_names(plans: Sequence[Plan]) -> frozenset[str]:
    """Return the names of a setup that driven tests read."""
    return frozenset().union(*(plan.private for plan in plans if isinstance(plan, Driven)))


def touched_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds, in any form, and those of what it changes in place."""
    names = bound_names(ast.walk(statement))
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=value, ctx=ast.Store()) | ast.Subscript(value=value, ctx=ast.Store()):
                names |= _names(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
                names |= _names(value)
    return names


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _plan(test: str, tree: ast.Module, setup: _Setup, entry_point: str, may_split: bool) -> Plan:
    free = free_names(symtable.symtable(test, "<test>", "exec"))
    elsewhere = BUILTINS | setup.imported | setup.bound
    nodes = list(ast.walk(tree))
    imports = standard_imports(nodes, free - elsewhere - {entry_point})
    candidate_names = (free - elsewhere - imports.keys()) | (free & {entry_point})
    names = free - setup.imported - setup.bound - NAMES_AT_RUN_TIME - {"__import__"}
    body = _unrolled(tree.body)
    match body:
        case [ast.Assert(test=condition)]:
            candidate_names = candidate_names or _first_called_builtin(condition, names)
    if may_split and (plan := split_test(body, candidate_names, set(setup.shadowed))):
        return plan
    lines = [imports[name] for name in sorted(imports)]
    private = free & setup.reads.keys() - {entry_point}
    while more := set[str]().union(*(setup.reads[n] for n in private)) & setup.reads.keys() - private:
        private |= more
    if not free & (setup.bound - {entry_point}):
        lines += setup.imports
    elif setup.remote is not None:
        lines.append(setup.source)
        candidate_names |= setup.remote
    else:
        return InChild(test, "uses names of a setup that needs the candidate")
    test_imports = (node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
    if reason := why_in_child(
        nodes, candidate_names, bound_names(test_imports) | setup.imported | imports.keys()
    ):
        return InChild(test, reason)
    remote = tuple(sorted(candidate_names))
    return Driven(test, "\n".join(lines), remote, frozenset(private))


def _unrolled(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a test function in place of its definition and its call.

    def check(candidate):
        assert candidate(1) == 2
    check(f)
    """
    imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    others = [node for node in body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    if any(ast.unparse(node) not in _KNOWN_IMPORTS for node in imports):
        return body
    match others:
        case [
            *before,
            ast.FunctionDef(
                name=name, args=ast.arguments(args=parameters, defaults=[]) as signature
            ) as function,
            ast.Expr(value=ast.Call(func=ast.Name(id=called), args=arguments, keywords=[])),
        ] if (
            name == called
            and len(parameters) == len(arguments)
            and all(isinstance(argument, ast.Name) for argument in arguments)
            and not (signature.vararg or signature.kwarg or signature.kwonlyargs or signature.posonlyargs)
            and not function.decorator_list
        ):
            renamed = {
                p.arg: a.id for p, a in zip(parameters, arguments, strict=True) if isinstance(a, ast.Name)
            }
            stored = {
                n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            inner = {n.arg for node in function.body for n in ast.walk(node) if isinstance(n, ast.arg)}
            if not (stored | inner) & {*renamed, *renamed.values()} and not inner & stored:
                return [*before, *map(_Renaming(renamed).visit, copy.deepcopy(function.body))]
    return others


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)


def _first_called_builtin(condition: ast.expr, names: set[str]) -> set[str]:
    """Return the function under test if it has the name of a builtin, as in `sum(10, 15) == 6`.

    It is taken to be the function that is called first.
    """
    called = [node.func for node in ast.walk(condition) if isinstance(node, ast.Call)]
    return {function.id for function in called[:1] if isinstance(function, ast.Name) and function.id in names}


@lru_cache(maxsize=1 << 12)
def _read_setup(source: str) -> _Setup:
    tree = parse(source)
    nodes = list(ast.walk(tree))
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = bound_names(imports)
    standard = bound_names(
        node
        for node in imports
        if (isinstance(node, ast.ImportFrom) and node.module == "collections" and not node.level)
        or (isinstance(node, ast.Import) and not any(alias.asname for alias in node.names))
    )
    bound = bound_names(nodes) - imported
    symbols = symtable.symtable(source, "<setup>", "exec")
    known = BUILTINS | standard_imports(nodes, free_names(symbols)).keys()
    at_once, ever = free_names(symbols, only_top=True) - known, free_names(symbols) - known
    return _Setup(
        source=source,
        imports=tuple(ast.unparse(node) for node in imports),
        imported=frozenset(imported),
        bound=frozenset(bound),
        shadowed=frozenset((imported | bound) - standard),
        remote=None if at_once else frozenset(ever),
        reads={name: _names(node) for node in tree.body for name in touched_names(node)},
    )

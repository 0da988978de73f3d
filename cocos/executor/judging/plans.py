"""Plans, which say in which process a test runs.

A plan depends on the test and the problem's setup. Of the candidate only the names matter that its code takes
from elsewhere (`plan_tests`). There are three kinds:

"driven"    the test runs in the driver, which the candidate cannot reach (`inside/driver.py`).
"in child"  the test needs the candidate's process: it runs there, and the candidate could forge its outcome.
"value"     an expression, whose value is wanted; the candidate's process evaluates it.

If a driven test is undecided, because the candidate would get something that cannot leave the driver, its
next plan is "in child".
"""

import ast
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cocos.executor.judging.in_child_reasons import NAMES_AT_RUN_TIME, why_in_child
from cocos.executor.judging.instrumented import instrumented
from cocos.executor.judging.names import BUILTINS, bound_names, free_names, standard_imports
from cocos.executor.parser import parse, quiet
from cocos.executor.verdicts import Program


@dataclass(frozen=True, eq=False)  # hashed as a part of keys of caches
class Plan:
    """Plan for a test.

    Attributes:
        source: Its statements.
        kind: "driven", "in child" or "value".
        remote: Names that only the candidate defines.
        private: Names of the setup that the test reads.
        binds: Names that the test binds at its top.
        reads: Names that it takes from elsewhere.
        is_plain: It can leave nothing behind in the driver.
        reads_clock: It may compare the time with what the program says.
        reason: Why it runs in the candidate's process.
        is_programs_choice: What the program did is the reason.

    """

    source: str
    kind: str = "driven"
    remote: tuple[str, ...] = ()
    private: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    is_plain: bool = True
    reads_clock: bool = False
    reason: str = ""
    is_programs_choice: bool = False


class Setups(NamedTuple):
    """A problem's setup, as the two processes of a job get it."""

    driver: str
    program: str


@dataclass(frozen=True)
class _Setup:
    """Names in a problem's setup.

    Attributes:
        imports: Its import statements.
        imported: Names that it imports.
        bound: Other names that it binds, in any scope.
        given: Names of its imports, classes and infinities, which programs may use.
        remote: Names of the candidate that it uses.
        reads: The names that the definition of each of its functions and variables reads.
        is_plain: It can leave nothing behind in the driver.

    """

    imports: tuple[str, ...]
    imported: frozenset[str]
    bound: frozenset[str]
    given: frozenset[str]
    remote: frozenset[str]
    reads: dict[str, set[str]]
    is_plain: bool


# Modules of the standard library that a test can import and use without a trace.
_PURE_WORDS = """ bisect cmath collections copy datetime decimal fractions functools heapq itertools json math
operator re statistics string textwrap typing """
_PURE = frozenset(_PURE_WORDS.split())
_CLOCKS = frozenset(("time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime"))
_IMPURE_WORDS = """ setattr delattr exec eval compile open __import__ globals vars input breakpoint getcontext
setcontext localcontext register cache_clear purge """
_IMPURE = frozenset(_IMPURE_WORDS.split())


@lru_cache(maxsize=1 << 16)
def plan_test(test: str, setup: str = "", entry_point: str = "") -> Plan:
    """Decide where to run one test.

    Args:
        test: Source of the test. If it does not parse, it runs in the child, and raises there.
        setup: Source that the problem runs before its tests.
        entry_point: Name that the candidate must define; never the builtin of that name. "" if unknown.

    """
    try:
        with quiet():
            return _plan(test, parse(test), _read_setup(setup), entry_point)
    except (SyntaxError, ValueError) as error:
        return in_child(Plan(test), test, f"does not parse: {error}")
    except (RecursionError, MemoryError):
        return in_child(Plan(test), test, "nested too deeply")


def in_child(plan: Plan, test: str, reason: str, is_programs_choice: bool = False) -> Plan:
    """Return the plan for a test that only the candidate's process can run.

    Args:
        plan: The plan that it had.
        test: Its source.
        reason: Why it runs there.
        is_programs_choice: What the program did is the reason.

    """
    return Plan(
        test,
        "in child",
        binds=plan.binds,
        reads=plan.reads,
        reason=reason,
        is_programs_choice=is_programs_choice,
    )


def together(plans: Sequence[Plan], tests: Sequence[str]) -> tuple[Plan, ...]:
    """Return the plans, with every test in the candidate's process that shares a name with one there."""
    found = list(plans)
    while True:
        there = [plan for plan in found if plan.kind == "in child"]
        binds = frozenset().union(*(plan.binds for plan in there))
        reads = frozenset().union(*(plan.reads for plan in there))
        shared = [
            number
            for number, plan in enumerate(found)
            if plan.kind == "driven" and (plan.reads & binds or plan.binds & reads)
        ]
        if not shared:
            return tuple(found)
        for number in shared:
            reason = "shares a name with a test that runs in the program's process"
            found[number] = in_child(found[number], tests[number], reason)


def value_plan(expression: str) -> Plan:
    """Return the plan for an expression whose value is wanted."""
    with quiet():
        compile(expression, "<test>", "eval")
    return Plan(expression, "value")


@lru_cache(maxsize=1 << 12)
def read_setups(setup: str, plans: tuple[Plan, ...], used: frozenset[str]) -> Setups:
    """Return the setup as the two processes of a job get it.

    The driver gets it if a test reads a name of it, else its imports. The candidate gets no part of it that
    only tests read.

    Args:
        setup: The setup.
        plans: The plans of all tests.
        used: Names that the candidate's code takes from elsewhere.

    """
    try:
        with quiet():
            is_read = any(plan.private for plan in plans)
            driver = setup if is_read else "\n".join(_read_setup(setup).imports)
            return Setups(instrumented(driver), candidate_setup(setup, plans, used))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Setups("", setup)  # and it raises when it is run


def candidate_setup(setup: str, plans: tuple[Plan, ...], used: frozenset[str]) -> str:
    """Return the part of a setup that the candidate's process runs: without what only expectations read.

    Imports and classes always run there, and so does what needs the candidate.

    Args:
        setup: The setup.
        plans: The plans of all tests.
        used: Names that the candidate's code takes from elsewhere.

    """
    sources = [plan.source for plan in plans if plan.kind != "driven"]
    needed = {*used, *re.findall(r"\w+", " ".join(sources))}
    body = parse(setup).body
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
                or _makes_class(node)
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


@lru_cache(maxsize=1 << 10)
def names_used(code: str) -> frozenset[str]:
    """Return the names that the candidate's code reads and does not define."""
    try:
        with quiet():
            return frozenset(free_names(symtable.symtable(code, "<code>", "exec")) - BUILTINS)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def plan_tests(program: Program) -> tuple[tuple[Plan, ...], frozenset[str]]:
    """Return the plan of each test of a program, and the names of the setup that it shares with its tests."""
    if program.has_expressions:
        return tuple(map(value_plan, program.test_list)), frozenset()
    plans = [plan_test(test, program.setup, program.entry_point) for test in program.test_list]
    if not any(plan.private or plan.binds for plan in plans):
        return together(plans, program.test_list), frozenset()
    used = names_used(program.code) - _read_setup(program.setup).given
    given = used & frozenset().union(*(plan.private for plan in plans))
    for number, plan in enumerate(plans):
        if plan.kind == "driven" and (shared := (plan.private | plan.binds) & used):
            reason = f"the program uses {min(shared)}, which the test or the setup defines"
            plans[number] = in_child(plan, program.test_list[number], reason, is_programs_choice=True)
    return together(plans, program.test_list), given


def _makes_class(statement: ast.stmt) -> bool:
    """Return whether a statement is like `Point = namedtuple("Point", "x y")`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Constant(value=text), *_])):
            return name == text
    return False


def _is_given(statement: ast.stmt) -> bool:
    """Return whether a program may use what a statement of the setup defines: it is no expected value.

    A class is none if it only holds what it is given: ListNode, TreeNode, Point.
    """
    if isinstance(statement, ast.ClassDef):
        return all(map(_only_holds, statement.body))
    return _makes_class(statement) or _is_infinity(statement)


def _only_holds(statement: ast.stmt) -> bool:
    match statement:
        case (
            ast.Pass()
            | ast.Expr(value=ast.Constant())
            | ast.AnnAssign(value=None | ast.Constant(value=None | 0))
        ):
            return True
        case ast.FunctionDef(name=name):
            return name in ("__init__", "__repr__", "__str__", "__eq__", "__lt__", "__hash__")
    return False


def _is_infinity(statement: ast.stmt) -> bool:
    """Return whether a statement is like `inf = float("inf")`."""
    match statement:
        case ast.Assign(
            value=ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" | "nan")])
        ):
            return True
        case ast.Assign(value=ast.Attribute(value=ast.Name(id="math"), attr="inf" | "nan")):
            return True
    return False


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


def _plan(test: str, tree: ast.Module, setup: _Setup, entry_point: str) -> Plan:
    free = free_names(symtable.symtable(test, "<test>", "exec"))
    elsewhere = BUILTINS | setup.imported | setup.bound
    nodes = list(ast.walk(tree))
    imports = standard_imports(nodes, free - elsewhere - {entry_point})
    candidate_names = (free - elsewhere - imports.keys()) | (free & {entry_point})
    match tree.body:
        case [ast.Assert(test=condition)]:
            names = free - setup.imported - setup.bound - NAMES_AT_RUN_TIME - {"__import__"}
            candidate_names = candidate_names or _first_called_builtin(condition, names)
    private = free & setup.reads.keys() - {entry_point}
    while more := set[str]().union(*(setup.reads[n] for n in private)) & setup.reads.keys() - private:
        private |= more
    if private or free & (setup.bound - {entry_point}):
        candidate_names |= setup.remote
    test_imports = (node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
    modules = bound_names(test_imports) | setup.imported | imports.keys()
    binds = frozenset(bound_names(tree.body).union(*map(_assigned, tree.body)))
    if reason := why_in_child(nodes, candidate_names, modules):
        return in_child(Plan(test, binds=binds, reads=frozenset(free)), test, reason)
    lines = [imports[name] for name in sorted(imports)]
    return Plan(
        "\n".join([*lines, instrumented(test)]),
        remote=tuple(sorted(candidate_names)),
        private=frozenset(private),
        binds=binds,
        reads=frozenset(free),
        is_plain=_is_plain([*nodes, *ast.walk(ast.parse("\n".join(lines)))]) and setup.is_plain,
        reads_clock=any(getattr(n, "attr", getattr(n, "id", "")) in _CLOCKS for n in nodes),
    )


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that an assignment, loop or block at the top binds."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()
    return bound_names(ast.walk(statement))


def _is_plain(nodes: list[ast.AST]) -> bool:
    """Return whether statements can leave nothing behind in the process that runs them."""
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                if not all(alias.name.split(".")[0] in _PURE for alias in aliases):
                    return False
            case ast.ImportFrom(module=module):
                if (module or "").split(".")[0] not in _PURE:
                    return False
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.ClassDef():
                return False
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _IMPURE:
                return False
    return True


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
    symbols = symtable.symtable(source, "<setup>", "exec")
    known = BUILTINS | standard_imports(nodes, free_names(symbols)).keys()
    return _Setup(
        imports=tuple(ast.unparse(node) for node in imports),
        imported=frozenset(imported),
        bound=frozenset(bound_names(nodes) - imported),
        given=frozenset(imported.union(*(touched_names(n) for n in tree.body if _is_given(n)))),
        remote=frozenset(free_names(symbols) - known),
        reads={name: _names(node) for node in tree.body for name in touched_names(node)},
        is_plain=_is_plain(nodes),
    )

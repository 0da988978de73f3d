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
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cocos.executor.inside.data_types import holds_expected
from cocos.executor.judging.in_child_reasons import NAMES_AT_RUN_TIME, why_in_child
from cocos.executor.judging.instrumented import instrumented
from cocos.executor.judging.names import BUILTINS, STANDARD_NAMES, bound_names, free_names, standard_imports
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
    """A problem's setup, as the two processes of a job get it.

    Attributes:
        driver: The driver's part.
        program: The program's part.
        shared: Names that both parts define.
        leaked: Names among these that a driven test reads: what it expects may follow from them.
        is_programs: The program's code is the reason.

    """

    driver: str
    program: str
    shared: frozenset[str] = frozenset()
    leaked: frozenset[str] = frozenset()
    is_programs: bool = False


@dataclass(frozen=True)
class _Setup:
    """Names in a problem's setup.

    Attributes:
        imports: Its import statements.
        imported: Names that it imports.
        bound: Other names that it binds, in any scope.
        remote: Names of the candidate that it uses.
        reads: The names that the definition of each of its functions and variables reads.
        is_plain: It can leave nothing behind in the driver.

    """

    imports: tuple[str, ...]
    imported: frozenset[str]
    bound: frozenset[str]
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


# What programs may use under a name of the setup.
_LIMITS = frozenset(("float('inf')", "float('-inf')", "float('nan')", "math.inf", "10 ** 9 + 7", "998244353"))
# Special methods that give nothing but what the object holds.
_HOLDING = frozenset(("__init__", "__post_init__", "__repr__", "__str__", "__eq__", "__lt__", "__hash__"))


@lru_cache(maxsize=1 << 16)
def plan_test(test: str, setup: str = "", entry_point: str = "", own: frozenset[str] = frozenset()) -> Plan:
    """Decide where to run one test.

    Args:
        test: Source of the test. If it does not parse, it runs in the child, and raises there.
        setup: Source that the problem runs before its tests.
        entry_point: Name that the candidate must define; never the builtin of that name. "" if unknown.
        own: Names of standard modules and classes that the candidate defines itself.

    """
    try:
        with quiet():
            return _plan(test, parse(test), _read_setup(setup), entry_point, own)
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
    names = plan.binds, plan.reads
    return Plan(test, "in child", (), frozenset(), *names, True, False, reason, is_programs_choice)


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
def read_setups(setup: str, plans: tuple[Plan, ...], used: frozenset[str], given: frozenset[str]) -> Setups:
    """Return the setup as the two processes of a job get it.

    The driver gets it if a test reads a name of it or it needs the candidate, else its imports. The candidate
    gets what is given, changes of modules, what its code uses, and what a test in its process names; with
    each of these, what it reads.

    Args:
        setup: The setup.
        plans: The plans of all tests.
        used: Names that the candidate's code takes from elsewhere.
        given: Names of the setup that programs may use.

    """
    try:
        with quiet():
            names = _read_setup(setup)
            private = frozenset[str]().union(*(plan.private for plan in plans))
            driver = setup if private or names.remote else "\n".join(names.imports)
            sources = [plan.source for plan in plans if plan.kind != "driven"]
            kept = _kept(parse(setup).body, names, {*used, *re.findall(r"\w+", " ".join(sources))}, given)
            shared = frozenset[str]().union(*map(touched_names, kept))
            sent = (touched_names(node) for node in kept if getattr(node, "name", "") not in given)
            leaked = (private - given).intersection(frozenset[str]().union(*sent))
            program = ast.unparse(ast.Module(kept, []))
            return Setups(instrumented(driver), program, shared, leaked, bool(leaked & used))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Setups("", setup)  # and it raises when it is run


def _kept(body: list[ast.stmt], setup: _Setup, needed: set[str], given: frozenset[str]) -> list[ast.stmt]:
    """Return the statements of a setup that the candidate's process runs."""
    elsewhere = setup.imported | BUILTINS
    kept: set[int] = set()
    while new := [
        node
        for node in body
        if id(node) not in kept
        and (
            isinstance(node, (ast.Import, ast.ImportFrom))
            or touched_names(node) & (needed | given)
            or touched_names(node) | _names(node) <= elsewhere
        )
    ]:
        for node in new:
            kept.add(id(node))
            needed |= _names(node)
    return [node for node in body if id(node) in kept]


@lru_cache(maxsize=1 << 10)
def names_of(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a candidate reads and others may bind, and the standard names that it defines."""
    try:
        with quiet():
            table = symtable.symtable(code, "<code>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(), frozenset()
    symbols = {symbol.get_name(): symbol for symbol in table.get_symbols()}
    own = frozenset(name for name in STANDARD_NAMES & symbols.keys() if symbols[name].is_namespace())
    imported = {name for name, symbol in symbols.items() if symbol.is_imported()}
    # A test may repeat a function of the task, as those of HumanEval/32 and 38 do: each side has its own.
    repeatable = {name for name, symbol in symbols.items() if symbol.is_namespace()}
    in_functions = free_names(table, in_functions=True) - imported - repeatable
    return frozenset((free_names(table) | in_functions) - BUILTINS), own


def plan_tests(program: Program) -> tuple[Plan, ...]:
    """Return the plan of each test of a program."""
    tests, setup = program.test_list, program.setup
    if program.has_expressions:
        return tuple(map(value_plan, tests))
    used, own = names_of(program.code)
    plans = [plan_test(test, setup, program.entry_point, own) for test in tests]
    used -= given_names(setup, tests)
    for number, plan in enumerate(plans):
        if plan.kind == "driven" and (shared := (plan.private | plan.binds) & used):
            reason = f"the program uses {min(shared)}, which the test or the setup defines"
            plans[number] = in_child(plan, tests[number], reason, is_programs_choice=True)
    return together(plans, tests)


@lru_cache(maxsize=1 << 12)
def given_names(setup: str, tests: tuple[str, ...]) -> frozenset[str]:
    """Return the names of a setup that programs may use: imports, and what gives nothing that is expected.

    Args:
        setup: The setup.
        tests: The tests.

    """
    try:
        with quiet():
            body, names = parse(setup).body, _read_setup(setup)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    given = set(names.imported)
    for node in body:
        if _is_given(node):
            given |= touched_names(node)
        elif isinstance(node, ast.ClassDef):
            others = (ast.unparse(other) for other in body if other is not node)
            words = {*re.findall(r"\w+", " ".join((*tests, *others)))}
            source = ast.unparse(node)
            reads = free_names(symtable.symtable(source, "<class>", "exec"))
            holds = "slots" not in source and all(_only_holds(part, words) for part in node.body)
            if holds and reads & names.bound <= given:
                given.add(node.name)
        elif not isinstance(node, ast.FunctionDef) and any(map(holds_expected, ast.walk(node))):
            given -= _names(node)  # of a module, or of a class, to which it may give the value
    return frozenset(given)


def _is_given(statement: ast.stmt) -> bool:
    """Return whether a statement names an infinity or a modulus, or is `Point = namedtuple("Point", "x")`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return ast.unparse(value) in _LIMITS or ast.unparse(value).partition("(")[2].startswith(
                repr(name)
            )
    return False


def _only_holds(part: ast.stmt, words: set[str]) -> bool:
    """Return whether a part of a class can give nothing that a test expects.

    Args:
        part: A statement of the class's body.
        words: The words of the tests, and of the rest of the setup.

    """
    match part:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name):
            is_unused = name in _HOLDING or (name not in words and name[:2] != "__")
            return is_unused and not any(_computes(node, name) for node in ast.walk(part))
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            nodes = ast.walk(value) if value else ()
            return not any(isinstance(node, ast.Lambda) or holds_expected(node) for node in nodes)
    return False


def _computes(node: ast.AST, method: str) -> bool:
    """Return whether a part of a method may give what the object does not hold."""
    if method in ("__repr__", "__str__"):
        return isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Mod))
    return holds_expected(node) or (method[-6:] == "init__" and isinstance(node, ast.BinOp))


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


def _plan(test: str, tree: ast.Module, setup: _Setup, entry_point: str, own: frozenset[str]) -> Plan:
    free = free_names(symtable.symtable(test, "<test>", "exec"))
    elsewhere = BUILTINS | setup.imported | setup.bound
    nodes = list(ast.walk(tree))
    imports = standard_imports(nodes, free - elsewhere - {entry_point} - own)
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
    candidate_names |= (_read_early(tree.body) & binds) - elsewhere - modules
    if reason := why_in_child(nodes, candidate_names, modules, all(map(_only_defines, tree.body))):
        return in_child(Plan(test, binds=binds, reads=frozenset(free)), test, reason)
    lines = [imports[name] for name in sorted(imports)]
    return Plan(
        "\n".join([*lines, instrumented(test)]),
        remote=tuple(sorted(candidate_names | setup.remote)),
        private=frozenset(private),
        binds=binds,
        reads=frozenset(free),
        is_plain=_is_plain([*nodes, *ast.walk(ast.parse("\n".join(lines)))]) and setup.is_plain,
        reads_clock=any(getattr(n, "attr", getattr(n, "id", "")) in _CLOCKS for n in nodes),
    )


def _only_defines(statement: ast.stmt) -> bool:
    """Return whether a statement at the top of a test runs nothing: it can do without the candidate."""
    match statement:
        case ast.Import(names=aliases):
            return all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in aliases)
        case ast.ImportFrom(module=module):
            return (module or "").split(".")[0] in sys.stdlib_module_names
        case ast.Assign() | ast.AnnAssign() | ast.Expr():
            return not any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return isinstance(statement, (ast.FunctionDef, ast.Pass))


def _read_early(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements may read before they bind them, as in `fib = memo(fib)`."""
    early: set[str] = set()
    bound: set[str] = set()
    for statement in body:
        binds = bound_names(ast.walk(statement))
        is_assignment = isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        early |= _names(statement) - bound - (set() if is_assignment else binds)
        bound |= set() if isinstance(statement, (ast.If, ast.Try, ast.While)) else binds
    return early


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
    imports = (ast.Import, ast.ImportFrom)
    imported = bound_names(node for node in nodes if isinstance(node, imports))
    symbols = symtable.symtable(source, "<setup>", "exec")
    known = BUILTINS | standard_imports(nodes, free_names(symbols)).keys()
    return _Setup(
        imports=tuple(ast.unparse(node) for node in tree.body if isinstance(node, imports)),
        imported=frozenset(imported),
        bound=frozenset(bound_names(nodes) - imported),
        remote=frozenset(free_names(symbols) - known),
        reads={name: _names(node) for node in tree.body for name in touched_names(node)},
        is_plain=_is_plain(nodes),
    )

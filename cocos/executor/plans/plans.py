"""Plans, which say in which process a test runs.

A plan depends on the test and the problem's setup. Of the candidate only the names matter that its code takes
from elsewhere (`plan_tests`). There are four kinds:

"driven"    the test runs in the driver, which the candidate cannot reach (`inside/driver.py`).
"in child"  the test needs the candidate's process: it runs there, and the candidate could forge its outcome.
"value"     an expression, whose value is wanted; the candidate's process evaluates it.
"script"    an input of the whole program; its process runs anew for each (`inside/scripts.py`).

If a driven test is undecided, because the candidate would get something that cannot leave the driver, its
next plan is "in child".
"""

import ast
import re
import symtable
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cocos.executor.inside.marks import UNMARKED, Mark, Reason
from cocos.executor.parser import parse, quiet
from cocos.executor.plans.instrumented import instrumented
from cocos.executor.plans.names import (
    BUILTINS,
    CodeNames,
    bound_names,
    definitions_in,
    free_names,
    is_plain,
    names_in,
    names_of,
    replaced_names,
    standard_imports,
    touched_names,
)
from cocos.executor.plans.needs import NAMES_AT_RUN_TIME, why_in_child
from cocos.executor.plans.setups import (
    SetupNames,
    Setups,
    classes_with_state,
    given_names,
    read_names,
    read_setups,
)
from cocos.executor.verdicts import Program


@dataclass(frozen=True)
class Plan:
    """Plan for a test.

    Attributes:
        source: Its statements.
        kind: "driven", "in child", "value" or "script".
        remote: Names that only the candidate defines.
        helpers: Those among them that are standard names, beside another one: the candidate replaces what
            the test computes with.
        private: Names of the setup that the test reads.
        binds: Names that the test binds at its top.
        replaces: Those of them to which it gives a function or None.
        changes: These, and the names of what it changes in place.
        reads: Names that it takes from elsewhere.
        is_plain: It can leave nothing behind in the driver.
        reads_clock: It may compare the time with what the program says.
        mark: Why it runs in the candidate's process.

    """

    source: str
    kind: str = "driven"
    remote: tuple[str, ...] = ()
    helpers: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    replaces: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    is_plain: bool = True
    reads_clock: bool = False
    mark: Mark = UNMARKED


_CASES = re.compile(r"^class (\w+)\(.*TestCase", re.MULTILINE)
_MAIN = re.compile(r"\bunittest\.main\([^()]*\)")
_RUN = "unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, [{}])).debug()"
_CLOCKS = frozenset(("time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime"))


@lru_cache(maxsize=1 << 16)
def plan_test(
    test: str, setup: str = "", entry_point: str = "", own: frozenset[str] = frozenset(), draws: bool = True
) -> Plan:
    """Decide where to run one test.

    Args:
        test: Source of the test. If it does not parse, it runs in the child, and raises there.
        setup: Source that the problem runs before its tests.
        entry_point: Name that the candidate must define; never the builtin of that name. "" if unknown.
        own: Names of standard modules and classes that the candidate defines itself.
        draws: The candidate may draw random numbers.

    """
    try:
        with quiet():
            if "unittest.main" in test:  # which would end the process
                cases = ", ".join(_CASES.findall(test))
                test = _MAIN.sub(_RUN.format(cases), test)
            return _plan(test, parse(test), read_names(setup), entry_point, own, draws)
    except (SyntaxError, ValueError) as error:
        return in_child(Plan(test), test, Mark(Reason.SYNTAX.format(error)))
    except (RecursionError, MemoryError):
        return in_child(Plan(test), test, Mark(Reason.DEPTH))


def in_child(plan: Plan, test: str, mark: Mark) -> Plan:
    """Return the plan for a test that only the candidate's process can run.

    Args:
        plan: The plan that it had.
        test: Its source.
        mark: Why it runs there.

    """
    known = Plan(test, "in child", plan.remote, binds=plan.binds, changes=plan.changes, reads=plan.reads)
    return replace(known, mark=mark)


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
            found[number] = in_child(found[number], tests[number], Mark(Reason.SHARED_NAME))


def value_plan(expression: str) -> Plan:
    """Return the plan for an expression whose value is wanted."""
    with quiet():
        compile(expression, "<test>", "eval")
    return Plan(expression, "value")


def plan_tests(program: Program) -> tuple[Plan, ...]:
    """Return the plan of each test of a program."""
    tests, setup = program.test_list, program.setup
    if program.has_expressions:
        return tuple(map(value_plan, tests))
    names = names_of(program.code)
    draws = "random" in program.code
    plans = [plan_test(test, setup, program.entry_point, names.standard, draws) for test in tests]
    used = names.used - given_names(setup, tests)
    state = names.used & classes_with_state(setup, program.code, tests)
    for number, (plan, test) in enumerate(zip(plans, tests, strict=True)):
        if plan.kind != "driven":
            continue
        shared = (plan.private | plan.binds) & used
        if again := _bound_again(plan, test, program, names):
            plans[number] = in_child(plan, test, Mark(Reason.OTHER_MEANING.format(min(again))))
        elif state:
            is_named = any(name in test for name in state)
            mark = Mark(Reason.CHANGING_CLASS.format(min(state)), not is_named)
            plans[number] = in_child(plan, test, mark)
        elif shared:
            plans[number] = in_child(plan, test, Mark(Reason.USED_NAME.format(min(shared)), True))
    return together(plans, tests)


def helpers_of(plans: Sequence[Plan]) -> frozenset[str]:
    """Return the helpers of the tests that are the subject of none of them."""
    subjects = frozenset[str]().union(*(set(plan.remote) - plan.helpers for plan in plans))
    return frozenset[str]().union(*(plan.helpers for plan in plans)) - subjects


def split_setup(program: Program, plans: tuple[Plan, ...]) -> Setups:
    """Return the setup of a program whose tests have these plans, as the two processes get it."""
    if plans[0].kind == "script":
        return Setups("", "")
    private = frozenset[str]().union(*(plan.private for plan in plans))
    in_child = " ".join(plan.source for plan in plans if plan.kind != "driven")
    names, setup = names_of(program.code), program.setup
    used = names.used | (names.builtins & _replaced_by(setup))
    found = read_setups(setup, private, in_child, used, given_names(setup, program.test_list))
    return found._replace(driver="\n".join([*names.imports, found.driver])) if names.imports else found


def _bound_again(plan: Plan, test: str, program: Program, names: CodeNames) -> set[str]:
    """Return names of a program that a test binds to something else, and builtins that the setup does."""
    again = set((plan.replaces | _replaced_by(program.setup)) & names.builtins)
    for name in plan.binds & names.defined - {program.entry_point}:
        if not _is_alike(definitions_in(test).get(name), definitions_in(program.code).get(name), name):
            again.add(name)
    return again


def _is_alike(new: str | None, old: str | None, name: str) -> bool:
    """Return whether a test gives a name what it has in the program: a module is as good as its class."""
    if new is None or old is None:  # a star imports it in the program, and so may the test
        return new is not None and not new.startswith("def ")
    return new == old or f"{new}.{name}" == old or f"{old}.{name}" == new


def _replaced_by(setup: str) -> frozenset[str]:
    """Return the names to which a setup gives a function or None; none if it does not parse."""
    try:
        return read_names(setup).replaces
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _plan(
    test: str, tree: ast.Module, setup: SetupNames, entry_point: str, own: frozenset[str], draws: bool
) -> Plan:
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
    remote = tuple(sorted(candidate_names | setup.remote))
    reason = why_in_child(nodes, candidate_names, modules, all(map(_only_defines, tree.body)), draws)
    of_helpers = [setup.reasons[name] for name in sorted(private & setup.reasons.keys())]
    if reason := reason or next(iter(of_helpers), None):
        plan = Plan(test, remote=remote, binds=binds, changes=binds, reads=frozenset(free))
        return in_child(plan, test, Mark(reason))
    lines = [imports[name] for name in sorted(imports)]
    return Plan(
        "\n".join([*lines, instrumented(test, is_main=True)]),
        remote=remote,
        helpers=frozenset(own & candidate_names - {entry_point} if candidate_names - own else ()),
        private=frozenset(private),
        binds=binds,
        replaces=frozenset(replaced_names(tree.body)),
        changes=binds.union(*map(touched_names, tree.body)),
        reads=frozenset(free),
        is_plain=is_plain([*nodes, *ast.walk(ast.parse("\n".join(lines)))]) and setup.is_plain,
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
        early |= names_in(statement) - bound - (set() if is_assignment else binds)
        bound |= set() if isinstance(statement, (ast.If, ast.Try, ast.While)) else binds
    return early


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that an assignment, loop or block at the top binds."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()
    return bound_names(ast.walk(statement))


def _first_called_builtin(condition: ast.expr, names: set[str]) -> set[str]:
    """Return the function under test if it has the name of a builtin, as in `sum(10, 15) == 6`.

    It is taken to be the function that is called first.
    """
    called = [node.func for node in ast.walk(condition) if isinstance(node, ast.Call)]
    return {function.id for function in called[:1] if isinstance(function, ast.Name) and function.id in names}

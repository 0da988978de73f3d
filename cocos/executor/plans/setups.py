"""A problem's setup, as the two processes of a job get it.

The driver runs the setup if a test reads a name of it. The program's process gets only what it needs, because
a test may expect what follows from the rest.
"""

import ast
import re
import symtable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cocos.executor.inside.marks import UNMARKED, Mark, Reason, holds_expected, may_be_expected
from cocos.executor.parser import parse, quiet
from cocos.executor.plans.instrumented import instrumented
from cocos.executor.plans.names import (
    BUILTINS,
    bound_names,
    free_names,
    is_plain,
    is_text,
    names_in,
    replaced_names,
    standard_imports,
    touched_names,
)
from cocos.executor.plans.needs import why_in_child


class Setups(NamedTuple):
    """A problem's setup, as the two processes of a job get it.

    Attributes:
        driver: The driver's part.
        program: The program's part.
        shared: Names that both parts define.
        mark: The program gets a name that a driven test reads: what it expects may follow from that.

    """

    driver: str
    program: str
    shared: frozenset[str] = frozenset()
    mark: Mark = UNMARKED


@dataclass(frozen=True)
class SetupNames:
    """Names in a problem's setup.

    Attributes:
        imported: Names that it imports.
        bound: Other names that it binds.
        remote: Names of the candidate that it uses.
        reads: The names that the definition of each of its functions and variables reads.
        reasons: Why what uses one of its functions or classes can only run in the candidate's process.
        replaces: Names to which it gives a function or None.
        is_plain: It can leave nothing behind in the driver.

    """

    imported: frozenset[str]
    bound: frozenset[str]
    remote: frozenset[str]
    reads: dict[str, set[str]]
    reasons: dict[str, str]
    replaces: frozenset[str]
    is_plain: bool


# What programs may use under a name of the setup.
_LIMITS = frozenset(("float('inf')", "float('-inf')", "float('nan')", "math.inf", "10 ** 9 + 7", "998244353"))
_MAKERS = frozenset(
    ("namedtuple", "NamedTuple", "make_dataclass", "Enum", "IntEnum", "Flag", "IntFlag", "TypeVar")
)
# What a class of the setup may call for what its instances hold, and what it may not contain for that.
_EMPTY = frozenset(
    ("list", "dict", "set", "tuple", "deque", "defaultdict", "super", "__init__", "append", "isinstance")
)
_SHOWING = _EMPTY | {"str", "repr", "format", "join", "map", "len", "type", "hash", "id", "enumerate", "zip"}
_LOOPS = (ast.For, ast.While, ast.AugAssign, ast.Slice)
_COMPUTING = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Special methods that give nothing but what the object holds.
_HOLDING = frozenset(("__init__", "__post_init__", "__repr__", "__str__", "__eq__", "__lt__", "__hash__"))


@lru_cache(maxsize=1 << 12)
def read_names(source: str) -> SetupNames:
    """Return the names in a setup; raise a SyntaxError or ValueError if it does not parse."""
    tree = parse(source)
    nodes = list(ast.walk(tree))
    imports = (ast.Import, ast.ImportFrom)
    imported = bound_names(node for node in nodes if isinstance(node, imports))
    symbols = symtable.symtable(source, "<setup>", "exec")
    known = BUILTINS | standard_imports(nodes, free_names(symbols)).keys()
    remote = frozenset(free_names(symbols) - known)
    bound = {symbol.get_name() for symbol in symbols.get_symbols() if symbol.is_assigned()}
    declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    definitions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    reasons = {
        node.name: why_in_child([tree, *ast.walk(node)], {*remote, ""}, imported, only_defines=False)
        for node in definitions
    }
    return SetupNames(
        imported=frozenset(imported),
        bound=frozenset((bound | declared) - imported),
        remote=remote,
        reasons={name: reason for name, reason in reasons.items() if reason},
        replaces=frozenset(replaced_names(tree.body)),
        reads={name: names_in(node) for node in tree.body for name in touched_names(node)},
        is_plain=is_plain(nodes),
    )


@lru_cache(maxsize=1 << 12)
def read_setups(
    setup: str, private: frozenset[str], in_child: str, used: frozenset[str], given: frozenset[str]
) -> Setups:
    """Return the setup as the two processes of a job get it.

    The driver gets it if a test reads a name of it or it needs the candidate, else its imports and what it
    changes in modules. The candidate gets these as well, what is given, what its code uses, and what a test
    in its process names; with each of these, what it reads.

    Args:
        setup: The setup.
        private: Names of it that driven tests read.
        in_child: The sources of the tests that run in the candidate's process.
        used: Names that the candidate's code takes from elsewhere.
        given: Names of the setup that programs may use.

    """
    try:
        with quiet():
            names = read_names(setup)
            body = parse(setup).body
            driver = setup
            if not (private or names.remote):
                driver = ast.unparse(ast.Module(_kept(body, names, set(), frozenset()), []))
            kept = _kept(body, names, {*used, *re.findall(r"\w+", in_child)}, given)
            shared = frozenset[str]().union(*map(touched_names, kept))
            sent = (touched_names(node) for node in kept if getattr(node, "name", "") not in given)
            leaked = (private - given).intersection(frozenset[str]().union(*sent))
            leaked |= frozenset[str]().union(*map(_given_to_modules, kept))
            program = ast.unparse(ast.Module(kept, []))
            mark = Mark(Reason.GETS_SETUP.format(min(leaked)), bool(leaked & used)) if leaked else UNMARKED
            return Setups(instrumented(driver), program, shared, mark)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Setups("", setup)  # and it raises when it is run


def _kept(body: list[ast.stmt], setup: SetupNames, needed: set[str], given: frozenset[str]) -> list[ast.stmt]:
    """Return the statements of a setup that the candidate's process runs."""
    elsewhere = setup.imported | BUILTINS
    kept: set[int] = set()
    while new := [
        node
        for node in body
        if id(node) not in kept
        and not is_text(node)
        and (
            isinstance(node, (ast.Import, ast.ImportFrom))
            or touched_names(node) & (needed | given)
            or (touched_names(node) <= elsewhere and _names_from_elsewhere(node) <= elsewhere)
        )
    ]:
        for node in new:
            kept.add(id(node))
            needed |= names_in(node)
    return [node for node in body if id(node) in kept]


def _names_from_elsewhere(node: ast.AST) -> set[str]:
    return free_names(symtable.symtable(ast.unparse(node), "<statement>", "exec"))


@lru_cache(maxsize=1 << 12)
def given_names(setup: str, tests: tuple[str, ...]) -> frozenset[str]:
    """Return the names of a setup that programs may use: imports, and what gives nothing that is expected.

    Args:
        setup: The setup.
        tests: The tests.

    """
    try:
        with quiet():
            body, names = parse(setup).body, read_names(setup)
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
            reads = _names_from_elsewhere(node)
            header = [*node.decorator_list, *node.bases, *node.keywords]
            holds = "slots" not in source and not any(holds_expected(n) for h in header for n in ast.walk(h))
            holds = holds and all(_only_holds(part, words) for part in node.body)
            if holds and reads & names.bound <= given:
                given.add(node.name)
        elif not isinstance(node, ast.FunctionDef) and any(map(holds_expected, ast.walk(node))):
            given -= names_in(node)  # of a module, or of a class, to which it may give the value
    return frozenset(given)


def _given_to_modules(statement: ast.stmt) -> set[str]:
    """Return the modules to which an assignment gives a value, as `math.WANT = 5` does."""
    match statement:
        case ast.Assign([ast.Attribute() | ast.Subscript() as target], value) if _has_number(value):
            return names_in(target)
    return set()


def _has_number(value: ast.expr) -> bool:
    """Return whether a value has a number that a test may expect."""
    constants = (node.value for node in ast.walk(value) if isinstance(node, ast.Constant))
    return any(may_be_expected(constant) for constant in constants if not isinstance(constant, str))


@lru_cache(maxsize=1 << 12)
def classes_with_state(setup: str, code: str, tests: tuple[str, ...]) -> frozenset[str]:
    """Return the classes of a setup that have attributes which change: they must be one class for all."""
    if "class " not in setup:
        return frozenset()
    try:
        with quiet():
            body = parse(setup).body
            changed = set[str]().union(
                *(_owners_of_changed(parse(source)) for source in (setup, code, *tests))
            )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(
        node.name
        for node in body
        if isinstance(node, ast.ClassDef)
        and (node.name in changed or "cls" in _owners_of_changed(node) or any(map(_is_container, node.body)))
    )


def _owners_of_changed(tree: ast.AST) -> set[str]:
    """Return the names of which a source assigns or deletes an attribute."""
    changed = (ast.Store, ast.Del)
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, changed))
    return {node.value.id for node in nodes if isinstance(node.value, ast.Name)}


def _is_container(part: ast.stmt) -> bool:
    """Return whether a part of a class is an attribute that can change in place."""
    match part:
        case ast.Assign([ast.Name(name)], ast.List() | ast.Dict() | ast.Set()):
            return name[:2] != "__"
    return False


def _is_given(statement: ast.stmt) -> bool:
    """Return whether a statement names an infinity or a modulus, or is `Point = namedtuple("Point", "x")`."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) if ast.unparse(value) in _LIMITS:
            return True
        case ast.Assign([ast.Name(name)], ast.Call(func, [ast.Constant(own), *members], more)) if own == name:
            others = (node for word in more for node in ast.walk(word))
            is_known = ast.unparse(func).rpartition(".")[2] in _MAKERS
            return is_known and not any(map(holds_expected, others)) and not any(map(_has_number, members))
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
            return not any(isinstance(node, _COMPUTING) or holds_expected(node) for node in nodes)
    return False


def _computes(node: ast.AST, method: str) -> bool:
    """Return whether a part of a method may give what the object does not hold."""
    function = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    if method in ("__repr__", "__str__", "__hash__"):
        is_sum = isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Mod))
        return is_sum or bool(function and function not in _SHOWING)
    if method[-6:] == "init__" and (
        isinstance(node, (ast.BinOp, *_COMPUTING, *_LOOPS)) or (function and function not in _EMPTY)
    ):
        return True
    return holds_expected(node)

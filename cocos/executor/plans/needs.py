"""Reasons why a test can only run in the candidate's process.

The driver works with the candidate's functions and objects from another process. It cannot share the rest of
the process with them: standard streams, modules and their state, the event loop, threads.
"""

import ast

from cocos.executor.inside.marks import Reason
from cocos.executor.plans.names import bound_names, names_in

NAMES_AT_RUN_TIME = frozenset(["eval", "exec", "globals", "locals", "vars", "modules"])
_STREAMS = "stdin stdout stderr redirect_stdout redirect_stderr capsys displayhook"
_ASYNC = "asyncio run_until_complete"
_THREADS = "threading _thread Thread ThreadPoolExecutor ProcessPoolExecutor concurrent multiprocessing"
_STATE = """ argv seed setstate getstate environ putenv chdir setrecursionlimit setlocale signal
set_int_max_str_digits getcontext setcontext localcontext catch_warnings simplefilter filterwarnings
resetwarnings assertLogs assertNoLogs assertWarns getLogger setrlimit settrace setprofile meta_path path_hooks
field_size_limit __builtins__ seterr errstate set_printoptions """
_COSTS = """ process_time process_time_ns thread_time thread_time_ns CLOCK_PROCESS_CPUTIME_ID
CLOCK_THREAD_CPUTIME_ID getrusage tracemalloc cProfile psutil """
_MEMORY = "id shares_memory may_share_memory weakref getrefcount get_referrers"
_TRACES = "__traceback__ format_exc print_exc extract_tb walk_tb"
_OBJECTS = "dictConfig fileConfig DictConfigurator"
_PICKLES = "pickle cPickle _pickle shelve marshal dill joblib cloudpickle allow_pickle"
_PANDAS = "pandas pd"
_SOURCES = """ inspect getsource signature getfullargspec __annotations__ __code__ __globals__ __closure__
__base__ __subclasses__ __abstractmethods__ __slots__ """
_REASONS = {
    Reason.STREAMS: _STREAMS,
    Reason.PATCHES: "mock patch monkeypatch MagicMock",
    Reason.ASYNCHRONOUS: _ASYNC,
    Reason.THREADS: _THREADS,
    Reason.STATE: _STATE,
    Reason.COSTS: _COSTS,
    Reason.MEMORY: _MEMORY,
    Reason.TRACES: _TRACES,
    Reason.NAMED_OBJECTS: _OBJECTS,
    Reason.RUN_TIME_NAMES: " ".join(NAMES_AT_RUN_TIME),
    Reason.PICKLES: _PICKLES,
    Reason.PANDAS: _PANDAS,
    Reason.SOURCES: _SOURCES,
}
_WORDS = {word: reason for reason, words in _REASONS.items() for word in words.split()}
# A candidate may define `seed` or `signature`, but nobody defines a redirect_stdout.
_NEVER_OWN = frozenset(f"{_STREAMS} {_ASYNC} {_THREADS}".split())
# Methods have such names too: a reason as names, and as attributes of modules.
_METHODS = frozenset(("eval", "exec", "id", "inspect", "modules", "patch", "seed", "signal", "signature"))
_MAINS = frozenset(("main", "testmod", "TextTestRunner"))


def why_in_child(
    nodes: list[ast.AST],
    candidate_names: set[str],
    imported: set[str],
    only_defines: bool,
    draws: bool = True,
) -> str | None:
    """Return why the driver cannot run a test, or None if it can.

    Args:
        nodes: Every node of the test's tree.
        candidate_names: Names in it that the candidate defines.
        imported: Names of modules, or of what is imported from them.
        only_defines: Its statements run nothing.
        draws: The candidate may draw random numbers: otherwise a seed is the test's own affair.

    """
    if not candidate_names and not only_defines:
        return Reason.NO_NAME
    modules = imported | {"builtins"}
    own = (candidate_names - _NEVER_OWN) | (set() if draws else {"seed"})
    bound = bound_names(node for node in nodes if isinstance(node, ast.Name))
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    top_level = getattr(nodes[0], "body", ())  # a `global` there names a variable of the candidate
    imports = bound_names(node for node in nodes if isinstance(node, ast.Import))
    in_attributes = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        reason: str | None = None
        match node:
            case ast.Constant() | ast.expr_context() | ast.operator() | ast.cmpop():
                continue  # most nodes of a long test
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                reason = Reason.ASYNCHRONOUS
            case ast.Global(names=names) if node in top_level or not _bound_at_top(nodes[0]).issuperset(
                names
            ):
                reason = Reason.GLOBALS
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                module = getattr(node, "module", None) or ""
                words = [*module.split("."), *(word for alias in aliases for word in alias.name.split("."))]
                reason = next((_WORDS[word] for word in words if word in _WORDS and word not in own), None)
            case (
                ast.Attribute(ctx=ast.Store() | ast.Del(), value=value)
                | ast.Subscript(
                    ctx=ast.Store() | ast.Del(), value=ast.Attribute(attr="__dict__", value=value)
                )
                | ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[value, *_])
            ) if _root(value) in modules:
                reason = Reason.CHANGED_MODULE.format(_root(value))
            case ast.Attribute(attr=word, value=value) if word in _WORDS and word not in own:
                is_method = word in _METHODS and _root(value) not in modules
                reason = None if is_method else _WORDS[word]
            case ast.Name(id=word) if word in _WORDS and word not in own | bound:
                reason = _WORDS[word]
            case ast.Attribute(attr=word, value=ast.Name(id=name)) if word in _MAINS and name in modules:
                reason = Reason.FRAMEWORK
            case ast.Name(id=name) if name in imports and id(node) not in in_attributes:
                reason = Reason.GIVEN_MODULE.format(name)
            case ast.Attribute(attr="__dict__", value=value) if _root(value) in modules:
                reason = Reason.GIVEN_MODULE.format(_root(value))
            case ast.MatchClass(cls=ast.Name(id=name)) if name in candidate_names:
                reason = Reason.MATCHED_CLASS
            case ast.ClassDef(bases=bases, keywords=keywords) if any(
                names_in(part) & candidate_names for part in (*bases, *keywords)
            ):
                reason = Reason.DERIVED_CLASS
        if reason:
            return reason
    return None


def _root(value: ast.expr) -> str:
    """Return the name at the begin of `name.x.y`, or ""."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return getattr(value, "id", "")


def _bound_at_top(module: ast.AST) -> set[str]:
    """Return the names that a test itself binds outside of functions and classes."""
    names: set[str] = set()
    todo = [module]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            todo += ast.iter_child_nodes(node)
    return names

"""Reasons why a test can only run in the candidate's process.

The judge works with the candidate's functions and objects from another process. It cannot share the rest of
the process with them: standard streams, modules and their state, the event loop, threads.
"""

import ast

_STREAMS = {"stdin", "stdout", "stderr", "redirect_stdout", "redirect_stderr", "capsys", "displayhook"}
_PATCHES = {"mock", "patch", "monkeypatch", "MagicMock"}
_ASYNC = {"asyncio", "run_until_complete"}
_THREADS = {
    "threading",
    "Thread",
    "ThreadPoolExecutor",
    "ProcessPoolExecutor",
    "concurrent",
    "multiprocessing",
}
_STATE = {
    *(
        "seed",
        "setstate",
        "getstate",
        "environ",
        "putenv",
        "chdir",
        "setrecursionlimit",
        "setlocale",
        "signal",
    ),
    *("set_int_max_str_digits", "getcontext", "setcontext", "localcontext", "catch_warnings", "simplefilter"),
    *("assertLogs", "assertNoLogs", "assertWarns", "getLogger"),
}
_NAMES_AT_RUN_TIME = {"eval", "exec", "globals", "locals", "vars", "__import__", "import_module", "modules"}
_SOURCES = {"inspect", "getsource", "signature", "getfullargspec", "__code__", "__globals__", "__closure__"}
_MAINS = {"unittest.main", "pytest.main", "doctest.testmod"}
_REASONS = (
    (_STREAMS, "reads or replaces the standard streams"),
    (_PATCHES, "patches what the candidate uses"),
    (_ASYNC, "is asynchronous"),
    (_THREADS, "starts threads or processes"),
    (_STATE, "reads or changes the state of the process"),
    (_NAMES_AT_RUN_TIME, "looks up names at run time"),
    (_SOURCES, "reads the candidate's source or signatures"),
)


def why_in_child(tree: ast.Module, brought: set[str], imported: set[str]) -> str | None:
    """Return why the judge cannot run a test, or None if it can.

    Args:
        tree: The test.
        brought: Names in it that the candidate defines.
        imported: Names of modules, or of what is imported from them.

    """
    if not brought:
        return "no name in it is known to be the candidate's"
    top_level = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                return "is asynchronous"
            case ast.Global(names=names) if node in tree.body or not top_level.issuperset(names):
                return "rebinds globals of the candidate"
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                module = getattr(node, "module", None) or ""
                words = {word for alias in aliases for word in alias.name.split(".")} | set(module.split("."))
                # Names of submodules and functions count; `from sys import argv` reads no stream.
                reason = _reason_for(words)
            case ast.Attribute(ctx=ast.Store() | ast.Del(), value=ast.Name(id=name)) if name in imported | {
                "builtins"
            }:
                return f"changes the module {name}"
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]) if (
                name in imported | {"builtins"}
            ):
                return f"changes the module {name}"
            case ast.Attribute() if ast.unparse(node) in _MAINS:
                return "runs a test framework"
            case ast.Attribute(attr=word) | ast.Name(id=word):
                reason = _reason_for({word} - brought)
            case ast.ClassDef(bases=bases) if any(isinstance(b, ast.Name) and b.id in brought for b in bases):
                return "derives from a class of the candidate"
            case _:
                continue
        if reason:
            return reason
    return None


def _reason_for(words: set[str]) -> str | None:
    return next((reason for names, reason in _REASONS if names & words), None)

"""Code that the driver may run: tests, the standard library and packages, and nothing that a program made."""

import os
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from .marks import Reason

MODULE = "test"  # the name that tests have as a module
_IMPORT_SYSTEM = ("importlib._bootstrap_external", "_frozen_importlib_external", "zipimport")
# Modules that run text: of a test, a module's code, and methods whose text has checked names alone.
_RUNNING = {
    *(f"{__package__}.driver", "importlib._bootstrap", "importlib._bootstrap_external"),
    *("collections", "dataclasses"),
}
_WATCHED = frozenset(("exec", "compile", "pickle.find_class", "ctypes.dlopen", "open", "import"))


def restrict(refuse: Callable[[str], NoReturn]) -> None:
    """Have `refuse` called with the reason when anything else is about to run.

    An audit hook sees the text that is run, pickles, and the files that the import system opens, whatever
    folder a test has added: they must lie in a folder of the module path as it is now.
    """
    folders = tuple(os.path.join(folder, "") for folder in sys.path)

    def check(path: Any) -> None:
        if not os.path.abspath(path).startswith(folders):
            refuse(Reason.IMPORTS_FILE)

    def audit(event: str, args: tuple) -> None:
        if event not in _WATCHED:  # `id` is an event, too
            return
        match event:
            case "exec" if not _is_trusted(sys._getframe(1)):
                refuse(Reason.EVALUATES)
            case "compile" if _module_of(sys._getframe(1)) == MODULE:
                refuse(Reason.COMPILES)
            case "pickle.find_class" | "ctypes.dlopen":
                refuse(Reason.UNPICKLES)
            case "open" if _module_of(sys._getframe(1)) in _IMPORT_SYSTEM:
                check(args[0])
            case "import" if args[1]:  # a compiled library
                check(args[1])

    sys.addaudithook(audit)


def _module_of(frame: types.FrameType) -> Any:
    return frame.f_globals.get("__name__")


def _is_trusted(frame: types.FrameType) -> bool:
    """Return whether what is running text is one of the modules above, or times a function."""
    module = _module_of(frame)
    if frame.f_code.co_name == "_call_with_frames_removed":  # of the import system, for a loader
        loader = type(frame.f_back and frame.f_back.f_locals.get("self"))
        return loader.__module__ in _IMPORT_SYSTEM
    if module == "timeit":
        local = frame.f_locals
        return local.get("stmt") == "_stmt()" and local.get("setup") in ("pass", "_setup()")
    return module in _RUNNING

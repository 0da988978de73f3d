"""Code that the driver may run: tests, the standard library and packages, and nothing that a program made."""

import os
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

MODULE = "test"  # the name that tests have as a module
_IMPORT_SYSTEM = ("importlib._bootstrap_external", "_frozen_importlib_external", "zipimport")
# Modules that run text: of a test, a module's code, and methods whose text has checked names alone.
_RUNNING = {"driver", "importlib._bootstrap", "importlib._bootstrap_external", "collections", "dataclasses"}


def restrict(refuse: Callable[[str], NoReturn]) -> None:
    """Have `refuse` called with the reason when anything else is about to run.

    An audit hook sees the text that is run, pickles, and the files that the import system opens, whatever
    folder a test has added: they must lie in a folder of the module path as it is now.
    """
    folders = tuple(os.path.join(folder, "") for folder in sys.path)

    def audit(event: str, args: tuple) -> None:
        match event:
            case "exec" if not _is_trusted(sys._getframe(1)):
                refuse("the test evaluates text")
            case "compile" if sys._getframe(1).f_globals.get("__name__") == MODULE:
                refuse("the test compiles text")
            case "pickle.find_class" | "ctypes.dlopen":
                refuse("the test unpickles, or loads a library")
            case "open" | "import":
                _, library, *_ = args
                path = library if event == "import" else _opened_by_import(sys._getframe(1), args[0])
                if path and not os.path.abspath(path).startswith(folders):
                    refuse("the test imports a file of the working folder")

    sys.addaudithook(audit)


def _opened_by_import(frame: types.FrameType, path: Any) -> Any:
    """Return the path of a file that is being opened if the import system opens it, else None."""
    return path if frame.f_globals.get("__name__") in _IMPORT_SYSTEM else None


def _is_trusted(frame: types.FrameType) -> bool:
    """Return whether what is running text is one of the modules above, or times a function."""
    module, local = frame.f_globals.get("__name__"), frame.f_locals
    if frame.f_code.co_name == "_call_with_frames_removed":  # of the import system, for a loader
        loader = type(frame.f_back and frame.f_back.f_locals.get("self"))
        return loader.__module__ in _IMPORT_SYSTEM
    if module == "timeit":
        return local.get("stmt") == "_stmt()" and local.get("setup") in ("pass", "_setup()")
    return module in _RUNNING

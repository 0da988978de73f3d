"""Code that the driver may run: tests, the standard library and packages, and nothing that a program made."""

import _imp
import _io
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

# Modules that run text: of a test, a module's code, and methods whose text has checked names alone.
_RUNNING = {"driver", "importlib._bootstrap", "importlib._bootstrap_external", "collections", "dataclasses"}


def restrict(refuse: Callable[[str], NoReturn]) -> None:
    """Have `refuse` called with the reason when anything else is about to run.

    Every loader reads a module by `open_code` or `create_dynamic`, whatever folder a test has added: the file
    must lie in a folder of the module path as it is now. An audit hook sees text that is run, and pickles.
    """
    folders = tuple(os.path.join(folder, "") for folder in sys.path)
    open_code, create_dynamic = _io.open_code, _imp.create_dynamic

    def check(path: Any) -> None:
        if not os.path.abspath(path).startswith(folders):
            refuse("the test imports a file of the working folder")

    def open_installed(path: Any) -> Any:
        check(path)
        return open_code(path)

    def create_installed(spec: Any, *file: Any) -> Any:
        check(spec.origin)
        return create_dynamic(spec, *file)

    def audit(event: str, args: tuple) -> None:
        if event == "exec" and not _is_trusted(sys._getframe(1)):
            refuse("the test evaluates text")
        if event in ("pickle.find_class", "ctypes.dlopen"):
            refuse("the test unpickles, or loads a library")

    for module in (_io, io):
        setattr(module, "open_code", open_installed)  # noqa: B010 - mypy knows no other function there
    setattr(_imp, "create_dynamic", create_installed)  # noqa: B010
    sys.addaudithook(audit)


def _is_trusted(frame: types.FrameType) -> bool:
    """Return whether what is running text is one of the modules above, or times a function."""
    module, local = frame.f_globals.get("__name__"), frame.f_locals
    if module == "timeit":
        return local.get("stmt") == "_stmt()" and local.get("setup") in ("pass", "_setup()")
    return module in _RUNNING

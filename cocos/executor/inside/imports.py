"""What the driver imports: modules of the standard library and of packages, and none that a program wrote."""

import _imp
import _io
import io
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn


def only_installed(refuse: Callable[[], NoReturn]) -> None:
    """Have every import of a file that lies in no folder of the module path, as it is now, call `refuse`.

    All loaders read a module by one of these two functions, from whatever folder a test adds later.
    """
    folders = tuple(os.path.join(folder, "") for folder in sys.path)
    open_code, create_dynamic = _io.open_code, _imp.create_dynamic

    def check(path: Any) -> None:
        if not os.path.abspath(path).startswith(folders):
            refuse()

    def open_installed(path: Any) -> Any:
        check(path)
        return open_code(path)

    def create_installed(spec: Any, *file: Any) -> Any:
        check(spec.origin)
        return create_dynamic(spec, *file)

    for module in (_io, io):
        setattr(module, "open_code", open_installed)  # noqa: B010 - mypy knows no other function there
    setattr(_imp, "create_dynamic", create_installed)  # noqa: B010

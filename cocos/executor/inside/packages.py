"""Third-party packages that programs may import. The zygote imports them, and its children inherit them."""

import contextlib
import importlib.util
import os
import sys


def import_packages(folder: str, modules: list[str], version: list[int]) -> int:
    """Add the folder to the module path and import the modules.

    Args:
        folder: The packages, or links to them, and nothing else.
        modules: Modules to import.
        version: Major and minor version of the Python that the packages were installed for.

    Returns:
        Bytes of address space that this took.

    Raises:
        ImportError: The packages are for another version, or a module cannot be imported or starts threads.

    """
    if list(sys.version_info[:2]) != version:
        installed_for, sandbox = (".".join(map(str, numbers)) for numbers in (version, sys.version_info[:2]))
        raise ImportError(
            f"the packages are installed for Python {installed_for}, and the sandbox has {sandbox}; "
            "use an image with the same version"
        )
    before = _address_space()
    sys.path.append(folder)
    for name in modules:
        try:
            _import_with_submodules(name)
        except BaseException as error:  # package code can raise anything, SystemExit included
            raise ImportError(f"cannot import {name}: {type(error).__name__}: {error}") from None
        if len(os.listdir("/proc/self/task")) > 1:
            raise ImportError(f"importing {name} starts threads, which programs would lose at the fork")
    return _address_space() - before


def _import_with_submodules(name: str) -> None:
    """Import a module and the submodules that its `__all__` names.

    Some packages, scipy for one, load those when they are first used. This would take every program a second.
    """
    module = importlib.import_module(name)
    for part in getattr(module, "__all__", ()):
        with contextlib.suppress(Exception):  # a submodule may need a package that is optional
            if importlib.util.find_spec(f"{name}.{part}"):
                importlib.import_module(f"{name}.{part}")


def remove_links(folder: str) -> None:
    """Remove the folder if it holds links to the packages; where they are mounted, nothing happens."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

"""Third-party packages of this environment that programs may import: their versions, modules and files."""

import importlib.metadata
import os
import re
import sys
from collections.abc import Sequence

from cocos.executor.sandboxes.interpreter import Interpreter


def find_packages(names: Sequence[str]) -> Interpreter:
    """Return the interpreter with the named distributions and all that they require.

    Raises:
        ValueError: A distribution is not installed, or has no modules.

    """
    if isinstance(names, str):
        raise ValueError(f"packages is the string {names!r}; give a tuple of names")
    packages: dict[str, str] = {}
    modules: list[str] = []
    entries: dict[str, str] = {}
    wanted = list(names)
    for name in wanted:  # grows while it is read
        key = normalized(name)
        if key in packages:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise ValueError(missing(name)) from None
        packages[key] = f"{distribution.metadata['Name']} {distribution.version}"
        found = top_level(distribution)
        entries |= found
        if name in names:
            if not (own := modules_to_import(key, found)):
                raise ValueError(
                    f"package {name!r} has no modules in site-packages; install it, not editable"
                )
            modules += own
        wanted += requirements(distribution)
    return Interpreter(tuple(packages.values()), tuple(modules), tuple(entries.items()))


def normalized(name: str) -> str:
    """Return the name in the form in which two spellings of one distribution are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def missing(name: str) -> str:
    """Return what to say about a distribution that is not installed."""
    # A user may give the name of a module: "sklearn" of the distribution scikit-learn.
    owners = importlib.metadata.packages_distributions().get(name)
    hint = f"; the module {name!r} belongs to {owners[0]!r}" if owners else f"; pip install {name}"
    return f"package {name!r} is not installed for {sys.executable}{hint}"


def top_level(distribution: importlib.metadata.Distribution) -> dict[str, str]:
    """Return the folders and files of a distribution directly below site-packages: name -> path."""
    if distribution.files:
        names = {path.parts[0] for path in distribution.files} - {"..", "/", "__pycache__"}
    else:  # some distributions of Linux systems list no files
        names = set((distribution.read_text("top_level.txt") or distribution.metadata["Name"]).split())
        names |= {f"{name}.py" for name in names}
    paths = {name: os.path.realpath(str(distribution.locate_file(name))) for name in sorted(names)}
    return {name: path for name, path in paths.items() if os.path.exists(path)}


def modules_to_import(key: str, entries: dict[str, str]) -> list[str]:
    """Return the module that is called like its distribution, or else every public module."""
    stems = {
        name if os.path.isdir(path) else name.partition(".")[0]
        for name, path in entries.items()
        if os.path.isdir(path) or name.endswith((".py", ".so"))
    }
    public = sorted(stem for stem in stems if stem.isidentifier() and not stem.startswith("_"))
    return [stem for stem in public if normalized(stem) == key] or public


def requirements(distribution: importlib.metadata.Distribution) -> list[str]:
    """Return the names of the distributions that a distribution requires, without those of its extras."""
    names = []
    for requirement in distribution.requires or ():
        specifier, _, marker = requirement.partition(";")
        name = re.split(r"[^\w.-]", specifier, maxsplit=1)[0]
        if "extra" in marker:
            continue
        # Evaluating a marker needs the package `packaging`. Instead, a requirement with a marker counts if it
        # is installed.
        if not marker or is_installed(name):
            names.append(name)
    return names


def is_installed(name: str) -> bool:
    """Return whether this interpreter has a distribution of this name."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

"""The files that the installed package brings along, configs/ and the laboratories in data/toy, and commands.

In a clone they are beside the package, in an installed wheel inside of it.
"""

import shlex
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
FOLDERS = ("configs", "data/toy")


def is_clone() -> bool:
    """Return whether the package is imported from a clone of the repository."""
    return (PACKAGE.parent / "pyproject.toml").is_file()


def command_line(name: str, *words: object) -> str:
    """Return a command of `cocos` as the user can type it, such as `cocos eval --resume`."""
    return shlex.join(["cocos", name, *map(str, words)])


def locate(path: str) -> str:
    """Return the path of a bundled file for its name in a clone; any other path as it is.

    A file that exists comes first. Example: `configs/eval.yaml` is
    `.../site-packages/cocos/configs/eval.yaml`, if the current folder has no such file.
    """
    if not path.startswith(tuple(f"{folder}/" for folder in FOLDERS)) or Path(path).exists():
        return path
    bundled = (PACKAGE.parent if is_clone() else PACKAGE) / path
    return str(bundled) if bundled.exists() else path

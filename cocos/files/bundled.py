"""The files that the installed package brings along, configs/ and the laboratories in data/toy, and commands.

In a clone they are beside the package, in an installed wheel inside of it.
"""

import shlex
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
FOLDERS = ("configs", "data/toy")
SCRIPTS = {  # of the commands that have one
    "train": "train.py",
    "boost": "boost/boost_train.py",
    "boost-data": "scripts/make_boost_data.py",
    "eval": "test.py",
    "prepare": "scripts/prepare_data.py",
}


def is_clone() -> bool:
    """Return whether the package is imported from a clone of the repository."""
    return (PACKAGE.parent / "pyproject.toml").is_file()


def command_line(name: str, *words: object) -> str:
    """Return a command as the user can type it in the current folder: the clone has a script for it.

    Example: `python test.py --resume` in the clone, elsewhere `cocos eval --resume`.
    """
    is_in_clone = is_clone() and Path.cwd() == PACKAGE.parent and name in SCRIPTS
    start = ["python", SCRIPTS[name]] if is_in_clone else ["cocos", name]
    return shlex.join([*start, *map(str, words)])


def locate(path: str) -> str:
    """Return the path of a bundled file for its name in a clone; any other path as it is.

    A file that exists comes first. Example: `configs/eval.yaml` is
    `.../site-packages/cocos/configs/eval.yaml`, if the current folder has no such file.
    """
    if not path.startswith(tuple(f"{folder}/" for folder in FOLDERS)) or Path(path).exists():
        return path
    bundled = (PACKAGE.parent if is_clone() else PACKAGE) / path
    return str(bundled) if bundled.exists() else path

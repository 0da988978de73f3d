"""The command `cocos`: finds the module of a subcommand, and calls its `main`.

    cocos --help
    cocos train --config configs/cocos.yaml --output_dir outputs/cocos
    python -m cocos train ...              the same, for launchers and environments that are not activated

Imports the standard library only, so that help and version take no time and need no package.
"""

import difflib
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NoReturn

from cocos import __version__
from cocos.commands import COMMANDS
from cocos.commands.runner import run_command


def main() -> int | None:
    """Run the subcommand that the command line names; return its exit status."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"cocos {__version__}")
        return 0
    name = words[0].replace("_", "-")
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(COMMANDS)}"
        raise ValueError(f"cocos has no command {words[0]!r}; {hint}")
    sys.argv[:2] = [f"cocos {name}"]  # parsers take their name and their words from here
    return _call(name)


def _call(name: str) -> int | None:
    command: Callable[[], int | None] = import_module(COMMANDS[name].module).main
    return command()


def help_text() -> str:
    """Return what `cocos --help` prints."""
    lines = [f"  {name:<12}{command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: cocos COMMAND [--option value ...]",
            "",
            "Train small code models to correct themselves, and evaluate them over several turns.",
            "",
            "commands:",
            *lines,
            "",
            "cocos COMMAND --help lists the options of a command, cocos --version the version.",
        ]
    )


def run(name: str | None = None) -> NoReturn:
    """Run a command, and exit with its status.

    Args:
        name: The command that a script such as train.py stands for; None: the first word of the command line.

    """
    run_command(main if name is None else partial(_call, name))

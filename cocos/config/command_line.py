"""How a command line and a YAML file become the options of an entry point, and how an entry point fails.

Flags override the file. What a user got wrong is said in one line that names the option and the remedy.
"""

import argparse
import dataclasses
import difflib
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn, get_type_hints

import yaml
from trl import TrlParser

from cocos.executor import ExecutorError


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """The module's own words as they stand, and every option with its default."""


class _Parser(TrlParser):
    """TrlParser whose complaints are one line with a remedy, and to whom a file's values are as flags'."""

    def _add_dataclass_arguments(self, dtype: type) -> None:
        """Help shows what this project defines first, and the hundreds of inherited options after it."""
        ours = self.add_argument_group("options of this command")
        theirs = self.add_argument_group(f"options inherited from TRL and transformers ({dtype.__name__})")
        libraries = ("builtins", "transformers", "trl")
        classes = [cls for cls in dtype.__mro__ if cls.__module__.split(".")[0] not in libraries]
        own = {name for cls in classes for name in vars(cls).get("__annotations__", {})}
        types = get_type_hints(dtype)
        for option in dataclasses.fields(dtype):
            if option.init:
                option.type = types[option.name]
                self._parse_dataclass_field(ours if option.name in own else theirs, option)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see --help")

    def set_defaults_with_config(self, **kwargs: Any) -> list[str]:
        """Hold a file's keys and values to the flags' names, types and choices, as argparse does not."""
        actions = {flag.lstrip("-"): action for action in self._actions for flag in action.option_strings}
        options = {}
        for key, value in kwargs.items():
            action = actions.get(key)
            if action is not None and value is not None and not isinstance(value, dict):
                values = value if isinstance(value, list) else [value]
                if len(values) != 1 and action.nargs not in ("*", "+"):
                    self.error(f"argument {key}: one value expected, the config file has {value!r}")
                try:
                    value = self._get_values(action, [str(part) for part in values])
                except argparse.ArgumentError as error:
                    self.error(str(error))
            options[action.dest if action else key] = value
        return super().set_defaults_with_config(**options)


def parse(config_types: tuple[type, ...], description: str, argv: list[str] | None = None) -> tuple[Any, ...]:
    """Read the options of an entry point from `--config FILE.yaml` and flags.

    Raises:
        ValueError: An unknown flag or key, a value of the wrong type, a missing option, an unreadable file.

    """
    parser = _Parser(
        config_types,
        usage="%(prog)s [--config FILE.yaml] [--option value ...]",
        description=description,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE.yaml", help="Options from a YAML file; flags override it.")
    argv = list(sys.argv[1:] if argv is None else argv)
    for number, argument in enumerate(argv):
        if argument.startswith("--config="):
            argv[number : number + 1] = ["--config", argument.removeprefix("--config=")]
    if argv[-1:] == ["--config"]:
        raise ValueError("--config: give the path of a YAML file after it")
    try:
        *configs, from_file, from_flags = parser.parse_args_and_config(
            argv, return_remaining_strings=True, separate_remaining_strings=True
        )
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"--config: {' '.join(str(error).split())}; give a readable YAML file") from None
    known = [flag for action in parser._actions for flag in action.option_strings]
    for unknown, place in [(from_file, "key in the config file"), (from_flags, "option")]:
        if unknown:
            close = difflib.get_close_matches(unknown[0], known, n=1)
            hint = f"did you mean {close[0]}?" if close else "see --help"
            raise ValueError(f"unknown {place}: {unknown[0]}; {hint}")
    return tuple(config for config in configs if dataclasses.is_dataclass(config))


def run(main: Callable[[], None]) -> None:
    """Call an entry point; an error that its user can mend is printed as one line, with exit status 2."""
    try:
        main()
    except (ValueError, OSError, ImportError, ExecutorError) as error:  # ImportError: an option's own package
        if os.environ.get("COCOS_TRACEBACK"):
            raise
        print(f"error: {' '.join(str(error).split())} (COCOS_TRACEBACK=1 shows where)", file=sys.stderr)
        sys.exit(2)

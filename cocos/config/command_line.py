"""Parser that reads an entry point's options from flags and a YAML file.

Flags override the file. Every error message names the option and the remedy in one line.
"""

import argparse
import dataclasses
import difflib
import sys
from typing import Any, NoReturn, TypeVar, get_type_hints

import yaml
from trl import TrlParser

Options = TypeVar("Options")


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Formatter that keeps the line breaks of the description and adds the options' defaults."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        # Without a default value, the help itself says what happens by default; "None" would add nothing.
        is_plain = action.nargs == 0 or action.default in (None, "", [])
        return action.help if is_plain else super()._get_help_string(action)


class OptionParser(TrlParser):
    """TrlParser that raises ValueError and checks a config file as strictly as flags."""

    def _add_dataclass_arguments(self, dtype: type) -> None:
        """List this project's options before the hundreds of inherited ones in the help text."""
        ours = self.add_argument_group("options of this command")
        inherited = self.add_argument_group("options inherited from TRL and transformers")
        libraries = ("builtins", "transformers", "trl")
        own_classes = [cls for cls in dtype.__mro__ if cls.__module__.split(".")[0] not in libraries]
        own_names = {name for cls in own_classes for name in vars(cls).get("__annotations__", {})}
        types = get_type_hints(dtype)
        for option in dataclasses.fields(dtype):
            if option.init:
                option.type = types[option.name]
                self._parse_dataclass_field(ours if option.name in own_names else inherited, option)
        for action in self._actions:
            if isinstance(action, argparse._StoreFalseAction):  # would repeat the help of --OPTION
                action.help = f"Set --{action.dest} to false."

    def error(self, message: str) -> NoReturn:
        """Raise ValueError; argparse would print the usage and exit."""
        raise ValueError(f"{message}; see --help")

    def set_defaults_with_config(self, **kwargs: Any) -> list[str]:
        """Check the keys and values of a config file as if they were flags, then set them as defaults.

        argparse converts defaults only if they are strings and never checks their choices.
        """
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


def parse_options(config_type: type[Options], description: str, argv: list[str] | None = None) -> Options:
    """Read an entry point's options from `--config FILE.yaml` and flags.

    Args:
        config_type: The dataclass of the options.
        description: Text above the list of options in the help.
        argv: Arguments of the command line; None: those of this process.

    Raises:
        ValueError: An unknown flag or key, a value of the wrong type, a missing option, or a config file
            that cannot be read.

    """
    parser = OptionParser(
        config_type,
        usage="%(prog)s [--config FILE.yaml] [--option value ...]",
        description=description,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE.yaml", help="YAML file of options; flags override it.")
    argv = list(sys.argv[1:] if argv is None else argv)
    # TrlParser understands "--config FILE" but not "--config=FILE".
    for number, argument in enumerate(argv):
        if argument.startswith("--config="):
            argv[number : number + 1] = ["--config", argument.removeprefix("--config=")]
    if argv[-1:] == ["--config"]:
        raise ValueError("--config: give the path of a YAML file after it")
    try:
        options, *_, from_file, from_flags = parser.parse_args_and_config(
            argv, return_remaining_strings=True, separate_remaining_strings=True
        )
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"--config: {' '.join(str(error).split())}; give a readable YAML file") from None
    flags = [flag for action in parser._actions for flag in action.option_strings]
    for unknown, place in [(from_file, "key in the config file"), (from_flags, "option")]:
        if unknown:
            close = difflib.get_close_matches(unknown[0], flags, n=1)
            hint = f"did you mean {close[0]}?" if close else "see --help"
            raise ValueError(f"unknown {place}: {unknown[0]}; {hint}")
    return options

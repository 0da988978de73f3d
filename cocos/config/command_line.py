"""Parsers of the entry points: options from flags and a YAML file, and the plain parser of other commands.

Flags override the file. Every error message names the option, as the user typed it, and the remedy in one
line. Imports none of torch, transformers and TRL. `OptionParser` overrides private methods of argparse;
tests/config pins what they do.
"""

import argparse
import dataclasses
import difflib
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

import yaml

from cocos.config.arguments import add_options
from cocos.config.config_file import DERIVED, ConfigFile, read_config
from cocos.config.model_names import with_full_names
from cocos.config.option import library_option_names
from cocos.config.other_names import name_here
from cocos.config.training_options import TrainingOptions
from cocos.files.bundled import locate

SEE_HELP = "see --help"
VALUES = {"resume_from_checkpoint": " last"}  # that a suggested option needs
MIN_LIKENESS = 0.7  # of a misspelt option and the one that is meant
OTHER_SPELLINGS = re.compile(r"(?<=\w)(/--[\w-]+)+")  # of an option, after its name, in argparse's errors


class PlainParser(argparse.ArgumentParser):
    """Parser that raises ValueError, and names a misspelt option before a missing one.

    Args:
        other_flags: Flags to accept, with any value, although the parser has no such options.

    """

    def __init__(self, other_flags: Collection[str] = (), **texts: Any) -> None:
        self._other_flags = other_flags
        super().__init__(**texts, allow_abbrev=False, formatter_class=_HelpFormatter)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject the first unknown option; argparse would name a missing argument instead."""
        words = sys.argv[1:] if args is None else args
        self.reject_unknown([word for word in words if word.startswith("--")], "option")
        parsed, unknown = super().parse_known_args(args, namespace)
        return parsed, [] if self._other_flags else unknown

    def reject_unknown(self, flags: Iterable[str], place: str) -> None:
        """Raise ValueError for the first flag that is unknown, with or without a value after `=`."""
        known = [*self._option_string_actions, *sorted(self._other_flags)]
        for flag in flags:
            name = flag.partition("=")[0]
            if name in known or _with_underscores(name) in self._other_flags:
                continue
            # Arguments without a name are not among the options, but in the usage.
            has_others = self.usage and any(not action.option_strings for action in self._actions)
            hint = self.format_usage().strip() if has_others else SEE_HELP
            meant = _meant(name, known)
            raise ValueError(f"unknown {place}: {name}; {f'did you mean {meant}?' if meant else hint}")

    def error(self, message: str) -> NoReturn:
        """Raise ValueError that starts with the option's name; argparse would print the usage and exit."""
        named = OTHER_SPELLINGS.sub("", message.removeprefix("argument "))
        raise ValueError(f"{named}; {SEE_HELP}")


Options = TypeVar("Options")
OwnOptions = TypeVar("OwnOptions", bound=TrainingOptions)


def parse_options(
    config_type: type[Options], description: str | None, argv: list[str] | None = None
) -> Options:
    """Read an entry point's options from `--config FILE.yaml` and flags.

    Raises:
        ValueError: An unknown flag or key, a value of the wrong type, a missing option, or a config file
            that cannot be read.

    """
    return OptionParser(config_type, description).parse(argv)


def check_options(
    options_type: type[OwnOptions], description: str | None, argv: list[str] | None = None
) -> OwnOptions:
    """Return this project's options of a training command, before torch and TRL are imported.

    It prints the help if it is requested, and finds every error except wrong values of TRL's options. The
    command then calls `parse_options` with the dataclass that has TRL's options, too.
    """
    parser = OptionParser(options_type, description, library_option_names(options_type.library_sources))
    parser.add_argument(
        "--help_all",
        action=_FullHelp,
        nargs=0,
        const=options_type.full_name,
        help="List the options of TRL and transformers, too (this takes ten seconds).",
    )
    if "--print_config" in (sys.argv[1:] if argv is None else argv):
        from cocos.config import trl_configs  # imports torch

        parser = OptionParser(getattr(trl_configs, options_type.full_name), description)
    return parser.parse(argv)


class _FullHelp(argparse.Action):
    """Action that prints the help with the options of TRL and transformers, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> NoReturn:
        from cocos.config import trl_configs  # imports torch

        OptionParser(getattr(trl_configs, str(self.const)), parser.description).print_help()
        parser.exit()


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Formatter that keeps the line breaks of the description and adds the options' defaults."""

    def __init__(self, prog: str):
        width = min(shutil.get_terminal_size(fallback=(110, 24)).columns, 120) - 2
        super().__init__(prog, max_help_position=32, width=width)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        # Without a default value, the help itself says what happens by default; "None" would add nothing.
        is_plain = action.nargs == 0 or action.default in (None, "", [], False)
        if isinstance(action.default, (list, tuple)) and action.default:
            return f"{action.help} (default: {' '.join(map(str, action.default))})"
        return action.help if is_plain else super()._get_help_string(action)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Return the flags without their variants with hyphens, and the value once."""
        if not action.option_strings:
            return super()._format_action_invocation(action)
        flags = [flag for flag in action.option_strings if "-" not in flag.lstrip("-")]
        value = "" if action.nargs in (0, "?") else " " + self._format_args(action, self._value_name(action))
        return ", ".join(flags) + value

    def _value_name(self, action: argparse.Action) -> str:
        if action.choices is not None:
            return "{" + ",".join(map(str, action.choices)) + "}"
        if action.metavar is not None:
            return str(action.metavar)
        return {"int": "N", "float": "X"}.get(getattr(action.type, "__name__", ""), "TEXT")


class OptionParser(PlainParser, Generic[Options]):
    """Parser of an entry point's options, which checks a config file as strictly as flags; raises ValueError.

    Args:
        config_type: The dataclass of the options. A class attribute `group` of the class that declares an
            option is the heading of its section in the help.
        other_names: Names of options to accept, with any value, although `config_type` does not have them.

    """

    def __init__(
        self, config_type: type[Options], description: str | None = None, other_names: Iterable[str] = ()
    ):
        self._config_type = config_type
        self._typed: set[str] = set()  # flags on the command line and keys in the config file, as flags
        super().__init__(
            {f"--{prefix}{name}" for name in other_names for prefix in ("", "no_")},
            usage="%(prog)s [--config FILE.yaml] [--option value ...]",
            description=description,
        )
        self._own_names = add_options(self, config_type)
        self.add_argument(
            "--config", metavar="FILE", help="YAML file of options, or a run's run.json; flags override it."
        )
        self.add_argument(
            "--print_config",
            action="store_true",
            help="Print the merged options as YAML for --config, and exit.",
        )

    def parse(self, argv: list[str] | None = None) -> Options:
        """Return the options of a command line; see `parse_options`."""
        argv = list(sys.argv[1:] if argv is None else argv)
        self._typed |= {argument.partition("=")[0] for argument in argv if argument.startswith("--")}
        try:
            if path := self._config_path(argv):
                self._set_defaults(read_config(locate(path)))
            values = vars(self.parse_args(argv))
            values |= with_full_names(values)
            if values["print_config"]:
                print(self._as_yaml(values), end="")
                self.exit()
            names = [field.name for field in dataclasses.fields(self._config_type) if field.init]  # type: ignore[arg-type]
            return self._config_type(**{name: values[name] for name in names})
        except ValueError as error:
            raise ValueError(self._with_typed_names(str(error))) from error

    def gives(self, name: str) -> bool:
        """Return whether the command line or the config file that was parsed gives an option."""
        return not self._typed.isdisjoint(
            flag for action in self._actions if action.dest == name for flag in action.option_strings
        )

    def _config_path(self, argv: list[str]) -> str | None:
        if argv[-1:] == ["--config"]:
            raise ValueError("--config: give the path of a YAML file after it")
        paths = [
            argv[number + 1] if word == "--config" else word.removeprefix("--config=")
            for number, word in enumerate(argv)
            if word == "--config" or word.startswith("--config=")
        ]
        if len(paths) > 1:
            raise ValueError("--config is given twice; write the options of both files into one, or as flags")
        return paths[0] if paths else None

    def _set_defaults(self, options: ConfigFile) -> None:
        """Check the keys and values of a config file as if they were flags, then set them as defaults.

        argparse converts defaults only if they are strings and never checks their choices.
        """
        actions = {flag.lstrip("-"): action for action in self._actions for flag in action.option_strings}
        if options.is_record:
            options = self._without_derived_values(options, actions)
        self._typed |= {f"--{key}" for key in options}
        self.reject_unknown((f"--{key}" for key in options), "key in the config file")
        for key, value in options.items():
            if key in actions:
                self._set_default(actions[key], key, value)

    def _set_default(self, action: argparse.Action, key: str, value: Any) -> None:
        if value is None and not getattr(action, "allows_none", False):
            self.error(f"--{key}: the config file gives no value; give one or remove the line")
        if value is not None and not (isinstance(value, dict) and action.type not in (int, float)):
            values = value if isinstance(value, list) else [value]
            if len(values) != 1 and action.nargs not in ("*", "+"):
                self.error(f"--{key}: one value expected, the config file has {value!r}")
            try:
                value = self._get_values(action, [str(part) for part in values])
            except argparse.ArgumentError as error:
                self.error(str(error))
        for same in self._actions:
            if same.dest == action.dest:
                same.default = value

    def _without_derived_values(
        self, record: ConfigFile, actions: Mapping[str, argparse.Action]
    ) -> ConfigFile:
        """Return the options that may have been given: ours, and TRL's if they are not the default."""
        return ConfigFile(
            {
                name: value
                for name, value in record.items()
                if name in actions
                and (name in self._own_names or (name not in DERIVED and value != actions[name].default))
            }
        )

    def _as_yaml(self, values: Mapping[str, Any]) -> str:
        """Return our options, and those of TRL and transformers that were given, as a file for --config."""
        chosen = {}
        for action in self._actions:
            if action.dest.endswith("_token"):
                continue  # a secret
            is_given = not self._typed.isdisjoint(action.option_strings)
            if action.dest in self._own_names or (is_given and action.dest not in ("config", "print_config")):
                chosen[action.dest] = values[action.dest]
        return yaml.safe_dump(
            chosen, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000
        )

    def _with_typed_names(self, message: str) -> str:
        """Replace an option's name in a message by the alias that the user typed."""
        for action in self._actions:
            typed = [flag for flag in action.option_strings if flag in self._typed]
            if typed:
                message = re.sub(rf"{action.option_strings[0]}\b", typed[-1], message)
        return message


def _meant(flag: str, known: Sequence[str]) -> str | None:
    """Return the known flag that an unknown one is meant to be; None if there is no likely one.

    Words decide before letters: `--lr` is `--learning_rate`, not `--lora_r`.
    """
    name = _with_underscores(flag)
    known = [other for other in known if other.startswith("--no_") == name.startswith("--no_")]
    here = name_here(name.removeprefix("--"), {other.removeprefix("--") for other in known})
    if here is not None:
        return f"--{here}{VALUES.get(here, '')}" if here else None
    longer = [other for other in known if other.startswith(name)]
    return next(iter(longer or difflib.get_close_matches(name, known, 1, MIN_LIKENESS)), None)


def _with_underscores(flag: str) -> str:
    """Return a flag with underscores. Example: --max-steps -> --max_steps."""
    return "--" + flag.removeprefix("--").replace("-", "_")

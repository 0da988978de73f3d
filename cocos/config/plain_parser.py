"""Parser of the commands without a dataclass of options; its errors are one line."""

import argparse
import difflib
import sys
from collections.abc import Iterable
from typing import Any, NoReturn


class PlainParser(argparse.ArgumentParser):
    """Parser that raises ValueError, and names a misspelt option before a missing one."""

    def __init__(self, **texts: Any) -> None:
        super().__init__(**texts, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject the first unknown option; argparse would name a missing argument instead."""
        for word in sys.argv[1:] if args is None else args:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in self._option_string_actions:
                raise ValueError(
                    f"unknown option: {flag}; {spelling_hint(flag, self._option_string_actions)}"
                )
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise ValueError; argparse would print the usage and exit."""
        raise ValueError(f"{message}; see --help")


def spelling_hint(flag: str, known: Iterable[str]) -> str:
    """Return a hint at the known flag that was probably meant, or at the help."""
    close = difflib.get_close_matches(flag, list(known), n=1)
    return f"did you mean {close[0]}?" if close else "see --help"

"""Declaration of an option as a field of a dataclass, and the names of the options that training inherits.

Importing TRL and transformers takes seconds. Their option names are therefore read from their source files,
so that a misspelt option is refused at once. Imports the standard library only.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import MISSING, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def option(
    *,
    help: str,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | Any = MISSING,
    aliases: tuple[str, ...] = (),
) -> Any:
    """Return a dataclass field from which TRL's parser makes the flag `--NAME`.

    It replaces transformers' HfArg, whose import takes a second.

    Args:
        help: Text in --help, the only documentation of the option.
        default: Value if neither the command line nor the config file sets the option.
        default_factory: Function that returns the default, for lists.
        aliases: Further flags of the option.

    """
    return field(
        default=default, default_factory=default_factory, metadata={"help": help, "aliases": list(aliases)}
    )


# Package and path of each file whose dataclasses declare options.
TRAINING_SOURCES = (
    ("transformers", "training_args.py"),
    ("trl", "trainer/base_config.py"),
    ("trl", "trainer/model_config.py"),
)
RLOO_SOURCES = (*TRAINING_SOURCES, ("trl", "trainer/rloo_config.py"))
SFT_SOURCES = (*TRAINING_SOURCES, ("trl", "trainer/sft_config.py"))


def library_option_names(sources: Sequence[tuple[str, str]]) -> set[str]:
    """Return the names of all dataclass fields in the source files.

    Args:
        sources: Package and path within the package of each file. The package must be installed.

    """
    names: set[str] = set()
    for package, path in sources:
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        tree = ast.parse((Path(spec.origin).parent / path).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                fields = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
                names |= {field.target.id for field in fields if isinstance(field.target, ast.Name)}
    return names

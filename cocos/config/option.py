"""Declaration of an option as a field of a dataclass, and the names of the options that training inherits.

Importing TRL and transformers takes seconds. Their option names are therefore read from their source files,
so that a misspelt option is refused at once. Imports the standard library only.
"""

import ast
from collections.abc import Sequence
from dataclasses import MISSING, field, fields
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

# What depends on an option. Whoever needs a list of options derives it from the roles (`option_names`).
ROLES = {
    "model": "the model",
    "data": "problems, rows and answers that a command reads",
    "wording": "words of the prompts, which results record by the protocol's name",
    "prompt": "what else the model sees at its first attempt",
    "rule": "what happens between the turns",
    "given": "first turns that are given instead of sampled",
    "length": "turns of a trajectory, and tokens of a turn",
    "sampling": "how completions are sampled",
    "executor": "how programs run",
    "objective": "rewards and returns",
    "update": "updates of the weights",
    "run": "where, when and how a command works; its results do not depend on it",
}


def option(role: str, default: Any, help: str, *, aliases: tuple[str, ...] = ()) -> Any:
    """Return a dataclass field from which TRL's parser makes the flag `--NAME`.

    It replaces transformers' HfArg, whose import takes a second.

    Args:
        role: What depends on the option, one of `ROLES`.
        default: Value without the flag; of a list, every object gets a copy.

    """
    assert role in ROLES, role
    metadata = {"help": help, "role": role, "aliases": list(aliases)}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def option_names(options_type: type, *roles: str) -> list[str]:
    """Return the names of a command's options that have one of the roles, in the order of its fields."""
    return [field.name for field in fields(options_type) if field.metadata.get("role") in roles]


def default_values(options_type: type) -> dict[str, Any]:
    """Return the default of every option of a command."""
    return {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(options_type)
    }


def require_options(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options is not given."""
    for name in names:
        if not getattr(options, name):
            raise ValueError(f"--{name} is missing; see --help")


def require_at_least(options: object, least: float, *names: str) -> None:
    """Raise ValueError if one of the named options is below a number; None, not given, is allowed."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not value >= least:
            raise ValueError(f"--{name} is {value}; give {least} or more")


def require_above_zero(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options is no finite number above 0; None is allowed."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not 0 < value < inf:
            raise ValueError(f"--{name} is {value}; give a number above 0")


def require_share(options: object, *names: str) -> None:
    """Raise ValueError if one of the named options does not lie in [0, 1]; None is allowed."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"--{name} is {value}; it must lie in [0, 1]")


# Package and path of each file whose dataclasses declare options.
TRAINING_SOURCES = (
    ("transformers", "training_args.py"),
    ("trl", "trainer/base_config.py"),
    ("trl", "trainer/model_config.py"),
)
RLOO_SOURCES = (*TRAINING_SOURCES, ("trl", "trainer/rloo_config.py"))
SFT_SOURCES = (*TRAINING_SOURCES, ("trl", "trainer/sft_config.py"))


def library_option_names(sources: Sequence[tuple[str, str]]) -> set[str]:
    """Return the names of all dataclass fields in the source files."""
    names: set[str] = set()
    for package, path in sources:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        tree = ast.parse((Path(spec.origin).parent / path).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                fields = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
                names |= {field.target.id for field in fields if isinstance(field.target, ast.Name)}
    return names

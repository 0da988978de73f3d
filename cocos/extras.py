"""The optional packages: which part of the project needs which, and how to install them.

The base installation evaluates endpoints' answers, runs programs and prints reports; each extra adds a part.
The name of this project is not on the package index, so messages name what is: the packages, or the clone.
Imports the standard library only.
"""

import importlib.metadata
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cocos.bundled import PACKAGE, is_clone

# What an extra is for, and the modules by which it is recognised.
EXTRAS = {
    "api": ("endpoints: eval --generator api", ("openai", "httpx2", "dotenv")),
    "charts": ("charts of reports", ("matplotlib",)),
    "data": ("hub: data sets, Parquet, near duplicates", ("datasets", "pyarrow", "numpy")),
    "train": (
        "models on this machine: demo, boost, train, eval",
        ("torch", "transformers", "trl", "accelerate", "peft", "deepspeed", "tensorboard", "wandb"),
    ),
    "agents": ("eval --agent", ("langgraph",)),
    "page": ("page", ("streamlit",)),
    "gguf": ("GGUF files", ("gguf",)),
    "vllm": ("--generator vllm", ("vllm",)),
}


def install_command(extra: str) -> str:
    """Return the command that installs an extra; "" is the base installation."""
    if is_clone():
        target = f".[{extra}]" if extra else "."
        return f'pip install -c constraints.txt -e "{target}" (in {PACKAGE.parent})'
    if wheel := _wheel():
        return f'pip install "{wheel}[{extra}]"'
    return " ".join(["pip install", *(f'"{requirement}"' for requirement in _missing_requirements(extra))])


def _wheel() -> str | None:
    """Return the path of the wheel that was installed, if pip has recorded it and it is still there."""
    record = importlib.metadata.distribution("cocos-lab").read_text("direct_url.json")
    url = urlsplit(json.loads(record)["url"]) if record else None
    path = unquote(url.path) if url and url.scheme == "file" else ""
    return path if path.endswith(".whl") and Path(path).is_file() else None


def missing_package(error: ImportError) -> str:
    """Return what to do about a failed import: the package, and how it is installed."""
    module = (error.name or "").partition(".")[0]
    if not module or module == "cocos" or find_spec(module) is not None:
        return str(error)
    extra = next((name for name, (_, modules) in EXTRAS.items() if module in modules), None)
    if extra is None and module not in ("yaml", "jinja2", "markupsafe", "tqdm"):
        return str(error)
    return (
        f"{module} is not installed for {sys.executable}; activate the environment that has it, or "
        f"{install_command(extra or '')}"
    )


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra][1] if find_spec(module) is None]


def _missing_requirements(extra: str) -> list[str]:
    """Return what an extra requires and this environment lacks, from the metadata of the installation."""
    found: list[str] = []
    for line in importlib.metadata.requires("cocos-lab") or []:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        needed_by = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if (needed_by[1] if needed_by else "") != extra:
            continue
        if nested := re.fullmatch(r"cocos-lab\[([\w,-]+)\]", requirement):
            found += [one for name in nested[1].split(",") for one in _missing_requirements(name)]
        elif not _is_installed(requirement):
            found.append(requirement)
    return list(dict.fromkeys(found))


def _is_installed(requirement: str) -> bool:
    name = re.match(r"[\w.-]+", requirement)
    try:
        return bool(name and importlib.metadata.version(name[0]))
    except importlib.metadata.PackageNotFoundError:
        return False

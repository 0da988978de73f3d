"""The optional packages: which part of the project needs which, and how to install them.

The base installation evaluates endpoints' answers, runs programs and prints reports; each extra adds a part.
Imports the standard library only.
"""

import sys
from importlib.util import find_spec

from cocos.files.bundled import PACKAGE, is_clone

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
    """Return the command that installs an extra; "" is the base installation.

    pip reads what an extra of an installed package requires from the installation itself, so the command
    works although the index does not know the name of this project.
    """
    target = f"[{extra}]" if extra else ""
    if is_clone():
        return f'pip install -c constraints.txt -e ".{target}" (in {PACKAGE.parent})'
    return f'pip install "cocos-lab{target}"'


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

"""Show what is installed, and try what each isolation level of the executor promises on this machine.

    cocos doctor
    cocos doctor MODEL      only what a model is, and what can be done with it

Exits with status 0 if `--sandbox auto` finds a level that works and keeps its promises, otherwise 1.
"""

import shutil
import sys


def main() -> int:
    """Print versions, the machine, the usable parts of the project, and the executor's own check."""
    words = sys.argv[1:]
    if {"-h", "--help"} & {*words}:
        print(f"usage: cocos doctor [MODEL]\n\n{__doc__}".rstrip())
        return 0
    if words:
        print(model_line(words[-1]))
        return 0
    from cocos import __version__
    from cocos.executor.__main__ import main as executor_main
    from cocos.files.extras import EXTRAS, install_command, missing_modules

    print(f"cocos {__version__}, Python {sys.version.split()[0]} ({sys.executable})")
    for extra, (purpose, _) in EXTRAS.items():
        missing = missing_modules(extra)
        state = f"missing {', '.join(missing)}: {install_command(extra)}" if missing else "installed"
        print(f"  {extra:<8}{purpose}: {state}")
    print(f"{machine_lines()}\n", flush=True)
    return executor_main(["doctor"])


def model_line(name: str) -> str:
    """Return what a model is and what can be done with it.

    Raises:
        ValueError: It cannot be loaded here, or its tokenizer does not give back what it gets.

    """
    from cocos.config.model_names import full_name
    from cocos.generation.checkpoint_files import check_checkpoint
    from cocos.generation.tokenizer import load_tokenizer

    line = str(check_checkpoint(full_name(name)))
    load_tokenizer(full_name(name))
    return line


def machine_lines() -> str:
    """Return lines about the machine: CPU cores, memory, torch's build, and GPUs."""
    import os

    from cocos.executor.limits import available_memory_mb, usable_cores

    return "\n".join(
        [
            f"cores       {usable_cores():g} of {os.cpu_count()} can be used",
            f"memory      {available_memory_mb() / 1024:.1f} GB",
            f"torch       {_torch_text()}",
        ]
    )


def _torch_text() -> str:
    """Return the build of torch and its GPUs."""
    try:
        import torch
    except ImportError:
        return "not installed"
    runtime = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    is_for_gpus = bool(torch.version.cuda or torch.version.hip)
    build = f"{torch.__version__}, built for {runtime if is_for_gpus else 'CPUs alone'}"
    if torch.cuda.is_available():
        cards = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
        return f"{build}; GPU " + ", ".join(f"{c.name} ({c.total_memory / 2**30:.0f} GB)" for c in cards)
    if not shutil.which("nvidia-smi"):
        return f"{build}; no GPU"
    remedy = "its driver may be older than that" if is_for_gpus else "install torch's build for CUDA"
    return f"{build}; it uses no GPU, though this machine has nvidia-smi: {remedy}"

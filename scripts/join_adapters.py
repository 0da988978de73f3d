"""Add LoRA adapters of one base model, each with a weight: one model of what several have learnt.

    python scripts/join_adapters.py outputs/joined outputs/planted=0.5 outputs/cocos=0.5    their mean
    python scripts/join_adapters.py outputs/joined outputs/a=1 outputs/b=1 outputs/boost=-1

The second adds to a what b has learnt since boost. The sum is exact: the ranks add up. Means of models that
were trained from the same weights: Model soups (arXiv 2203.05482); sums and differences: task arithmetic
(arXiv 2212.04089).
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.output_folder import check_output_folder, new_folder


class Part(NamedTuple):
    """An adapter and its weight in the sum."""

    weight: float
    folder: str


def parse_part(text: str) -> Part:
    """Read ADAPTER=WEIGHT."""
    folder, _, weight = text.rpartition("=")
    try:
        return Part(float(weight), folder)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected ADAPTER=WEIGHT, such as outputs/cocos=0.5"
        ) from None


def check(parts: list[Part]) -> str:
    """Return the base model of the adapters.

    Raises:
        ValueError: A folder has no adapter, or the adapters have different base models.

    """
    from cocos.generation.adapters import base_model, is_adapter

    for part in parts:
        if not is_adapter(part.folder):
            raise ValueError(f"{part.folder or 'an empty name'} is no folder of a LoRA adapter")
    bases = {part.folder: base_model(part.folder) for part in parts}
    if len(set(bases.values())) > 1:
        listed = ", ".join(f"{folder} of {base}" for folder, base in bases.items())
        raise ValueError(f"the adapters have different base models: {listed}")
    return bases[parts[0].folder]


def join(parts: list[Part], output: Path) -> int:
    """Save the weighted sum of the adapters, with the tokenizer of the first; return its rank."""
    base_name = check(parts)
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from cocos.training.checkpoints import follow_umask

    base = AutoModelForCausalLM.from_pretrained(base_name, dtype=torch.float32)
    names = [f"part{i}" for i in range(len(parts))]
    model = PeftModel.from_pretrained(base, parts[0].folder, adapter_name=names[0])
    for name, part in zip(names[1:], parts[1:], strict=True):
        model.load_adapter(part.folder, adapter_name=name)
    joined = "joined"
    model.add_weighted_adapter(names, [part.weight for part in parts], joined, combination_type="cat")
    with tempfile.TemporaryDirectory() as saved, new_folder(output, option="") as folder:
        model.save_pretrained(saved, selected_adapters=[joined])
        # PEFT saves an adapter with a name in a folder of that name.
        shutil.copytree(Path(saved, joined), folder, dirs_exist_ok=True)
        AutoTokenizer.from_pretrained(parts[0].folder).save_pretrained(folder)
        follow_umask(folder)
    return int(model.peft_config[joined].r)


def main() -> None:
    """Read the command line and join the adapters."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="new or empty folder for the adapter")
    parser.add_argument(
        "parts", type=parse_part, nargs="+", metavar="ADAPTER=WEIGHT", help="adapters with their weights"
    )
    options = parser.parse_args()
    check_output_folder(options.output, option="")
    rank = join(options.parts, options.output)
    print(f"{options.output}: an adapter of rank {rank}")


if __name__ == "__main__":
    run_command(main)

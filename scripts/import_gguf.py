"""Convert a GGUF file to a checkpoint folder that train.py and test.py can load.

    python scripts/import_gguf.py SmolLM2-135M-Instruct.Q4_1.gguf models/SmolLM2-135M-Instruct

The weights are dequantized to float32. The folder gets the tokenizer and the chat template of the file, too.
Reads every architecture that transformers reads; needs the package gguf (pip install "cocos-lab[gguf]").
"""

import argparse
import sys
import tempfile
from pathlib import Path

from cocos.entry_point import run_command

MAGIC = b"GGUF"  # the first bytes of every GGUF file
# Pre-tokenizers of llama.cpp (llama-vocab.cpp) that split like GPT-2 after isolating each digit. transformers
# reads them as plain GPT-2, which tokenizes the spaces in front of a number otherwise than the model was
# trained: `x =  12` has the tokens ` ` and ` ` where it should have one of two spaces.
DIGIT_SPLITS = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
GPT2_SPLITS = {"gpt-2", "mpt", "olmo", "jais", "trillion", "granite-docling"}


def import_gguf(file: Path, folder: Path) -> str:
    """Convert a GGUF file to a checkpoint folder and return a summary of one line.

    The folder appears only when it is complete.

    Raises:
        ValueError: The file is no GGUF file or cannot be read by transformers, or the folder exists.
        ImportError: The package gguf is not installed.

    """
    if folder.exists():
        raise ValueError(f"{folder} exists; choose another folder, or remove it")
    with open(file, "rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{file}: not a GGUF file")
    from transformers import AutoModelForCausalLM, GgufConfig

    from cocos.training.checkpoints import follow_umask

    tokenizer = load_tokenizer(file)
    # `dequantize` also removes the quantizer, with which transformers would refuse to save the model.
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype="float32", quantization_config=GgufConfig(dequantize=True)
    )
    tokenizer.model_max_length = model.config.get_text_config().max_position_embeddings
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as unfinished:
        complete = Path(unfinished) / "model"
        model.save_pretrained(complete)
        tokenizer.save_pretrained(complete)
        follow_umask(complete)
        complete.rename(folder)
    template = "a chat template" if tokenizer.chat_template else "no chat template"
    return f"{folder}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens, {template}"


def load_tokenizer(file: Path):
    """Return the tokenizer of a GGUF file, with the pre-tokenizer that the file names."""
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
    from transformers.integrations.gguf.reader import read_gguf_metadata

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    metadata, _ = read_gguf_metadata(str(file))
    name = metadata.get("tokenizer.ggml.pre")
    if metadata.get("tokenizer.ggml.model") != "gpt2" or name in {*GPT2_SPLITS, *GGUF_PRE_TOKENIZER_SPLITS}:
        return tokenizer
    if name in DIGIT_SPLITS:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    else:
        print(
            f"warning: {file}: transformers does not know its pre-tokenizer {name} and uses GPT-2's; compare "
            "token ids with those of the original checkpoint",
            file=sys.stderr,
        )
    return tokenizer


def main() -> None:
    """Run the command."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("file", type=Path, help="GGUF file")
    parser.add_argument("folder", type=Path, help="checkpoint folder to write; it must not exist")
    args = parser.parse_args()
    print(import_gguf(args.file, args.folder))


if __name__ == "__main__":
    run_command(main)

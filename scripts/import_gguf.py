"""Convert a GGUF file to a checkpoint folder that train.py and test.py can load.

    python scripts/import_gguf.py SmolLM2-135M-Instruct.Q4_1.gguf models/SmolLM2-135M-Instruct

The weights are dequantized to float32, or to --dtype. The folder gets the tokenizer and the chat template
of the file, too. A file may have an output layer of its own, of a finer quantization than its embedding,
although the original checkpoint ties the two; --tie ties them again, with the finer weights for both. Reads
every architecture that transformers reads; needs the package gguf (pip install gguf).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.output_folder import check_output_folder, new_folder

MAGIC = b"GGUF"  # the first bytes of every GGUF file
# Pre-tokenizers of llama.cpp (llama-vocab.cpp) that split like GPT-2 after isolating each digit. transformers
# reads them as plain GPT-2, which tokenizes the spaces in front of a number otherwise than the model was
# trained: `x =  12` has the tokens ` ` and ` ` where it should have one of two spaces.
DIGIT_SPLITS = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
GPT2_SPLITS = {"gpt-2", "mpt", "olmo", "jais", "trillion", "granite-docling"}


def import_gguf(
    file: Path, folder: Path, dtype: str = "float32", tie: bool = False, eos_token_ids: Sequence[int] = ()
) -> str:
    """Convert a GGUF file to a checkpoint folder and return a summary of one line.

    The folder appears only when it is complete.

    Args:
        folder: Folder to write; new or empty.
        tie: Use the output layer as the embedding too. A file with one matrix for both has this already.
        eos_token_ids: Ids that end a completion, because a GGUF file names only one. Empty: that one.

    Raises:
        ValueError: The file is no GGUF file or cannot be read by transformers, or the folder is not empty.
        ImportError: The package gguf is not installed.

    """
    check_output_folder(folder, option="")
    with open(file, "rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{file}: not a GGUF file")
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    from cocos.training.checkpoints import follow_umask

    tokenizer = load_tokenizer(file)
    # `dequantize` also removes the quantizer, with which transformers would refuse to save the model.
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype="float32", quantization_config=GgufConfig(dequantize=True)
    )
    if tie:
        weight = model.get_output_embeddings().weight.detach()
        model.set_input_embeddings(torch.nn.Embedding.from_pretrained(weight, freeze=False))
        model.config.tie_word_embeddings = True
        model.tie_weights()
    model.to(getattr(torch, dtype))
    if eos_token_ids:
        model.generation_config.eos_token_id = list(eos_token_ids)
    tokenizer.model_max_length = model.config.get_text_config().max_position_embeddings
    with new_folder(folder, option="") as unfinished:
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        follow_umask(unfinished)
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
    parser = PlainParser(description=__doc__)
    parser.add_argument("file", type=Path, help="GGUF file")
    parser.add_argument("folder", type=Path, help="checkpoint folder to write; new or empty")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--tie", action="store_true", help="use the output layer as the embedding too")
    args = parser.parse_args()
    print(import_gguf(args.file, args.folder, args.dtype, args.tie))


if __name__ == "__main__":
    run_command(main)

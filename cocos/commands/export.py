"""Write a trained model as a plain checkpoint for other programs: transformers, vLLM, llama.cpp, Ollama.

    cocos export outputs/cocos exported                      a LoRA adapter is merged into its base model
    cocos export outputs/cocos exported --dtype bfloat16     half the size
    cocos export outputs/cocos exported --gguf               also exported/model.gguf and an Ollama Modelfile

The sum of base and adapter is made in float32. GGUF needs llama.cpp's convert_hf_to_gguf.py on PATH, or its
folder in --llama_cpp. docs/evaluation.md says how to use the result.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

CONVERTER = "convert_hf_to_gguf.py"
# The model has learnt its prompts as plain text, and ends an answer with [DONE].
MODELFILE = """FROM ./model.gguf
TEMPLATE "{{ .Prompt }}"
PARAMETER stop "[DONE]"
PARAMETER temperature 0
"""


def main() -> None:
    """Check the folders, merge or copy, and convert."""
    options = export_parser().parse_args()
    converter = _converter(options.llama_cpp) if options.gguf else None

    from cocos.config.model_names import full_name
    from cocos.files.output_folder import new_folder
    from cocos.generation.adapters import export_model, is_adapter
    from cocos.generation.checkpoint_files import check_checkpoint
    from cocos.generation.model_kinds import PLAIN
    from cocos.training.checkpoints import follow_umask

    options.model = full_name(options.model)
    kind = check_checkpoint(options.model)
    if kind.quantization:
        raise ValueError(
            f"{options.model}: its weights are quantised ({kind.quantization}) and cannot be merged or "
            f"exported; {PLAIN}"
        )
    output = Path(options.output)
    with new_folder(output, option="") as folder:
        export_model(options.model, str(folder), options.dtype)
        follow_umask(folder)
        if converter:
            _convert(folder, converter)
    how = "base model and adapter, merged" if is_adapter(options.model) else "the whole model"
    print(f"{output}: {how}, in {options.dtype}")
    if converter:
        print(f"{output}/model.gguf: for llama.cpp and Ollama")


def export_parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    from cocos.config.command_line import PlainParser

    parser = PlainParser(usage="%(prog)s MODEL FOLDER [options]", description=__doc__)
    parser.add_argument("model", metavar="MODEL", help="folder or short name of a model or adapter")
    parser.add_argument("output", metavar="FOLDER", help="new or empty folder for the plain checkpoint")
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="data type of the weights",
    )
    parser.add_argument("--gguf", action="store_true", help="also convert the result with llama.cpp")
    parser.add_argument("--llama_cpp", metavar="FOLDER", help="folder of llama.cpp, with its converter")
    return parser


def _convert(folder: Path, converter: str) -> None:
    """Add the GGUF file of a checkpoint, and Ollama's Modelfile; raise ValueError if llama.cpp fails."""
    command = [sys.executable, converter, str(folder), "--outfile", str(folder / "model.gguf")]
    if status := subprocess.run(command).returncode:
        raise ValueError(f"{converter} ended with status {status}; its messages are above")
    if not _is_chat(folder):
        (folder / "Modelfile").write_text(MODELFILE, encoding="utf-8")


def _converter(folder: str | None) -> str:
    """Return the path of llama.cpp's converter; raise ValueError if there is none."""
    found = os.path.join(folder, CONVERTER) if folder else shutil.which(CONVERTER)
    if not found or not os.path.isfile(found):
        raise ValueError(
            f"--gguf: no {CONVERTER} {'in ' + folder if folder else 'on PATH'}; clone llama.cpp and give its "
            "folder in --llama_cpp"
        )
    return found


def _is_chat(folder: Path) -> bool:
    """Return whether the tokenizer has a chat template, which the GGUF file then contains, too."""
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("tokenizer_config.json")]
    return (folder / "chat_template.jinja").exists() or any('"chat_template"' in text for text in texts)

"""Merge a LoRA adapter into its base model, in float32, as a plain checkpoint.

    python scripts/merge_adapter.py outputs/cocos outputs/cocos-merged

Use the folder like any other checkpoint: with vLLM or Ollama, or as the start of a training of all weights.
"""

from pathlib import Path

from cocos.config.command_line import PlainParser
from cocos.entry_point import run_command


def main() -> None:
    """Check the folders, merge, and save."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("adapter", help="folder of a saved adapter")
    parser.add_argument("output", help="folder for the merged model")
    arguments = parser.parse_args()

    from cocos.files.run_record import check_output_folder
    from cocos.generation.adapters import is_adapter, save_merged
    from cocos.generation.checkpoint_files import check_checkpoint
    from cocos.training.checkpoints import follow_umask

    check_checkpoint(arguments.adapter)
    if not is_adapter(arguments.adapter):
        raise ValueError(f"{arguments.adapter}: a whole model, not an adapter; there is nothing to merge")
    check_output_folder(Path(arguments.output), remedy="choose another folder", is_resumed=False)
    save_merged(arguments.adapter, arguments.output)
    follow_umask(arguments.output)
    print(f"merged in float32: {arguments.output}")


if __name__ == "__main__":
    run_command(main)

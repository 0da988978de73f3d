"""First checks of a training command, before torch is imported: help and mistakes take half a second."""

import json
from pathlib import Path

from cocos.config.command_line import OwnOptions, check_options
from cocos.config.option import require_options
from cocos.config.ranks import is_main_process
from cocos.files.run_record import check_output_folder
from cocos.training.library_messages import silence_library_messages


def checked_options(options_type: type[OwnOptions], description: str | None) -> OwnOptions:
    """Return this project's options of a training command, whose output folder can be written to.

    Raises:
        ValueError: An option is unknown or has a wrong value, or the folder contains a model or a run that is
            not continued.

    """
    options = check_options(options_type, description)
    require_options(options, "model_name_or_path", "train_data")  # CoCoSTrainer takes them as objects
    if is_main_process():
        check_output_folder(
            Path(options.output_dir),
            remedy="continue it with --resume_from_checkpoint last",
            is_resumed=options.resume_from_checkpoint is not None,
        )
    if options.deepspeed:
        _check_json_file("--deepspeed", options.deepspeed)
    silence_library_messages()
    return options


def _check_json_file(option: str, path: str) -> None:
    """Raise ValueError with option and file if a file is not a JSON object."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{option} {path}: cannot be read ({error.strerror}); give a JSON file") from None
    except ValueError as error:
        raise ValueError(f"{option} {path}: not valid JSON ({error}); repair the file") from None
    if not isinstance(content, dict):
        raise ValueError(f"{option} {path}: a JSON {type(content).__name__}; give an object of settings")

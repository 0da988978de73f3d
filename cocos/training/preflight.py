"""First checks of a training command, before torch is imported: help and mistakes take half a second."""

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
    silence_library_messages()
    return options

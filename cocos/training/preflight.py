"""First steps of a training command, before torch is imported: help and mistakes take half a second.

The messages of libraries that tell a user of this project nothing are silenced, each by its words; all other
warnings stay visible. Some are printed while the libraries are imported.
"""

import json
import logging
import warnings
from pathlib import Path

from cocos.config.command_line import OwnOptions, check_options
from cocos.config.option import require_options
from cocos.config.ranks import is_main_process
from cocos.files.output_folder import check_training_folder, run_kind


def checked_options(options_type: type[OwnOptions], description: str | None) -> OwnOptions:
    """Return this project's options of a training command, whose output folder can be written to.

    Raises:
        ValueError: An option is unknown or has a wrong value, or the folder contains a model or a run that is
            not continued.

    """
    options = check_options(options_type, description)
    require_options(options, "model_name_or_path", "train_data")  # CoCoSTrainer takes them as objects
    if is_main_process():
        is_resumed = options.resume_from_checkpoint is not None
        check_training_folder(Path(options.output_dir), run_kind(vars(options)), is_resumed)
    if options.deepspeed:
        _check_deepspeed(options.deepspeed)
    silence_library_messages()
    return options


def _check_deepspeed(path: str) -> None:
    """Raise ValueError with the file if it is not a JSON object, or has a schedule of its own."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"--deepspeed {path}: cannot be read ({error.strerror}); give a JSON file") from None
    except ValueError as error:
        raise ValueError(f"--deepspeed {path}: not valid JSON ({error}); repair the file") from None
    if not isinstance(content, dict):
        raise ValueError(f"--deepspeed {path}: a JSON {type(content).__name__}; give an object of settings")
    if "scheduler" in content:
        raise ValueError(
            f"--deepspeed {path}: its scheduler would replace --lr_scheduler_type and --warmup_steps; leave "
            "it out"
        )


# Logger, and words of the message.
LOG_MESSAGES = (
    # A machine without a GPU; the start lines name the device.
    ("DeepSpeed", "Setting accelerator to CPU"),
    # Checkpoints that were saved within one second, as in the laboratory. Their numbers give the order.
    ("transformers.trainer_utils", "mtime may not be reliable"),
    # The tokenizer decides the special tokens, as it should.
    ("transformers.trainer_utils", "The tokenizer has new PAD/BOS/EOS tokens"),
    # An adapter that is trained further is loaded before TRL's trainer.
    ("trl.trainer", "your model is already instantiated"),
    # What a continued run changes is compared with the record of the run (`accepted_changes`).
    ("transformers.trainer_utils", "The following arguments do not match"),
    # DeepSpeed's number is that of --global_batch_size, and is used.
    ("accelerate.accelerator", "Gradient accumulation steps mismatch"),
    # transformers turns the cache off by itself.
    ("transformers", "`use_cache=True` is incompatible with"),
)
# Category, and the start of the message as a regular expression.
WARNINGS = (
    # TRL uses the former name of the option and of the property.
    (FutureWarning, r"`(is_)?gradient_checkpointing"),
    # DeepSpeed uses the former name of a collective.
    (FutureWarning, r"`torch\.distributed\.all_gather_into_tensor` is deprecated"),
)


class _Silence(logging.Filter):
    """Filter that drops the records whose message contains certain words."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def filter(self, record: logging.LogRecord) -> bool:
        return self.words not in record.getMessage()


def silence_library_messages() -> None:
    """Silence the messages; call it before torch, transformers or TRL are imported."""
    for name, words in LOG_MESSAGES:
        logging.getLogger(name).addFilter(_Silence(words))
    for category, start in WARNINGS:
        warnings.filterwarnings("ignore", message=start, category=category)

"""Messages of libraries that tell a user of this project nothing, each silenced by its words.

Only these texts are silenced; all other warnings stay visible. Imports the standard library only, because
some of the messages are printed while the libraries are imported.
"""

import logging
import warnings

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
    ("transformers.trainer", "The following arguments do not match"),
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
